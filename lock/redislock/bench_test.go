package redislock

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

// bareRelease is the script of the plain lock of Redis's documentation.
var bareRelease = redis.NewScript(`if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`)

// barePair is that lock, taken and released once: no fence, no owner's index, no end that
// others respect a second longer.
func barePair(tb testing.TB, c *redis.Client, id string) {
	ok, err := c.SetNX(bg, "bare", id, ttl).Result()
	if err != nil || !ok {
		tb.Fatal(ok, err)
	}
	if n, err := bareRelease.Run(bg, c, []string{"bare"}, id).Int(); err != nil || n != 1 {
		tb.Fatal(n, err)
	}
}

func pair(tb testing.TB, b *Backend) {
	res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
	if err != nil || !res.OK {
		tb.Fatal(res, err)
	}
	if res, err := b.Release(bg, lock.Ref{LockID: res.LockID, Key: key}); err != nil || !res.OK {
		tb.Fatal(res, err)
	}
}

// BenchmarkPair compares one acquisition and release on one connection with the plain
// lock of SET NX PX and a compare-and-delete script.
func BenchmarkPair(b *testing.B) {
	server := startRedis(b, "--appendonly", "no")
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 1})
	defer client.Close()
	ours := newBackend(b, client, Config{SkipDurabilityCheck: true})
	id := lock.NewLockID()
	storeserver.Compare(b, 20, func() { barePair(b, client, id) }, func() { pair(b, ours) })
}
