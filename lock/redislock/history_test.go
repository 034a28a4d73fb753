package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dronefleet/dronefleet/conformance/lock/faultproxy"
	"github.com/dronefleet/dronefleet/conformance/lock/history"
	"github.com/dronefleet/dronefleet/conformance/lock/lockspec"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/longtest"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

// network is how the clients of a history reach the server that is the primary.
type network struct {
	tb      testing.TB
	primary *storeserver.Server
	cfg     Config
	ahead   time.Duration // of the server's clock, before those of all clients
	proxies []*faultproxy.TCPProxy
}

// connect is history.Store.Connect.
func (n *network) connect(_ int, seed uint64) (history.Client, func(float64)) {
	proxy := startProxy(n.tb, n.primary.Addr())
	n.proxies = append(n.proxies, proxy)
	client := redis.NewClient(&redis.Options{
		Addr: proxy.Addr(), ReadTimeout: time.Minute, DisableIdentity: true, DialerRetries: 1, MaxRetries: -1,
	})
	n.tb.Cleanup(func() { _ = client.Close() })
	client.AddHook(clockAhead(n.ahead))
	b := newBackend(n.tb, client, n.cfg)
	settle := func() error {
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		if err := b.tasks.Wait(ctx); err != nil {
			return err
		}
		return proxy.Settle(ctx)
	}
	return history.Client{Backend: b, Server: n.ahead, Settle: settle, Cut: proxy.Cut, Certain: true}, func(share float64) {
		proxy.LoseSome(seed, share)
	}
}

// clockAhead is a clock of the server that is wrong, by whole seconds: scripts add them to
// what TIME says, and take them off the ends of keys, which the right clock removes.
type clockAhead time.Duration

func (by clockAhead) DialHook(next redis.DialHook) redis.DialHook { return next }

func (by clockAhead) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (by clockAhead) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args()
		ms := time.Duration(by).Milliseconds()
		wrong := strings.NewReplacer(luaNow, luaNow+fmt.Sprintf("now = now + %d\n", ms), "'PXAT', now", fmt.Sprintf("'PXAT', now - %d", ms))
		for _, s := range []*script{acquireScript, extendScript, readScript} {
			late := newScript(wrong.Replace(s.source))
			switch {
			case len(args) < 2:
			case args[1] == s.sha:
				args[1] = late.sha
			case args[1] == s.source:
				args[1] = late.source
			}
		}
		return next(ctx, cmd)
	}
}

// B-05, L-TST-02: clients die, are paused, lose replies and are broken, while the server
// is killed and started again. Where its clock stands does not matter.
func TestBackend_HistoriesUnderFaults(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"killed": 0, "server an hour ahead": time.Hour, "server an hour behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &network{tb: t, primary: startRedis(t), cfg: Config{SkipDurabilityCheck: true}, ahead: ahead}
			trial := history.Trial{Store: history.Store{Time: lockspec.ServerTime, Connect: n.connect, Fail: func() {
				n.primary.Kill()
				n.primary.Restart()
			}}}
			if ahead != 0 {
				trial.Acquisitions = 200
			}
			trial.Run(t)
		})
	}
}

// B-05: a replica that lags is promoted. What the primary granted meanwhile is forgotten,
// and its fences are granted again, unless Replicas is set.
func TestBackend_HistoriesOfAFailover(t *testing.T) {
	for replicas, want := range map[int]history.Verdict{0: history.Violated, 1: history.Linearizable} {
		t.Run(strconv.Itoa(replicas), func(t *testing.T) {
			t.Parallel()
			n := &network{tb: t, primary: startRedis(t, "--repl-diskless-sync-delay", "0"), cfg: Config{
				Replicas: replicas, ReplicaTimeout: 200 * time.Millisecond, SkipDurabilityCheck: true,
			}}
			link := startProxy(t, n.primary.Addr())
			replica, promoted := startReplica(t, dial(t, n.primary.Addr()), link.Addr())
			next := startRedis(t)
			history.Trial{Want: want, Acquisitions: 300, Store: history.Store{
				Time: lockspec.ServerTime, Connect: n.connect, Forgets: replicas > 0,
				Fail: func() {
					link.Refuse() // the replica lags from here
					time.Sleep(500 * time.Millisecond)
					n.primary.Kill()
					if err := promoted.ReplicaOf(bg, "NO", "ONE").Err(); err != nil {
						t.Error(err)
					}
					if err := dial(t, next.Addr()).ReplicaOf(bg, "127.0.0.1", strconv.Itoa(replica.Port)).Err(); err != nil {
						t.Error(err)
					}
					for _, p := range n.proxies {
						p.Redirect(replica.Addr())
						p.Cut()
					}
				},
			}}.Run(t)
		})
	}
}

// registerScript takes: the fence, the value, 1 to compare fences.
var registerScript = redis.NewScript(`local highest = redis.call('HGET', KEYS[1], 'fence') or ''
if ARGV[3] == '1' and ARGV[1] < highest then return 0 end
if ARGV[1] > highest then highest = ARGV[1] end
redis.call('HSET', KEYS[1], 'fence', highest, 'value', ARGV[2])
return 1
`)

// L-FENCE-01: what a fence is for, with a register on the same server.
func TestBackend_FencesKeepLateWritesOut(t *testing.T) {
	t.Parallel()
	client := dial(t, startRedis(t).Addr())
	history.CheckRegister(t, newBackend(t, client, Config{SkipDurabilityCheck: true}), history.Register{
		Write: func(fence lock.Fence, value string, fenced bool) (bool, error) {
			return registerScript.Run(bg, client, []string{"register"}, string(fence), value, fenced).Bool()
		},
		Read: func() (string, error) { return client.HGet(bg, "register", "value").Result() },
	})
}

// B-05, L-TST-02: what is broken is refused on server time too, and in real time.
func TestCheck_RefusesTracesOfBrokenBackends(t *testing.T) {
	longtest.Only(t, "runs twenty broken backends against a real clock; the history package does it in simulated time")
	t.Parallel()
	client := dial(t, startRedis(t).Addr())
	open := func(t *testing.T) lock.Backend {
		return newBackend(t, client, Config{Prefix: fresh(), SkipDurabilityCheck: true})
	}
	history.RefuseBroken(t, lockspec.ServerTime, open, func(t *testing.T, f func(*testing.T)) { f(t) })
}
