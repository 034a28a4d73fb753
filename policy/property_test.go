package policy

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/domain"
)

// TestScenarios_KeepTheInvariants lets anything happen in any order. After every step the world
// checks, by itself, that no drone and no order is in two ACTIVE missions (I1),
// that every status change is legal and final ones final (I2), that no order is
// lost (I3), that lastUpdate and fences never go back (I4, I5), that a decision
// has one outcome and is applied whole or not at all (I6, I7), that events fold
// to the documents revision by revision (I8), that a bound drone is never IDLE,
// that no report binds a drone, that a message that comes again changes
// nothing, and that no policy changes its input or answers one input in two
// ways.
func TestScenarios_KeepTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scenarioGenerator.Draw(t, "scenario")
		if err := s.run(contract()); err != nil {
			t.Fatalf("%v\nin%s", err, s)
		}
	})
}

// TestScenarios_GetAnywhere guards the test above against proving nothing: the
// scenarios must, among themselves, come to everything that can happen.
func TestScenarios_GetAnywhere(t *testing.T) {
	seen := map[string]int{}
	for seed := range 400 {
		w := scenarioGenerator.Example(seed).happen(contract())
		for _, m := range w.missions {
			seen["mission "+string(m.Status)+string(m.FailureReason)]++
		}
		for _, o := range w.orders {
			seen[fmt.Sprintf("order %s, held %t, late %t", o.Status, o.Held, o.Late)]++
		}
		for _, e := range w.ledger {
			seen["decision "+outcome(e)]++
		}
		if len(w.revokes) > 0 {
			seen["ghost"]++
		}
	}
	for _, want := range []string{
		"mission ACTIVE", "mission COMPLETED", "mission FAILEDNOT_ACKED", "mission FAILEDABORTED_BY_DRONE", "mission FAILEDDRONE_FAULT",
		"mission FAILEDCONTACT_LOST", "mission FAILEDWITHDRAWN",
		"order PENDING, held false, late false", "order PENDING, held true, late false", "order ASSIGNED, held false, late false",
		"order IN_DELIVERY, held false, late false", "order DELIVERED, held false, late false", "order CANCELLED, held false, late false",
		"decision APPLIED", "decision FENCE_MISSING", "decision FENCE_UNKNOWN", "decision STALE_FENCE", "decision DECISION_EXPIRED", "decision DRONE_NOT_IDLE", "decision DRONE_SILENT",
		"decision LOW_BATTERY", "decision DRONE_CHANGED", "decision ORDER_UNKNOWN", "decision ORDER_NOT_PENDING", "decision ORDER_HELD",
		"decision ORDER_CHANGED", "decision BAD_ROUTE", "ghost",
	} {
		if seen[want] == 0 {
			t.Errorf("no scenario comes to %q", want)
		}
	}
	if t.Failed() {
		t.Log(seen)
	}
}

// A batch is reports of one drone, some of them twice, in any order, as one
// transaction may get them.
type batch struct {
	situation int
	reports   []domain.Telemetry
}

var batchGenerator = rapid.Custom(func(t *rapid.T) batch {
	b := batch{situation: rapid.IntRange(0, len(droneSituations)-1).Draw(t, "situation")}
	seconds := rapid.SliceOfNDistinct(rapid.IntRange(1, 60), 1, 8, rapid.ID).Draw(t, "seconds")
	for _, s := range seconds {
		claim := rapid.SampledFrom(claims).Draw(t, "claim")
		name := rapid.SampledFrom(named).Draw(t, "mission")
		r, _ := claimed(claim, missionNamed(name), "early")
		r.Timestamp = at(float64(s))
		r.Position = rapid.SampledFrom([]domain.Position{awayAt, depotAt, warehouseAt, hospitalsAt[0]}).Draw(t, "place")
		b.reports = append(b.reports, r)
		if rapid.Bool().Draw(t, "twice") {
			b.reports = append(b.reports, r)
		}
	}
	b.reports = rapid.Permutation(b.reports).Draw(t, "arrival")
	return b
})

// TestBatches_FoldLikeSingleReports shows that a batch folded in timestamp order has one result,
// however it arrived and however it is cut into transactions. Its merged change is that result.
// F-TEL-01, F-TEL-02
func TestBatches_FoldLikeSingleReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := batchGenerator.Draw(t, "batch")
		if err := checkBatch(contract(), b); err != nil {
			t.Fatalf("%s: %v", droneSituations[b.situation].name, err)
		}
	})
}

func checkBatch(r rules, b batch) error {
	w := newWorld(r)
	droneSituations[b.situation].build(w)
	began := w.binding("D1")
	sorted := slices.Clone(b.reports)
	slices.SortStableFunc(sorted, func(x, y domain.Telemetry) int { return x.Timestamp.Compare(y.Timestamp) })
	once := slices.CompactFunc(slices.Clone(sorted), func(x, y domain.Telemetry) bool { return x.Timestamp.Equal(y.Timestamp) })

	now := at(62)
	end, merged := foldBatch(r, began, sorted, now)
	endOnce, _ := foldBatch(r, began, once, now)
	half, _ := foldBatch(r, began, sorted[:len(sorted)/2], now)
	endCut, _ := foldBatch(r, half, sorted[len(sorted)/2:], now)

	var all []error
	complain := func(when bool, what string) {
		if when {
			all = append(all, errors.New(what))
		}
	}
	complain(!reflect.DeepEqual(end, endOnce), "doubled reports make a difference")
	complain(!reflect.DeepEqual(end, endCut), "cutting the batch makes a difference")
	complain(merged.Drone == nil || !reflect.DeepEqual(*merged.Drone, end.Drone), "the merged change is not the drone's end")
	for _, m := range merged.Missions {
		complain(!reflect.DeepEqual(m, *end.Mission), "the merged change is not the mission's end")
	}
	for _, o := range merged.Orders {
		complain(!reflect.DeepEqual(o, end.Orders[o.ID]), "the merged change is not the order's end")
	}
	w.now = now
	w.tell(merged)
	return errors.Join(append(all, w.err())...)
}

func foldBatch(r rules, b Binding, reports []domain.Telemetry, now time.Time) (Binding, Change) {
	var merged Change
	for _, t := range reports {
		next, c, err := r.telemetry(b, t, now)
		if err == nil {
			b, merged = next, merged.Merge(c)
		}
	}
	return b, merged
}

// TestFenceLess_ComparesByValue holds fences against big numbers of any width. L-FENCE-05
func TestFenceLess_ComparesByValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64Max(1e18).Draw(t, "a"), rapid.Uint64Max(1e18).Draw(t, "b")
		if rapid.Bool().Draw(t, "near") {
			b = a + rapid.Uint64Max(2).Draw(t, "more")
		}
		wide := func(n uint64, label string) string {
			return fmt.Sprintf("%0*d", rapid.SampledFrom([]int{1, 15, 19}).Draw(t, label), n)
		}
		if x, y := wide(a, "width of a"), wide(b, "width of b"); FenceLess(x, y) != (a < b) {
			t.Fatalf("%s < %s is %t", x, y, !(a < b))
		}
	})
	if !FenceLess("", "1") || FenceLess("1", "") || FenceLess("", "") {
		t.Error("no fence is not below all")
	}
}
