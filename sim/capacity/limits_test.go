package capacity

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
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
// that are refused, at most 5 a second for each State Manager. Flags, depots and statuses do not rise.
var elsewhere = []string{"refusals.refusedAt", "placeChanges.changedAt", "drones.retiredAt", "orders.held", "orders.planningDepotId", "drones.status"}

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
		alone := last == "orders.deadline" || index.Fields[0].FieldPath == "dueArea" // asked for with a status or an area only
		if exemptFields(deploy.FirestoreIndexes)[last] && !alone {
			t.Errorf("%s ends an index and is exempt from indexing", last)
		}
	}
	f := Typical(shardFrom, 0, true)
	for i, r := range model.rising(f, Timing{Batch: 1, Cycles: 0.1}) {
		if r.Factor > 1.01 || i == 0 && r.Factor < 0.8 { // the samples leave it uncertain by a tenth
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

// tooFast are the indexed times that a million drones write too fast, and the fleet from which they do.
var tooFast = map[string]int{"`createdAt` of `orders`": 720_000}

// F-HIS-03: at three times the mean of a million drones, no indexed time rises faster than an index takes, events
// by as many shards as docs/auditing.md tells, but for those of tooFast. No document is written more than once a
// second but for a drone's own, which its reports write.
func TestRising_OfAMillionDrones(t *testing.T) {
	model, err := Stored()
	if err != nil {
		t.Fatal(err)
	}
	f := Typical(1_000_000, 1000, true)
	for _, r := range model.rising(f, Timing{Batch: 1, Cycles: 0.1}) {
		shards := 1
		if r.What == "`time` of `events`" {
			shards = shardsOfAMillion
			if least := int(math.Ceil(r.Factor)); least > shards || least < shards-2 {
				t.Errorf("docs/auditing.md tells a million drones to have %d shards; they need %d", shards, least)
			}
		}
		if from, known := tooFast[r.What]; known && math.Abs(float64(f.Drones)/r.Factor/float64(from)-1) < 0.02 {
			continue
		}
		if r.Factor/float64(shards) > 1 {
			t.Errorf("%s has %.0f writes a second at the peak of a million drones, in %d shards", r.What, r.Peak, shards)
		}
	}
	for _, r := range model.hottest(f, Timing{Batch: 1, Cycles: 0.1}) {
		if r.Factor > 1.01 {
			t.Errorf("%s is written %.2f times a second", r.What, r.Peak)
		}
	}
	page, err := os.ReadFile("../../docs/auditing.md")
	if err != nil {
		t.Fatal(err)
	}
	if told := fmt.Sprintf("%d for a million", shardsOfAMillion); !strings.Contains(string(page), told) {
		t.Errorf("docs/auditing.md does not say %q", told)
	}
}

// shardsOfAMillion is how many shards of events docs/auditing.md tells a million drones to have.
const shardsOfAMillion = 14

// F-CAP-01: the model finds the limits that are known from reading the code.
func TestBreaks_AreThoseReadInTheCode(t *testing.T) {
	model, err := Stored()
	if err != nil {
		t.Fatal(err)
	}
	read := map[string][2]int{ // from and to, in drones
		"optimizers: each runs every area, and one takes most locks": {8_000, 10_000},
		"live feed: one process decodes every report":                {95_000, 105_000},
		"index: `time` of `events`":                                  {60_000, 80_000},
		"index: `createdAt` of `orders`":                             {700_000, 740_000},
	}
	for _, b := range model.Breaks(Today) {
		if want, is := read[b.What]; is && (b.Locked < want[0] || b.Locked > want[1]) {
			t.Errorf("%s: from %d drones, want %d to %d", b.What, b.Locked, want[0], want[1])
		}
		delete(read, b.What)
	}
	for what := range read {
		t.Errorf("nothing breaks of %q", what)
	}
}

// Where each optimizer runs every area, ten areas share two processors. Where members own areas, a
// search has its processor, and with too few optimizers cycles come late. Ten members share ten areas
// evenly, so each area has a cycle in each interval.
func TestTiming_OfOptimizers(t *testing.T) {
	model, err := Stored()
	if err != nil {
		t.Fatal(err)
	}
	timing := func(owned bool, optimizers int) (t Timing) {
		f := Typical(10_000, 10, owned)
		f.Optimizers = optimizers
		model.timeCycles(f, Today, &t)
		return t
	}
	if at := timing(false, 2); at.Share > 0.25 || at.Cycles < 0.08 {
		t.Errorf("with a lock for each cycle a search gets %.2f of a processor, and an area %.3f cycles a second", at.Share, at.Cycles)
	}
	if at := timing(true, 10); at.Share < 0.99 || at.Cycles < 0.099 {
		t.Errorf("an owner's search gets %.2f of a processor, and an area %.3f cycles a second", at.Share, at.Cycles)
	}
	if at := timing(true, 2); at.Share < 0.99 || at.Cycles > 0.03 {
		t.Errorf("two owners of ten areas: a search gets %.2f of a processor, and an area %.3f cycles a second", at.Share, at.Cycles)
	}
}
