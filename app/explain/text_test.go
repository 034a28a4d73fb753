package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
)

// F-ORD-06: a time of another day is shown with its day.
func TestWriteText_ShowsTheDaysOfTimes(t *testing.T) {
	now := time.Date(2026, 11, 26, 20, 0, 0, 0, time.UTC)
	soon, far := now.Add(time.Minute), now.AddDate(0, 0, 3)
	x := OrderExplanation{OrderID: "O1", ReadTime: now, Deadline: time.Date(1970, 1, 1, 0, 15, 0, 0, time.UTC), Why: &planner.Explanation{
		Plan:    planner.Outcome{DroneID: "D1", Arrival: &far, LateMinutes: 4320},
		Nearest: []planner.Candidate{{DroneID: "D1", Arrival: soon}, {DroneID: "D2", Arrival: far, JoinArrival: &far}},
	}}
	text := written(t, x)
	for _, want := range []string{
		"due 1970-01-01 00:15:00 UTC", "delivers at 2026-11-29 20:00:00 UTC", "0.0  20:01:00             nothing", "could deliver at 2026-11-29 20:00:00",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestWriteText_SaysThatNoDroneIsNear(t *testing.T) {
	for reason, want := range map[string]string{"": "No drone of the area could fly it alone", "no_compatible_warehouse": "no warehouse supplies the product"} {
		text := written(t, OrderExplanation{OrderID: "O1", Why: &planner.Explanation{Plan: planner.Outcome{Reason: reason}}})
		if !strings.Contains(text, want) || strings.Contains(text, "LACKS") {
			t.Error(text)
		}
	}
}

// F-ORD-06: an order that a drone has is compared with the others, and a held one is planned as if
// it were released.
func TestWriteText_ExplainsEveryOpenOrder(t *testing.T) {
	has := planner.Outcome{DroneID: "D1", MissionID: "M1"}
	for want, x := range map[string]OrderExplanation{
		"Its mission: drone D1, on mission M1, delivers it.": {Status: "ASSIGNED", Why: &planner.Explanation{Plan: has}},
		"It was held. If it were released, a new plan":       {Status: "PENDING", Held: true, Why: &planner.Explanation{}},
		"It was aboard: no other drone could take it.":       {Status: "IN_DELIVERY"},
	} {
		if text := written(t, x); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func written(t *testing.T, x OrderExplanation) string {
	t.Helper()
	var b strings.Builder
	if err := WriteText(&b, x); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
