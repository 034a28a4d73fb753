package capacity

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/dronefleet/dronefleet/deploy"
)

// indexFile is what the test needs of firestore.indexes.json.
type indexFile struct {
	Indexes []struct {
		CollectionGroup string
		Fields          []struct{ FieldPath string }
	}
}

func readIndexes(t *testing.T, content []byte) (f indexFile) {
	t.Helper()
	if err := json.Unmarshal(content, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// elsewhere are the last fields of composite indexes that no sample writes: people do, or messages
// that are refused, at most 5 a second for each State Manager. A flag does not rise.
var elsewhere = []string{"refusals.refusedAt", "placeChanges.changedAt", "orders.held"}

// F-AUD-14: every time that an index ends with is one that the samples write, and stays below what
// an index takes at the peak, up to the fleet from which the documents tell fleets to shard events.
// There every index on their time has the shard before it.
func TestRising_IsThatOfTheIndexes(t *testing.T) {
	model, err := Stored()
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range readIndexes(t, deploy.FirestoreIndexes).Indexes {
		last := index.CollectionGroup + "." + index.Fields[len(index.Fields)-1].FieldPath
		if model.times[last] == nil && !slices.Contains(elsewhere, last) {
			t.Errorf("an index ends with %s, which no sample writes", last)
		}
		if exemptFields(deploy.FirestoreIndexes)[last] {
			t.Errorf("%s ends an index and is exempt from indexing", last)
		}
	}
	f := Typical(shardFrom, 0)
	for i, r := range model.rising(f, Timing{Batch: 1, Cycles: 0.1}) {
		if r.Factor > 1.01 || i == 0 && r.Factor < 0.9 {
			t.Errorf("%s has %.0f writes a second at its peak, with %d drones; docs/auditing.md tells fleets to shard events from there", r.What, r.Peak, f.Drones)
		}
	}
	if !exemptFields(deploy.ShardedFirestoreIndexes)["events.time"] {
		t.Error("a sharded fleet indexes the time of events alone")
	}
	for _, index := range readIndexes(t, deploy.ShardedFirestoreIndexes).Indexes {
		if index.CollectionGroup == "events" && index.Fields[0].FieldPath != "shard" {
			t.Errorf("an index of a sharded fleet's events begins with %s", index.Fields[0].FieldPath)
		}
	}
}

// shardFrom is the fleet from which docs/auditing.md tells to shard events.
const shardFrom = 70_000
