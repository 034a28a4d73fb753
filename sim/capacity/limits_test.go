package capacity

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dronefleet/dronefleet/deploy"
)

// elsewhere are the last fields of composite indexes that no sample writes: people do, or messages
// that are refused, at most 5 a second for each State Manager. Flags, depots and statuses do not rise.
var elsewhere = []string{"refusals.refusedAt", "placeChanges.changedAt", "drones.retiredAt", "orders.held", "orders.planningDepotId", "drones.status"}

// rare are the indexes that hold an entry only where something is wrong, which no sample has.
var rare = []string{"decisions.reason,appliedAt", "missions.failureReason,endTime"}

// F-AUD-14: the samples write every time that an index ends with, in ranges that they count unless its first field
// has many values. Each index of a sharded fleet is one of other fleets, some behind the shard.
func TestRising_IsThatOfTheIndexes(t *testing.T) {
	model, err := Stored()
	if err != nil {
		t.Fatal(err)
	}
	counted := func(x index) bool {
		for key := range model.times {
			if strings.HasPrefix(key, x.name()+"/") {
				return true
			}
		}
		return false
	}
	others := map[string]bool{"events.time": true, "orders.createdAt": true}
	for _, x := range compositeIndexes(deploy.FirestoreIndexes) {
		others[x.name()] = true
		last := x.collection + "." + x.fields[len(x.fields)-1]
		switch {
		case slices.Contains(elsewhere, last):
		case model.times[last] == nil:
			t.Errorf("an index ends with %s, which no sample writes", last)
		case !x.spreads() && !counted(x) && !slices.Contains(rare, x.name()):
			t.Errorf("no sample writes an entry of %s", x.name())
		}
		alone := last == "orders.deadline" || x.fields[0] == "dueArea" // asked for with a status or an area only
		if exemptFields(deploy.FirestoreIndexes)[last] && !alone {
			t.Errorf("%s ends an index and is exempt from indexing", last)
		}
	}
	for _, x := range compositeIndexes(deploy.ShardedFirestoreIndexes) {
		if !others[x.name()] {
			t.Errorf("only a sharded fleet has an index %s", x.name())
		}
	}
}

// F-HIS-03, F-AUD-14: at three times the mean, no range of an index is written faster than an index takes: up to
// the fleet from which docs/auditing.md tells to shard with the indexes of all, and with a million drones with
// those of sharded fleets. No document is written more than once a second.
func TestRising_StaysBelowTheLimits(t *testing.T) {
	model, err := Stored()
	if err != nil {
		t.Fatal(err)
	}
	nominal := Timing{Batch: 1, Cycles: 0.1}
	for _, drones := range []int{shardFrom, 1_000_000} {
		f := Typical(drones, 0, true)
		for i, r := range model.rising(f, nominal) {
			if r.Factor > 1 {
				t.Errorf("%s has %.0f writes a second at the peak of %d drones", r.What, r.Peak, drones)
			}
			if i == 0 && !f.Sharded && r.Factor < 0.7 {
				t.Errorf("the fastest, %s, has only %.0f writes a second; docs/auditing.md shards too early", r.What, r.Peak)
			}
		}
		for _, r := range model.hottest(f, nominal) {
			if r.Factor > 1.01 { // a drone near a stop reports once a second, and decisions write it too
				t.Errorf("%s is written %.2f times a second", r.What, r.Peak)
			}
		}
	}
	for _, s := range samples(t) { // a document is an entity's or an area's, so its rate does not grow with the fleet
		for collection, rate := range s.Hottest {
			if rate > 0.5 {
				t.Errorf("a document of %s is written %.2f times a second, in the mean", collection, rate)
			}
		}
	}
}

func samples(t *testing.T) (list []Sample) {
	t.Helper()
	if err := json.Unmarshal(stored, &list); err != nil || len(list) == 0 {
		t.Fatal(len(list), err)
	}
	return list
}

// An entry that moves counts in both ranges, one that stays in none, and one whose time moves once.
func TestEntryCounter_CountsEachRangeThatAWriteChanges(t *testing.T) {
	c, times := newEntryCounter(), map[string]float64{}
	text := func(s string) *firestorepb.Value {
		return &firestorepb.Value{ValueType: &firestorepb.Value_StringValue{StringValue: s}}
	}
	at := func(second int64) *firestorepb.Value {
		return &firestorepb.Value{ValueType: &firestorepb.Value_TimestampValue{TimestampValue: &timestamppb.Timestamp{Seconds: second}}}
	}
	write := func(fields map[string]*firestorepb.Value, mask ...string) {
		w := &firestorepb.Write{Operation: &firestorepb.Write_Update{Update: &firestorepb.Document{Name: "d/missions/M", Fields: fields}}}
		if len(mask) > 0 {
			w.UpdateMask = &firestorepb.DocumentMask{FieldPaths: mask}
		}
		c.wrote(w, "missions", times)
	}
	write(map[string]*firestorepb.Value{"status": text("ACTIVE"), "startTime": at(1)})
	write(map[string]*firestorepb.Value{"status": text("COMPLETED"), "endTime": at(2)}, "status", "endTime")
	write(map[string]*firestorepb.Value{"revision": at(3)}, "revision")
	write(map[string]*firestorepb.Value{"endTime": at(4)}, "endTime")
	write(map[string]*firestorepb.Value{"status": text("FAILED")}, "status", "gone")
	want := map[string]float64{"missions.status,endTime/status=COMPLETED": 3, "missions.status,endTime/status=FAILED": 1}
	if !maps.Equal(times, want) {
		t.Errorf("counted %v, want %v", times, want)
	}
}

// F-CAP-01: the model finds the limits that are known from reading the code.
func TestBreaks_AreThoseReadInTheCode(t *testing.T) {
	model, err := Stored()
	if err != nil {
		t.Fatal(err)
	}
	read := map[string][2]int{ // from and to, in drones
		"optimizers: each runs every area, and one takes most locks":     {8_000, 10_000},
		"live feed of the whole fleet: one process decodes every report": {95_000, 105_000},
		"index: `time` of `events`":                                      {60_000, 80_000},
		"index: `createdAt` of `orders`, where `status=PENDING`":         {300_000, 350_000},
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
