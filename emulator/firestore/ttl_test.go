package firestoreemu

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
)

// Expired documents stay readable until they are swept (E-ST-07).
func TestServer_SweepTTLDeletesExpired(t *testing.T) {
	ctx := testContext(t)
	clock := clockwork.NewFakeClock()
	s := StartT(t, Options{Clock: clock, Indexes: []byte(`{"fieldOverrides":[
		{"collectionGroup":"leases","fieldPath":"expires","ttl":true,"indexes":[]}]}`)})
	c := newClient(t, s.Addr())
	for path, in := range map[string]time.Duration{"leases/old": time.Minute, "leases/new": time.Hour, "other/old": time.Minute} {
		if _, err := c.Doc(path).Set(ctx, fields{"n": 1, "expires": clock.Now().Add(in)}); err != nil {
			t.Fatal(err)
		}
	}
	clock.Advance(2 * time.Minute)
	wantField(ctx, t, c.Doc("leases/old"), int64(1))
	if n, err := s.SweepTTL(ctx); n != 1 || err != nil {
		t.Errorf("swept %d, %v; want 1", n, err)
	}
	for path, want := range map[string]bool{"leases/old": false, "leases/new": true, "other/old": true} {
		if snap, _ := c.Doc(path).Get(ctx); snap.Exists() != want {
			t.Errorf("%s exists: %v, want %v", path, snap.Exists(), want)
		}
	}
}
