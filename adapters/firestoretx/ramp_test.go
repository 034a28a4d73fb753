package firestoretx_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-HIS-02: the ramp of a database begins when it is first asked for, and is the same for all processes; a
// database of which drones have made many events yesterday is past it.
func TestStore_RampBeginsOnceAndNotInAUsedDatabase(t *testing.T) {
	clients := emutest.Clients(t)
	var begun [4]time.Time
	var asking sync.WaitGroup
	for i := range begun {
		asking.Go(func() {
			var err error
			if begun[i], err = firestoretx.New(clients.Firestore, firestoretx.Config{}).RampBegan(t.Context(), 300); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	for _, b := range begun {
		if !b.Truncate(time.Microsecond).Equal(begun[0].Truncate(time.Microsecond)) || time.Since(b) > time.Minute {
			t.Errorf("begun at %s and %s", b, begun[0])
		}
	}

	used := emutest.Clients(t)
	writer := used.Firestore.BulkWriter(t.Context())
	yesterday := time.Now().Add(-12 * time.Hour)
	for range 300 {
		if _, err := writer.Create(used.Firestore.Collection(firestoretx.Events).NewDoc(), map[string]any{"cause": "TELEMETRY", "time": yesterday}); err != nil {
			t.Fatal(err)
		}
	}
	writer.End()
	began, err := firestoretx.New(used.Firestore, firestoretx.Config{}).RampBegan(t.Context(), 300)
	if since := time.Since(began); err != nil || since < 23*time.Hour {
		t.Errorf("the ramp of a used database began %s ago, %v", since, err)
	}
}

// F-HIS-02: what a commit writes is told by collection.
func TestMeter_TellsWritesByCollection(t *testing.T) {
	clients := emutest.Clients(t)
	told := map[string]int{}
	clients.Meter.OnWrites(func(collection string, writes int) { told[collection] += writes })
	err := clients.Firestore.RunTransaction(t.Context(), func(_ context.Context, tx *firestore.Transaction) error {
		for _, id := range []string{"A", "B"} {
			if err := tx.Set(clients.Firestore.Collection("drones").Doc(id), map[string]any{"x": 1}); err != nil {
				return err
			}
		}
		return tx.Delete(clients.Firestore.Collection("depots").Doc("D"))
	})
	if err != nil || len(told) != 2 || told["drones"] != 2 || told["depots"] != 1 {
		t.Errorf("told %v, %v", told, err)
	}
}
