package firestoretx

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/deploy"
)

// indexConfig is the content of firestore.indexes.json.
type indexConfig struct {
	Indexes []struct {
		CollectionGroup string
		Fields          []struct{ FieldPath string }
	}
	FieldOverrides []struct {
		CollectionGroup, FieldPath string
		Indexes                    []any
		TTL                        bool
	}
}

// audited are the indexed times by which auditors, learners and members sort, filter and count. An index on rising
// values caps a collection at 500 writes a second; docs/capacity.md shows that these collections
// stay below.
var audited = map[string][]string{
	Events: {"time"}, Decisions: {"appliedAt"}, Cycles: {"startedAt"}, Missions: {"startTime", "endTime"}, Orders: {"createdAt", "deliveredAt"},
	Drones: {"retiredAt"}, Maintenance: {"at"}, Discards: {"discardedAt"}, Replays: {"replayedAt"}, Refusals: {"refusedAt"}, PlaceChanges: {"changedAt"}, LockBreaks: {"brokenAt"}, AlertAcks: {"at"}, Keys: {"createdAt", "revokedAt"},
	Members: {"beatAt", "shareSince"}, // asked by the members themselves
}

// F-DOC-03, F-AUD-03, F-AUD-04, F-AUD-16: the index configurations name existing fields and exempt
// every rising value that auditors do not query. They also exempt the lists of a cycle, whose
// entries would each be indexed. Fleets with too many events for one index also exempt the events'
// time.
func TestIndexConfiguration_FitsTheDocuments(t *testing.T) {
	t.Run("default", func(t *testing.T) { checkIndexConfig(t, deploy.FirestoreIndexes, audited, false) })
	sharded := maps.Clone(audited)
	delete(sharded, Events)
	delete(sharded, Orders)
	t.Run("sharded", func(t *testing.T) { checkIndexConfig(t, deploy.ShardedFirestoreIndexes, sharded, true) })
}

func checkIndexConfig(t *testing.T, content []byte, audited map[string][]string, sharded bool) {
	var config indexConfig
	if err := json.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	exempt := map[string]map[string]bool{}
	for _, o := range config.FieldOverrides {
		if exempt[o.CollectionGroup] == nil {
			exempt[o.CollectionGroup] = map[string]bool{}
		}
		exempt[o.CollectionGroup][o.FieldPath] = len(o.Indexes) == 0
	}
	fields := documentFields()
	checkCollectionsExempt(t, Cycles, cycleCodec, exempt)
	checkCollectionsExempt(t, Drones, droneCodec, exempt)
	checkCollectionsExempt(t, DroneTypes, droneTypeCodec, exempt)
	checkCollectionsExempt(t, Maintenance, maintenanceCodec, exempt)
	checkCollectionsExempt(t, Refusals, refusalCodec, exempt)
	checkCollectionsExempt(t, PlaceChanges, placeChangeCodec, exempt)
	checkCollectionsExempt(t, LockBreaks, lockBreakCodec, exempt)
	checkCollectionsExempt(t, AlertAcks, alertAckCodec, exempt)
	checkCollectionsExempt(t, Keys, keyCodec, exempt)
	checkCollectionsExempt(t, Members, memberCodec, exempt)
	checkCollectionsExempt(t, Learned, areaLearnedCodec, exempt)
	checkCollectionsExempt(t, Webhooks, webhookCodec, exempt)
	checkCollectionsExempt(t, WebhookDeliveries, webhookDeliveryCodec, exempt)
	for collection, names := range fields {
		for name, holdsTime := range names {
			rises := holdsTime || slices.Contains([]string{"fence", "messageId", "replayOf", "eventId", "flightSeconds", "landings"}, name) // F-REG-13
			switch asked := slices.Contains(audited[collection], name); {
			case rises && !asked && !exempt[collection][name]:
				t.Errorf("%s.%s is sequential and not exempted from indexing", collection, name)
			case asked && exempt[collection][name]:
				t.Errorf("%s.%s is exempted from indexing, and auditors ask for it", collection, name)
			}
		}
		for name := range exempt[collection] {
			if _, exists := names[name]; !exists {
				t.Errorf("%s.%s is configured, but no document has it", collection, name)
			}
		}
	}
	if n := len(config.Indexes); n != 32 && !sharded || n > 36 {
		t.Errorf("%d composite indexes; a database without billing has 200, and each costs every write", n)
	}
	for _, index := range config.Indexes {
		for _, f := range index.Fields {
			if _, exists := fields[index.CollectionGroup][f.FieldPath]; !exists {
				t.Errorf("an index names %s.%s, and no document has it", index.CollectionGroup, f.FieldPath)
			}
		}
	}
}

// documentFields are the fields of the documents of each collection, and whether each holds a time.
func documentFields() map[string]map[string]bool {
	fields := map[string]map[string]bool{ // name: holds a time
		Drones: fieldsOf(droneCodec), Orders: fieldsOf(orderCodec), Missions: fieldsOf(missionCodec),
		Decisions: fieldsOf(ledgerCodec), Cycles: fieldsOf(cycleCodec), Events: fieldsOf(eventCodec),
		Discards: fieldsOf(discardCodec), Replays: fieldsOf(replayCodec), Control: {"fence": false, seenAt: true},
		Learned: fieldsOf(travelCodec), DroneTypes: fieldsOf(droneTypeCodec), Maintenance: fieldsOf(maintenanceCodec),
		Refusals: fieldsOf(refusalCodec), PlaceChanges: fieldsOf(placeChangeCodec),
		LockBreaks: fieldsOf(lockBreakCodec), AlertAcks: fieldsOf(alertAckCodec), Keys: fieldsOf(keyCodec), Members: fieldsOf(memberCodec),
		Webhooks: fieldsOf(webhookCodec), WebhookSecrets: fieldsOf(webhookSecretsCodec), WebhookDeliveries: fieldsOf(webhookDeliveryCodec),
	}
	maps.Copy(fields[Learned], fieldsOf(demandCodec))
	maps.Copy(fields[Learned], fieldsOf(areaLearnedCodec))
	fields[Missions][homeOfMission] = false
	fields[Drones][missionRevision], fields[Drones][bindingChanges] = false, false
	fields[Events][shard] = false
	for _, collection := range []string{Decisions, Cycles, Events, Discards, Replays, Refusals, AlertAcks, WebhookDeliveries, Orders, Missions, Members} {
		fields[collection][expireAt] = true
	}
	return fields
}

// checkCollectionsExempt wants lists and maps exempt, each entry of which would have an index
// entry.
func checkCollectionsExempt[T any](t *testing.T, collection string, c codec[T], exempt map[string]map[string]bool) {
	for _, f := range c {
		var v T
		if holds := f.set(&v, []any{}) == nil || f.set(&v, map[string]any{}) == nil; holds && !exempt[collection][f.name] {
			t.Errorf("%s.%s is a list or a map and not exempted from indexing", collection, f.name)
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
