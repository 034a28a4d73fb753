package explore

import (
	"flag"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

var limit = flag.Int("limit", 0, "explore `states` of each world, beyond which no level is begun; default 3000, and 400000 in the gate")

func statesOfEach(t *testing.T) int {
	if *limit > 0 {
		return *limit
	}
	return longtest.Size(t, "states of each world", 3_000, longRun)
}

// All invariants of doc.go hold in every history of every world, to the depth that the
// test logs.
func TestExplore_TheContractHoldsInEveryHistory(t *testing.T) {
	limit := statesOfEach(t)
	var mu sync.Mutex
	var states int
	seen := map[string]bool{}
	t.Run("worlds", func(t *testing.T) {
		for _, w := range Worlds {
			t.Run(w.Name, func(t *testing.T) {
				t.Parallel()
				r := Explore(w, Contract(limitsOf(w)), limit)
				t.Log(r)
				if r.Violation != nil {
					t.Errorf("%s\n%s", r.Violation, r.Story)
				}
				if known := w.States; 0 < known && known <= limit && (!r.Whole || r.States != known) {
					t.Errorf("%d states, whole %t; want all %d: correct the world, or what is modelled", r.States, r.Whole, known)
				}
				mu.Lock()
				defer mu.Unlock()
				states += r.States
				for _, s := range r.Seen {
					seen[s] = true
				}
			})
		}
	})
	t.Logf("%d states", states)
	// The exploration proves nothing unless its histories reach these outcomes.
	wanted := slices.Clone(outcomesToSee)
	switch {
	case limit < 50_000:
		return
	case limit >= longRun:
		wanted = append(wanted, outcomesOfLongRuns...)
	}
	for _, want := range wanted {
		if !seen[want] {
			t.Errorf("no history reaches outcome %q", want)
		}
	}
	if least := 1_000_000; states < least {
		t.Errorf("explored %d states, want at least %d", states, least)
	}
}

var outcomesToSee = []string{
	"mission ACTIVE ", "mission COMPLETED ", "mission FAILED NOT_ACKED", "mission FAILED ABORTED_BY_DRONE", "mission FAILED DRONE_FAULT",
	"mission FAILED CONTACT_LOST", "mission FAILED STALLED", "mission FAILED WITHDRAWN", "mission FAILED RECALLED",
	"order PENDING, held false", "order PENDING, held true", "order ASSIGNED, held false", "order IN_DELIVERY, held false",
	"order DELIVERED, held false", "order CANCELLED, held false",
	"drone IDLE", "drone MOVING", "drone DELIVERING", "drone CHARGING", "drone MAINTENANCE", "drone PROBLEM", "drone EMERGENCY", "drone UNKNOWN", "ghost",
	"decision APPLIED ", "decision REJECTED STALE_FENCE", "decision REJECTED FENCE_UNKNOWN", "decision REJECTED FENCE_MISSING", "decision REJECTED DECISION_EXPIRED", "decision REJECTED DRONE_UNKNOWN",
	"decision REJECTED DRONE_UNREGISTERED", "decision REJECTED DRONE_GROUNDED", "decision REJECTED DRONE_NOT_IDLE", "decision REJECTED DRONE_SILENT", "decision REJECTED LOW_BATTERY", "decision REJECTED DRONE_CHANGED",
	"decision REJECTED ORDER_UNKNOWN", "decision REJECTED ORDER_NOT_PENDING", "decision REJECTED ORDER_HELD", "decision REJECTED ORDER_CHANGED", "decision REJECTED DRONE_NOT_ALLOWED",
	"decision REJECTED MISSION_NOT_ACTIVE", "decision REJECTED NOT_AMENDABLE", "decision REJECTED REVISION_CHANGED", "decision REJECTED ORDER_ABOARD",
	"decision REJECTED BAD_ROUTE", "decision REJECTED OVER_CAPACITY",
	"refused STALE_TELEMETRY", "refused FUTURE_TIMESTAMP", "refused TOO_MANY_STOPS", "refused DUPLICATE_ORDER", "refused ORDER_SUPERSEDED",
	"refused NOT_PENDING", "refused ORDER_HELD", "refused PLANNED_ELSEWHERE", "refused DEPOT_UNKNOWN", "refused HANDED_OVER_BEFORE", "refused TOO_MANY_HAND_OVERS", "refused STALE_FENCE",
	"refused NOT_FOUND", "refused FENCE_UNKNOWN", "refused FENCE_MISSING", "refused IN_USE",
	"refused ORDER_CONFLICT", "refused CANCEL_TOO_LATE", "refused ALREADY_CANCELLED", "refused DECISION_CONFLICT",
}

// outcomesOfLongRuns need longer histories than a default run reaches: one of two orders is
// taken away before its pickup, and put down before the decision arrives.
var outcomesOfLongRuns = []string{"decision REJECTED STOP_COMMITTED"}

// longRun is a limit, in states, at which those outcomes are reached.
const longRun = 400_000

// Documents or messages that differ in any field get different numbers.
func TestPool_TellsEveryFieldApart(t *testing.T) {
	stop := 1
	tellsFieldsApart(t, newPool[domain.Drone](), domain.Drone{})
	tellsFieldsApart(t, newPool[domain.Order](), domain.Order{})
	tellsFieldsApart(t, newPool[domain.Mission](), domain.Mission{})
	tellsFieldsApart(t, newPool[domain.Decision](), domain.Decision{})
	tellsFieldsApart(t, newPool[domain.LedgerEntry](), domain.LedgerEntry{})
	tellsFieldsApart(t, newPool[domain.Telemetry](), domain.Telemetry{})
	p := newPool[domain.Telemetry]()
	if p.intern(domain.Telemetry{CompletedStops: &stop}) != p.intern(domain.Telemetry{CompletedStops: new(1)}) {
		t.Error("equal counts behind two pointers get different numbers")
	}
}

func tellsFieldsApart[T any](t *testing.T, p *pool[T], zero T) {
	t.Helper()
	ids := []id{p.intern(zero)}
	for i := range reflect.TypeFor[T]().NumField() {
		v := zero
		field := reflect.ValueOf(&v).Elem().Field(i)
		set(field)
		n := p.intern(v)
		if slices.Contains(ids, n) {
			t.Errorf("values of %T that differ in %s get the same number", zero, reflect.TypeFor[T]().Field(i).Name)
		}
		ids = append(ids, n)
		if p.intern(v) != n {
			t.Errorf("equal values of %T get different numbers", zero)
		}
	}
}

// set gives a value that is not zero.
func set(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Struct:
		if v.Type() == timeType {
			v.Set(reflect.ValueOf(start.Add(time.Nanosecond)))
			return
		}
		set(v.Field(0))
	}
}

// A story tells who did what and what followed. This one shows why only decisions may bind
// drones.
func TestStory_ADroneIsFreedBeforeItsCommandArrives(t *testing.T) {
	i := slices.IndexFunc(removals, func(r removal) bool { return r.without == "any IDLE frees an unacked drone" })
	r := removals[i].explore(10_000)
	if r.Violation == nil {
		t.Fatal("no invariant is violated")
	}
	got := r.Violation.String() + "\n" + r.Story.String()
	want := strings.TrimSpace(`
AIR: drone D1 flies M-X1, which was given up as NOT_ACKED
 1. at 0  Snapshot of an optimizer; it plans for D1
      -> sent: decision X1: D1 serves [O1], fence 1, snapshot at 0.001
 2. at 0  State Manager handles and acks the decision X1: D1 serves [O1], fence 1, snapshot at 0.001
      -> D1 is MOVING on M-X1; M-X1 is ACTIVE, stops reached 0; O1 is ASSIGNED; X1 is APPLIED; sent: command M-X1 for D1, expires at 1.002
 3. at 0  A tick passes
 4. at 1  Drone D1 waits and reports
      -> sent: report of D1: IDLE, measured at 1
 5. at 1  State Manager handles and acks the report of D1: IDLE, measured at 1
      -> D1 is IDLE; M-X1 is FAILED NOT_ACKED, stops reached 0; O1 is PENDING; sent: revocation of M-X1 for D1
 6. at 1  Drone D1 receives the command M-X1 for D1, expires at 1.002
      -> in truth D1 flies M-X1
`)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
