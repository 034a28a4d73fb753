package capacity_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/docs/capacity"
)

// indexFile is what the test needs of firestore.indexes.json.
type indexFile struct {
	Indexes []struct {
		CollectionGroup string
		Fields          []struct{ FieldPath string }
	}
	FieldOverrides []struct {
		CollectionGroup, FieldPath string
		Indexes                    []any
	}
}

func (f indexFile) exempt(collection, field string) bool {
	for _, o := range f.FieldOverrides {
		if o.CollectionGroup == collection && o.FieldPath == field {
			return len(o.Indexes) == 0
		}
	}
	return false
}

func readIndexes(t *testing.T, content []byte) (f indexFile) {
	t.Helper()
	if err := json.Unmarshal(content, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// others are the last fields of composite indexes that do not rise.
var others = []string{"orders held"}

// F-AUD-14: every rising value that an index ends with is in the table, none of the table is
// exempt, and each stays below what an index takes at its peak, up to the fleet from which events
// are sharded. There every index on their time has the shard before it.
func TestRisingFields_AreThoseOfTheIndexes(t *testing.T) {
	file := readIndexes(t, deploy.FirestoreIndexes)
	for _, index := range file.Indexes {
		last := index.Fields[len(index.Fields)-1].FieldPath
		known := slices.ContainsFunc(capacity.RisingFields, func(r capacity.Rising) bool { return r.Collection == index.CollectionGroup && r.Field == last })
		if !known && !slices.Contains(others, index.CollectionGroup+" "+last) {
			t.Errorf("an index of %s ends with %s, which is not in the table", index.CollectionGroup, last)
		}
	}
	const sharded = 94_000 // drones, from which the documents tell fleets to shard
	for _, r := range capacity.RisingFields {
		if file.exempt(r.Collection, r.Field) {
			t.Errorf("%s of %s is in the table and exempt from indexing", r.Field, r.Collection)
		}
		if r.PerSecond == nil {
			continue
		}
		if peak := capacity.PeakToMean * r.PerSecond(capacity.Typical(sharded, 1)); peak > capacity.MaxRising+1 {
			t.Errorf("%s of %s has %.0f writes a second at its peak, with %d drones", r.Field, r.Collection, peak, sharded)
		}
	}
	mean := capacity.RisingFields[0].PerSecond(capacity.Typical(sharded, 1))
	if want := float64(capacity.MaxRising / capacity.PeakToMean); math.Abs(mean-want) > 0.5 {
		t.Errorf("%d drones write %.1f events a second; docs/auditing.md tells them to shard from %.0f", sharded, mean, want)
	}
	file = readIndexes(t, deploy.ShardedFirestoreIndexes)
	if !file.exempt("events", "time") {
		t.Error("a sharded fleet indexes the time of events alone")
	}
	for _, index := range file.Indexes {
		if index.CollectionGroup == "events" && index.Fields[0].FieldPath != "shard" {
			t.Errorf("an index of a sharded fleet's events begins with %s", index.Fields[0].FieldPath)
		}
	}
}
