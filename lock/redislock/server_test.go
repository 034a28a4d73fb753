package redislock

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dronefleet/dronefleet/conformance/lock/faultproxy"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/leaktest"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

var bg = context.Background()

const (
	key = "vehicle:7"
	ttl = 30 * time.Second
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	leaktest.Main(m)
}

// startRedis runs a server for one test. Killing it loses nothing, because the kernel has what
// it answered; with appendfsync everysec it would delay writes during an fsync.
func startRedis(tb testing.TB, settings ...string) *storeserver.Server {
	tb.Helper()
	return storeserver.Redis(tb, append([]string{"--appendfsync", "no", "--enable-debug-command", "yes"}, settings...)...)
}

// dial returns a client of a server.
func dial(tb testing.TB, addr string) *redis.Client {
	tb.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true, DialerRetries: 1})
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

var prefixes atomic.Int64

// fresh is a prefix that no other test uses.
func fresh() *string {
	prefix := fmt.Sprintf("t%d", prefixes.Add(1))
	return &prefix
}

// newBackend returns a backend; the test waits for its background work.
func newBackend(tb testing.TB, c redis.UniversalClient, cfg Config) *Backend {
	tb.Helper()
	b, err := New(c, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(bg); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// rig is a server, a backend behind a proxy, and one beside it.
type rig struct {
	server         *storeserver.Server
	proxy          *faultproxy.TCPProxy
	client         *redis.Client // direct
	faulty, direct *Backend
}

func newRig(tb testing.TB, cfg Config) rig {
	tb.Helper()
	return newRigOn(tb, startRedis(tb), cfg)
}

// newRigOn is newRig on a server that others use too.
func newRigOn(tb testing.TB, server *storeserver.Server, cfg Config) rig {
	tb.Helper()
	cfg.SkipDurabilityCheck = true
	proxy := startProxy(tb, server.Addr())
	r := rig{server: server, proxy: proxy, client: dial(tb, server.Addr())}
	r.direct = newBackend(tb, r.client, cfg)
	through := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ReadTimeout: 20 * time.Second, DisableIdentity: true})
	tb.Cleanup(func() { _ = through.Close() })
	r.faulty = newBackend(tb, through, cfg)
	return r
}

func startProxy(tb testing.TB, addr string) *faultproxy.TCPProxy {
	tb.Helper()
	proxy, err := faultproxy.StartTCP(addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			tb.Error(err)
		}
	})
	return proxy
}

func mustAcquire(tb testing.TB, b lock.Backend, key string) lock.AcquireResult {
	tb.Helper()
	res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
	if err != nil || !res.OK {
		tb.Fatalf("acquire: %+v, %v", res, err)
	}
	return res
}

func mustRelease(tb testing.TB, b lock.Backend, ref lock.Ref) {
	tb.Helper()
	if res, err := b.Release(bg, ref); err != nil || !res.OK {
		tb.Fatalf("release: %+v, %v", res, err)
	}
}
