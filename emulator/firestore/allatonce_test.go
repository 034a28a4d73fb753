package firestoreemu

import "testing"

// E-TX-06: a commit that waits for one of its documents holds none of the others, and
// then takes all of them, in a transaction or without.
func TestCommit_WaitsHoldingNothing(t *testing.T) {
	for _, mode := range []string{"alone", "in a transaction"} {
		t.Run(mode, func(t *testing.T) {
			r := newRaw(t, Options{})
			r.mustCommit(nil, set("free", 1), set("held", 1))
			older, reader := r.begin(nil), r.begin(nil)
			r.get(older, "held")
			r.get(reader, "other")
			var tx []byte
			if mode != "alone" {
				tx = r.begin(nil)
			}
			outcome := r.commitBlocks(1, tx, set("free", 2), set("held", 2))
			// The documents that it does not hold can be read and written.
			if got := r.get(reader, "free"); got != 1 {
				t.Errorf("free = %d while the commit waits, want 1", got)
			}
			r.mustCommit(reader, set("free", 3))
			if got := r.get(nil, "held"); got != 1 {
				t.Errorf("held = %d while the commit waits, want 1", got)
			}
			r.mustCommit(older)
			if err := outcome(); err != nil {
				t.Errorf("the commit that waited: %v", err)
			}
			if free, held := r.get(nil, "free"), r.get(nil, "held"); free != 2 || held != 2 {
				t.Errorf("free = %d, held = %d after the commit, want 2 and 2", free, held)
			}
			if c := r.server.Counters(); c.Waits != 1 || c.Wounds != 0 {
				t.Errorf("%d waits and %d wounds, want the one wait of the commit", c.Waits, c.Wounds)
			}
		})
	}
}
