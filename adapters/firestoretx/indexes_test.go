package firestoretx

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
)

// The index configuration names fields that exist, and exempts every time and
// whatever else rises: an index on sequential values caps a collection at 500
// writes a second. It also exempts the lists of a cycle, each entry of which an
// index would have.
func TestIndexConfigurationFitsTheDocuments(t *testing.T) {
	var config struct {
		FieldOverrides []struct {
			CollectionGroup, FieldPath string
			Indexes                    []any
			TTL                        bool
		}
	}
	if err := json.Unmarshal(deploy.FirestoreIndexes, &config); err != nil {
		t.Fatal(err)
	}
	exempt := map[string]map[string]bool{}
	for _, o := range config.FieldOverrides {
		if exempt[o.CollectionGroup] == nil {
			exempt[o.CollectionGroup] = map[string]bool{}
		}
		exempt[o.CollectionGroup][o.FieldPath] = len(o.Indexes) == 0
	}
	fields := map[string]map[string]bool{ // name: holds a time
		Drones: fieldsOf(droneCodec), Orders: fieldsOf(orderCodec), Missions: fieldsOf(missionCodec),
		Decisions: fieldsOf(ledgerCodec), Cycles: fieldsOf(cycleCodec), Events: fieldsOf(eventCodec),
		Discards: fieldsOf(discardCodec),
	}
	fields[Drones][missionRevision] = false
	for _, collection := range []string{Decisions, Cycles, Events, Discards} {
		fields[collection][expireAt] = true
	}
	for _, f := range cycleCodec {
		if isList := f.set(&domain.Cycle{}, []any{}) == nil; isList && !exempt[Cycles][f.name] {
			t.Errorf("%s.%s is a list and not exempted from indexing", Cycles, f.name)
		}
	}
	for collection, names := range fields {
		for name, holdsTime := range names {
			if rises := holdsTime || name == "fence" || name == "messageId"; rises && !exempt[collection][name] {
				t.Errorf("%s.%s is sequential and not exempted from indexing", collection, name)
			}
		}
		for name := range exempt[collection] {
			if _, exists := names[name]; !exists {
				t.Errorf("%s.%s is configured, but no document has it", collection, name)
			}
		}
	}
}

// fieldsOf lists a codec's fields and which of them hold a time: those that
// refuse a string because they want a timestamp.
func fieldsOf[T any](c codec[T]) map[string]bool {
	names := map[string]bool{}
	for _, f := range c {
		var v T
		names[f.name] = f.set(&v, time.Now()) == nil
	}
	return names
}
