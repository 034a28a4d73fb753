package firestoretx

import (
	"fmt"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-LIVE-08: what stands out in a period is found with production's indexes, newest first and no more
// than asked for.
func TestStore_ListsRemarkableEvents(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, fleet := range map[string]struct {
		indexes []byte
		sharded bool
	}{"default": {deploy.FirestoreIndexes, false}, "sharded": {deploy.ShardedFirestoreIndexes, true}} {
		t.Run(name, func(t *testing.T) {
			emutest.ServeFirestore(t, firestoreemu.Options{Indexes: fleet.indexes})
			s := New(emutest.Clients(t).Firestore, Config{Sharded: fleet.sharded})
			for i, e := range []domain.Event{
				{Entity: domain.EntityOrder, ID: "O1", Cause: domain.CauseSweeper, Time: at},
				{Entity: domain.EntityDrone, ID: "D1", Cause: domain.CauseTelemetry, To: string(domain.DroneEmergency), Time: at.Add(time.Second)},
				{Entity: domain.EntityMission, ID: "M1", Cause: domain.CauseOperator, Time: at.Add(2 * time.Second)},
				{Entity: domain.EntityDrone, ID: "D2", Cause: domain.CauseTelemetry, To: string(domain.DroneMoving), Time: at},
				{Entity: domain.EntityOrder, ID: "O2", Cause: domain.CauseSweeper, Time: at.Add(-time.Second)},
				{Entity: domain.EntityOrder, ID: "O3", Cause: domain.CauseSweeper, Time: at.Add(time.Minute)},
			} {
				if _, err := s.doc(Events, fmt.Sprint(i)).Set(t.Context(), s.encodeEvent(e)); err != nil {
					t.Fatal(err)
				}
			}
			for most, want := range map[int]string{10: "M1 D1 O1 ", 1: "M1 D1 "} {
				found, err := s.RemarkableEvents(t.Context(), at, at.Add(time.Minute), most)
				if err != nil {
					t.Fatal(err)
				}
				var ids string
				for _, e := range found.Items {
					ids += e.ID + " "
				}
				if ids != want && (!fleet.sharded || most > 1) { // each group of shards has as many
					t.Errorf("at most %d: %s, want %s", most, ids, want)
				}
			}
		})
	}
}
