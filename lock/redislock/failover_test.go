package redislock

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

// A primary dies, and a replica that lagged behind is promoted. Without Replicas it hands
// out fences again that the primary did; with it, none was handed out that it lacks.
func TestFailover_RepeatsFencesOnlyWithoutReplicas(t *testing.T) {
	for _, replicas := range []int{0, 1} {
		t.Run(strconv.Itoa(replicas), func(t *testing.T) {
			primary := startRedis(t, "--repl-diskless-sync-delay", "0")
			link := startProxy(t, primary.Addr())
			replica := startRedis(t, "--replicaof", strings.Replace(link.Addr(), ":", " ", 1))
			client, promoted := dial(t, primary.Addr()), dial(t, replica.Addr())
			cfg := Config{Replicas: replicas, ReplicaTimeout: 200 * time.Millisecond, SkipDurabilityCheck: true}
			before := newBackend(t, client, cfg)
			for !strings.Contains(promoted.Info(bg, "replication").Val(), "master_link_status:up") {
				time.Sleep(10 * time.Millisecond)
			}
			if n := client.Wait(bg, 1, time.Minute).Val(); n != 1 {
				t.Fatalf("%d replicas", n)
			}
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

// The check at the start names what can be lost, and nothing on a server that is set well.
func TestCheckDurability_NamesLosses(t *testing.T) {
	for name, row := range map[string]struct {
		settings []string
		want     string
	}{
		"safe":      {nil, ""},
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
