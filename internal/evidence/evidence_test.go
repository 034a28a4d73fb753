package evidence_test

import (
	"testing"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/emutest"
	"github.com/dronefleet/dronefleet/internal/evidence"
	"github.com/dronefleet/dronefleet/internal/invariant"
)

// I3, F-DLQ-01: an order that was refused and then discarded is on record, not lost.
func TestDocuments_TellOfWhatWasDiscarded(t *testing.T) {
	store := firestoretx.New(emutest.Clients(t).Firestore, firestoretx.Config{})
	refused := invariant.Message{ID: "17", Topic: "orders", OrderID: "O1"}
	for _, lost := range []bool{true, false} {
		h, err := evidence.Documents(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		h.Journal = []invariant.Message{refused}
		if v := invariant.Check(h).Violations; len(v) > 0 != lost {
			t.Errorf("violations %v, want some: %t", v, lost)
		}
		if err := store.RecordDiscard(t.Context(), domain.Discard{ID: "orders-17", Topic: "orders", MessageID: "17", Reason: "INVALID"}); err != nil {
			t.Fatal(err)
		}
	}
}
