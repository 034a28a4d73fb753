package deploy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/testkit/tfmodule"
)

// indexFile is firestore.indexes.json, read without Terraform's help.
type indexFile struct {
	Indexes []struct {
		CollectionGroup, QueryScope string
		Fields                      []struct{ FieldPath, Order, ArrayConfig string }
	}
	FieldOverrides []struct {
		CollectionGroup, FieldPath string
		TTL                        bool
		Indexes                    []struct{ QueryScope, Order, ArrayConfig string }
	}
}

// checkFirestore holds the module's database to the index file and to the
// collections of the code.
func checkFirestore(p *tfmodule.Plan, way map[string]cty.Value, w *world, files tfmodule.Files) []string {
	name := "firestore.indexes.json"
	if _, sharded := way["sharded_indexes"]; sharded {
		name = "firestore.indexes.sharded.json"
	}
	var file indexFile
	if err := json.Unmarshal(files[name], &file); err != nil {
		return []string{err.Error()}
	}
	_, enterprise := way["firestore_edition"]
	_, sharded := way["sharded_indexes"]
	found := checkDatabase(p, enterprise)
	found = append(found, checkFields(p, w, file, enterprise)...)
	found = append(found, checkIndexes(p, file, enterprise, sharded)...)
	rules := p.Of("google_firebaserules_ruleset")
	if len(rules) != 1 || len(p.Of("google_firebaserules_release")) != 1 {
		return append(found, "no security rules are released")
	}
	if source, ok := rules[0].Only("source"); ok {
		if f, ok := source.Only("files"); !ok || !closed(f.Text("content")) {
			found = append(found, "the security rules let somebody in")
		}
	}
	return found
}

func checkDatabase(p *tfmodule.Plan, enterprise bool) []string {
	databases := p.Of("google_firestore_database")
	if len(databases) != 1 {
		return []string{fmt.Sprintf("%d databases, want 1", len(databases))}
	}
	var found []string
	edition := "STANDARD"
	if enterprise {
		edition = "ENTERPRISE"
	}
	for name, want := range map[string]string{
		"type":                              "FIRESTORE_NATIVE",
		"database_edition":                  edition,
		"concurrency_mode":                  "PESSIMISTIC",
		"point_in_time_recovery_enablement": "POINT_IN_TIME_RECOVERY_ENABLED",
		"delete_protection_state":           "DELETE_PROTECTION_ENABLED",
	} {
		if got := databases[0].Text(name); got != want {
			found = append(found, fmt.Sprintf("the database's %s is %s, want %s", name, got, want))
		}
	}
	for _, kind := range []string{"google_firestore_field", "google_firestore_index", "google_firestore_backup_schedule"} {
		for _, i := range p.Of(kind) {
			if i.Text("database") != databases[0].Text("name") {
				found = append(found, i.Address()+" is in another database")
			}
		}
	}
	return found
}

// expiring is the field by which a collection's documents expire.
const expiring = "expireAt"

// checkFields holds the exemptions to the index file. Enterprise indexes nothing by
// itself, so only the fields by which documents expire are left.
func checkFields(p *tfmodule.Plan, w *world, file indexFile, enterprise bool) []string {
	var found, want, got []string
	describe := func(collection, field string, ttl bool, indexes []string) string {
		slices.Sort(indexes)
		return fmt.Sprintf("%s.%s ttl=%t indexes=%v", collection, field, ttl, indexes)
	}
	for _, o := range file.FieldOverrides {
		if enterprise && !o.TTL {
			continue
		}
		var indexes []string
		for _, i := range o.Indexes {
			indexes = append(indexes, i.Order+i.ArrayConfig)
		}
		want = append(want, describe(o.CollectionGroup, o.FieldPath, o.TTL, indexes))
	}
	expire := map[string]bool{}
	for _, f := range p.Of("google_firestore_field") {
		config, ok := f.Only("index_config")
		switch {
		case !ok && !enterprise:
			found = append(found, f.Address()+" says nothing of indexes, so it keeps the automatic ones")
		case ok && enterprise:
			found = append(found, f.Address()+" is exempted from indexes that Enterprise does not make")
		}
		var indexes []string
		for _, i := range config.Blocks["indexes"] {
			indexes = append(indexes, i.Text("order")+i.Text("array_config"))
		}
		_, ttl := f.Only("ttl_config")
		collection := f.Text("collection")
		if ttl && f.Text("field") == expiring {
			expire[collection] = true
		}
		got = append(got, describe(collection, f.Text("field"), ttl, indexes))
		if !slices.Contains(w.collections, collection) {
			found = append(found, fmt.Sprintf("%s: the code has no collection %s", f.Address(), collection))
		}
	}
	found = append(found, compare("field", want, got)...)
	return append(found, compare("TTL policy of",
		[]string{firestoretx.AlertAcks, firestoretx.Cycles, firestoretx.Decisions, firestoretx.Discards, firestoretx.Events, firestoretx.Members, firestoretx.Missions, firestoretx.Orders, firestoretx.Refusals, firestoretx.Replays, firestoretx.WebhookDeliveries}, slices.Sorted(maps.Keys(expire)))...)
}

// byHand are the indexes that Enterprise does not make by itself, for the queries that
// the binaries repeat and those of docs/auditing.md.
var byHand = []string{
	"alertAcks, COLLECTION, at ASCENDING",
	"alertAcks, COLLECTION, by ASCENDING",
	"cycles, COLLECTION, startedAt ASCENDING",
	"decisions, COLLECTION, appliedAt ASCENDING",
	"decisions, COLLECTION, warning ASCENDING",
	"discards, COLLECTION, discardedAt ASCENDING",
	"discards, COLLECTION, discardedBy ASCENDING",
	"drones, COLLECTION, currentMissionId ASCENDING",
	"drones, COLLECTION, homeDepotId ASCENDING, status ASCENDING",
	"drones, COLLECTION, status ASCENDING",
	"drones, COLLECTION, unregistered ASCENDING",
	"events, COLLECTION, reason ASCENDING",
	"keys, COLLECTION, createdAt ASCENDING",
	"keys, COLLECTION, createdBy ASCENDING",
	"keys, COLLECTION, revokedAt ASCENDING",
	"keys, COLLECTION, revokedBy ASCENDING",
	"learned, COLLECTION, speedKmh ASCENDING",
	"lockBreaks, COLLECTION, brokenAt ASCENDING",
	"lockBreaks, COLLECTION, brokenBy ASCENDING",
	"locks, COLLECTION, lockId ASCENDING",
	"maintenance, COLLECTION, at ASCENDING",
	"maintenance, COLLECTION, by ASCENDING",
	"missions, COLLECTION, commandPending ASCENDING",
	"missions, COLLECTION, revokePending ASCENDING",
	"missions, COLLECTION, endTime ASCENDING",
	"missions, COLLECTION, startTime ASCENDING",
	"orders, COLLECTION, requesterId ASCENDING",
	"orders, COLLECTION, status ASCENDING, held ASCENDING",
	"orders, COLLECTION, status ASCENDING, late ASCENDING",
	"placeChanges, COLLECTION, changedAt ASCENDING",
	"refusals, COLLECTION, orderId ASCENDING",
	"refusals, COLLECTION, outcome ASCENDING",
	"refusals, COLLECTION, refusedAt ASCENDING",
	"replays, COLLECTION, replayedAt ASCENDING",
	"replays, COLLECTION, replayedBy ASCENDING",
	"webhookDeliveries, COLLECTION, webhookId ASCENDING, status ASCENDING",
}

func checkIndexes(p *tfmodule.Plan, file indexFile, enterprise, sharded bool) []string {
	var want, got []string
	if enterprise {
		want = append(want, byHand...)
		if !sharded {
			want = append(want, "events, COLLECTION, time ASCENDING", "orders, COLLECTION, createdAt ASCENDING", "orders, COLLECTION, deliveredAt ASCENDING")
		}
	}
	for _, i := range file.Indexes {
		parts := []string{i.CollectionGroup, i.QueryScope}
		for _, f := range i.Fields {
			parts = append(parts, f.FieldPath+" "+f.Order+f.ArrayConfig)
		}
		want = append(want, strings.Join(parts, ", "))
	}
	for _, i := range p.Of("google_firestore_index") {
		parts := []string{i.Text("collection"), i.Text("query_scope")}
		for _, f := range i.Blocks["fields"] {
			parts = append(parts, f.Text("field_path")+" "+f.Text("order")+f.Text("array_config"))
		}
		got = append(got, strings.Join(parts, ", "))
	}
	return compare("index", want, got)
}

// closed reports whether security rules let nobody in: their only allow is one
// that never holds, and it stands for every document.
func closed(rules string) bool {
	var code []string
	for line := range strings.Lines(rules) {
		text, _, _ := strings.Cut(line, "//")
		code = append(code, strings.Fields(text)...)
	}
	text := strings.Join(code, " ")
	return strings.Count(text, "allow ") == 1 &&
		strings.Contains(text, "match /databases/{database}/documents { match /{document=**} { allow read, write: if false; } }")
}
