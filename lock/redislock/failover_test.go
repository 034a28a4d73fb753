package redislock

import (
	"bytes"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dronefleet/dronefleet/conformance/lock/faultproxy"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

// A primary dies, and a replica that lagged behind is promoted. Without Replicas it hands
// out fences again that the primary did; with it, none was handed out that it lacks.
func TestFailover_RepeatsFencesOnlyWithoutReplicas(t *testing.T) {
	for _, replicas := range []int{0, 1} {
		t.Run(strconv.Itoa(replicas), func(t *testing.T) {
			t.Parallel()
			primary := startRedis(t, "--repl-diskless-sync-delay", "0")
			link := startProxy(t, primary.Addr())
			client := dial(t, primary.Addr())
			_, promoted := startReplica(t, client, link.Addr())
			cfg := Config{Replicas: replicas, ReplicaTimeout: 200 * time.Millisecond, SkipDurabilityCheck: true}
			before := newBackend(t, client, cfg)
			var highest lock.Fence
			take := func() {
				res, err := before.Acquire(bg, lock.AcquireRequest{Key: key, TTL: 2 * time.Second}) // the promoted may still hold it
				if err != nil {
					if !errors.Is(err, lock.ErrServiceUnavailable) || replicas == 0 {
						t.Fatal(err)
					}
					return
				}
				highest = max(highest, res.Fence)
				mustRelease(t, before, lock.Ref{LockID: res.LockID, Key: key})
			}
			take()
			client.Wait(bg, 1, time.Minute)
			link.Refuse() // the replica lags from here
			for range 3 {
				take()
			}
			primary.Kill()
			if err := promoted.ReplicaOf(bg, "NO", "ONE").Err(); err != nil {
				t.Fatal(err)
			}
			after := newBackend(t, promoted, Config{SkipDurabilityCheck: true})
			first, err := lock.Acquire(bg, after, key, lock.WithTimeout(time.Minute), lock.WithMaxRetries(1<<30))
			if err != nil {
				t.Fatal(err)
			}
			defer first.Close()
			t.Logf("highest fence before %s, first after %s", highest, first.Fence())
			if repeats := first.Fence() <= highest; repeats != (replicas == 0) {
				t.Errorf("with %d replicas waited for: fence %s after %s", replicas, first.Fence(), highest)
			}
		})
	}
}

// startReplica runs a server that follows another at an address, and returns once the
// other knows that it has all writes.
func startReplica(tb testing.TB, primary *redis.Client, addr string) (*storeserver.Server, *redis.Client) {
	tb.Helper()
	// Without a file: a replica that rewrites its own refuses to end.
	replica := startRedis(tb, "--appendonly", "no", "--replicaof", strings.Replace(addr, ":", " ", 1))
	conn := primary.Conn() // WAIT waits for the writes of its own connection
	defer conn.Close()
	if err := conn.Set(bg, "written", "1", 0).Err(); err != nil {
		tb.Fatal(err)
	}
	if n, err := conn.Wait(bg, 1, time.Minute).Result(); err != nil || n != 1 {
		tb.Fatalf("%d replicas, %v", n, err)
	}
	return replica, dial(tb, replica.Addr())
}

// A client that is pointed at a replica is told so by its first call, also where an answer
// could be had without a write.
func TestBackend_NamesAReplica(t *testing.T) {
	t.Parallel()
	primary := startRedis(t, "--repl-diskless-sync-delay", "0")
	client := dial(t, primary.Addr())
	held := mustAcquire(t, newBackend(t, client, Config{SkipDurabilityCheck: true}), key)
	_, replica := startReplica(t, client, primary.Addr())
	b := newBackend(t, replica, Config{SkipDurabilityCheck: true})
	ref := lock.Ref{LockID: held.LockID, Key: key}
	for name, call := range map[string]func() error{
		"acquire of a free lock": func() error {
			_, err := b.Acquire(bg, lock.AcquireRequest{Key: "free", TTL: ttl})
			return err
		},
		"acquire of a lock that is held": func() error {
			_, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			return err
		},
		"extend":  func() error { _, err := b.Extend(bg, ref, ttl); return err },
		"release": func() error { _, err := b.Release(bg, ref); return err },
		"release of a free lock": func() error {
			_, err := b.Release(bg, lock.Ref{LockID: held.LockID, Key: "free"})
			return err
		},
		"highest fence": func() error { _, err := b.HighestFence(bg, key); return err },
	} {
		err := call()
		e, ok := errors.AsType[*lock.Error](err)
		if !ok || e.Code != lock.CodeServiceUnavailable || e.OutcomeUnknown || !strings.Contains(err.Error(), "is a replica: use the primary's address") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if found, err := b.CheckDurability(bg); err != nil || len(found) != 1 || found[0] != errReplica.Error() {
		t.Errorf("the check at the start: %q, %v", found, err)
	}
}

// The reply of an acquisition is lost, and the replica does not follow any more. The call
// that is made again finds its lease, which no replica has: it must not be handed out.
func TestAcquire_WaitsForReplicasWhenMadeAgain(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, startRedis(t, "--repl-diskless-sync-delay", "0"), Config{Replicas: 1, ReplicaTimeout: 200 * time.Millisecond})
	replica, _ := startReplica(t, r.client, r.server.Addr())
	replica.Pause()
	defer replica.Resume()
	r.proxy.Add(faultproxy.TCPRule{Match: scriptCall, Times: 1, Do: faultproxy.TCPFault{CutAfter: true}})
	res, err := r.faulty.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
	e, ok := errors.AsType[*lock.Error](err)
	if !ok || !e.OutcomeUnknown || !errors.Is(err, errFewReplicas) {
		t.Errorf("%+v, %v; want too few replicas", res, err)
	}
}

// The check at the start names what can be lost, and nothing on a server that is set well.
func TestCheckDurability_NamesLosses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		settings []string
		want     string
	}{
		"safe":      {[]string{"--appendfsync", "always"}, ""},
		"late":      {[]string{"--appendfsync", "everysec"}, "appendfsync"},
		"no file":   {[]string{"--appendonly", "no"}, "appendonly"},
		"evictions": {[]string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}, "maxmemory-policy"},
	} {
		b := newBackend(t, dial(t, startRedis(t, row.settings...).Addr()), Config{})
		found, err := b.CheckDurability(bg)
		if err != nil || (len(found) > 0) != (row.want != "") || row.want != "" && !strings.Contains(found[0], row.want) {
			t.Errorf("%s: %q, %v", name, found, err)
		}
	}
	if found := losses("connected_slaves:2\r\naof_enabled:1\r\n", 0); len(found) != 1 || losses("connected_slaves:2\r\n", 2) != nil {
		t.Errorf("replicas: %q", found)
	}
}

// A server whose memory is full may evict a fence counter, and the first fence comes again; the
// check at start warned of it. With noeviction it refuses to lock and still releases.
func TestEviction_ForgetsFencesUnlessRefused(t *testing.T) {
	for policy, forgets := range map[string]bool{"allkeys-random": true, "noeviction": false} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			client := dial(t, startRedis(t, "--appendonly", "no", "--maxmemory", "100mb", "--maxmemory-policy", policy).Addr())
			var log bytes.Buffer
			b := newBackend(t, client, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err := b.tasks.Wait(bg); err != nil {
				t.Fatal(err)
			}
			if warned := strings.Contains(log.String(), "maxmemory-policy is "+policy); warned != forgets {
				t.Errorf("warned: %t; the log: %s", warned, log.String())
			}
			mustRelease(t, b, lock.Ref{Key: key, LockID: mustAcquire(t, b, key).LockID})
			held := mustAcquire(t, b, "held")
			limit := func(memory string) {
				if err := client.ConfigSet(bg, "maxmemory", memory).Err(); err != nil {
					t.Fatal(err)
				}
			}
			limit("100kb") // less than an empty server needs
			res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			if !errors.Is(err, lock.ErrRateLimited) {
				t.Errorf("memory is full: %+v, %v", res, err)
			}
			if !forgets {
				mustRelease(t, b, lock.Ref{Key: "held", LockID: held.LockID})
			}
			limit("100mb")
			if res := mustAcquire(t, b, key); (res.Fence == "000000000000001") != forgets {
				t.Errorf("fence %s with room again", res.Fence)
			}
		})
	}
}
