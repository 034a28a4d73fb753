package firestorelock

import (
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/lock"
)

// A resource finds at CounterPath what the backend of the same configuration has
// handed out. L-KEY-04
func TestConfig_CounterPathIsWhereTheBackendCounts(t *testing.T) {
	counters := "elsewhere"
	for _, cfg := range []Config{{}, {FenceCollection: &counters}, {UnaddressableKeys: HashKeys}} {
		b := newBench(t, cfg)
		for _, key := range []string{"optimizer:cycle:DEPOT-1", "cafe\u0301", "a/b/c", strings.Repeat("x", lock.MaxKeyBytes), "a/b", ".."} {
			path, err := cfg.CounterPath(key)
			if refused := cfg.UnaddressableKeys == RefuseKeys && (key == "a/b" || key == ".."); refused != (err != nil) {
				t.Fatalf("%+v, key %.20q: %v", cfg, key, err)
			} else if refused {
				continue
			}
			for n := int64(1); n <= 2; n++ {
				res, err := b.Acquire(t.Context(), lock.AcquireRequest{Key: key, TTL: lock.DefaultTTL})
				if err != nil || !res.OK {
					t.Fatalf("key %.20q: %+v, %v", key, res, err)
				}
				if _, err := b.Release(t.Context(), lock.Ref{LockID: res.LockID, Key: key}); err != nil {
					t.Fatal(err)
				}
				doc, err := b.client.Doc(path).Get(t.Context())
				if err != nil {
					t.Fatalf("key %.20q: %v", key, err)
				}
				if counted, err := CounterValue(doc.Data()); err != nil || counted != n {
					t.Errorf("key %.20q: counted %d, %v; handed out %s", key, counted, err, res.Fence)
				}
			}
		}
	}
	if _, err := CounterValue(map[string]any{"fence": "none"}); err == nil {
		t.Error("a damaged counter counts")
	}
	empty := ""
	if _, err := (Config{FenceCollection: &empty}).CounterPath("key"); err == nil {
		t.Error("a collection without a name counts")
	}
}
