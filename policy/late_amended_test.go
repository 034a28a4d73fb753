package policy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/domain"
)

// amendedFlight is a flight whose mission is changed under way: an order is added, taken
// away, or both. The drone flies the new route some seconds later, or never hears of it.
type amendedFlight struct {
	flight
	amendment domain.Decision
	decided   time.Time
}

// amendedFlightGenerator generates flights of drones that count their stops, as those that
// support amendments do. The report from the last stop before the change arrives at once.
var amendedFlightGenerator = rapid.Custom(func(t *rapid.T) amendedFlight {
	var f amendedFlight
	ids := []domain.OrderID{"O1", "O2"}
	for i, id := range append(slices.Clone(ids), "O3") {
		f.orders = append(f.orders, openOrder(id, i))
	}
	f.decision = plan("X", "D1", ids...)
	far := domain.Position{Lat: 48.83, Lon: 2.34} // far enough to turn before it
	f.orders[1].Pickup, f.decision.Route[2].Position = &far, far
	kept := rapid.IntRange(1, 3).Draw(t, "stops kept") // the depot, and up to both pickups
	f.amendment = f.decision
	f.amendment.ID, f.amendment.AmendsMissionID, f.amendment.AmendsRevision = "Y", "M-X", 1
	f.amendment.PayloadHash = "another"
	f.amendment.OrderIDs, f.amendment.Route = changedRoute(t, f.decision, kept)

	seconds := 5.0
	obeys := rapid.Bool().Draw(t, "obeys")
	obeyed := false
	says := func(p domain.Position, status domain.DroneStatus, mission domain.MissionID, completed int, delayed bool) {
		r := counted(near(report("D1", status, mission, at(seconds)), p), completed)
		r.SupportsAmendments = true
		if r.MissionRevision = 1; obeyed {
			r.MissionRevision = 2
		}
		if mission == "" {
			r.MissionRevision, r.CompletedStops = 0, nil
		}
		arrives := r.Timestamp
		if delayed {
			arrives = arrives.Add(time.Duration(rapid.IntRange(0, 29_000).Draw(t, "delay in ms")) * time.Millisecond)
		}
		f.reports = append(f.reports, travelled{r, arrives})
		if rapid.IntRange(0, 4).Draw(t, "twice") == 0 {
			f.reports = append(f.reports, travelled{r, arrives.Add(time.Second)})
		}
		seconds += float64(rapid.IntRange(1, 6).Draw(t, "seconds"))
	}
	says(depotAt, domain.DroneMoving, "M-X", 1, kept > 1)
	route := f.decision.Route
	for i := 1; i < len(route); i++ {
		if i == kept {
			f.decided = at(seconds - 0.5)
			f.amendment.SnapshotTime = f.decided
			for range rapid.IntRange(0, 2).Draw(t, "before it hears of the change") {
				says(awayAt, domain.DroneMoving, "M-X", i, true)
			}
			if obeys {
				obeyed, route = true, f.amendment.Route
			}
		}
		if i >= len(route) {
			break
		}
		for range rapid.IntRange(0, 2).Draw(t, "on the way") {
			says(awayAt, domain.DroneMoving, "M-X", i, true)
		}
		says(route[i].Position, domain.DroneDelivering, "M-X", i+1, i+1 != kept)
	}
	seconds = max(seconds, 70)
	for range 6 {
		says(depotAt, domain.DroneIdle, "", 0, true)
		seconds += 10
	}
	return f
})

// changedRoute keeps the beginning of a decision's route, and adds an order, takes one away
// that is not picked up, or both.
func changedRoute(t *rapid.T, d domain.Decision, kept int) (ids []domain.OrderID, route []domain.Waypoint) {
	ids, route = slices.Clone(d.OrderIDs), slices.Clone(d.Route)
	add, take := rapid.Bool().Draw(t, "adds"), kept < 3 && rapid.Bool().Draw(t, "takes away")
	if take {
		ids = ids[:1]
		route = slices.DeleteFunc(route, func(w domain.Waypoint) bool { return w.OrderID == "O2" })
	}
	if add || !take {
		ids = append(ids, "O3")
		home := len(route) - 1
		pickup := rapid.IntRange(kept, home).Draw(t, "pickup before")
		route = slices.Insert(route, pickup, domain.Waypoint{Type: domain.WaypointWarehousePickup, OrderID: "O3", Position: warehouseAt, WarehouseID: "WH"})
		delivery := rapid.IntRange(pickup+1, home+1).Draw(t, "delivery before")
		route = slices.Insert(route, delivery, domain.Waypoint{Type: domain.WaypointHospitalDelivery, OrderID: "O3", Position: hospitalOf("O3")})
	}
	return ids, route
}

// fly is flight.fly with the amendment, and tells what became of that.
func (f amendedFlight) fly(r rules, reports []travelled) (w *world, outcome string) {
	w = f.flyWith(r, reports, func(w *world, next time.Time) {
		if outcome == "" && next.After(f.decided) {
			w.now = f.decided
			outcome = w.decide(f.amendment)
		}
	})
	return w, outcome
}

// F-AMD-03 F-AMD-04 F-AMD-05 F-TEL-11: reports of a drone whose mission is amended may be
// reordered, duplicated, and delayed by less than the grace. The final documents are as if they had
// arrived as measured.
func TestLateReports_ConvergeOnAmendedMissions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := amendedFlightGenerator.Draw(t, "flight")
		inOrder := slices.Clone(f.reports)
		for i := range inOrder {
			inOrder[i].arrives = inOrder[i].Timestamp
		}
		asMeasured, first := f.fly(contract(), inOrder)
		asArrived, second := f.fly(contract(), f.reports)
		if first != second || first != applied {
			t.Fatalf("the amendment is %s as measured, %s as arrived", first, second)
		}
		for _, w := range []*world{asMeasured, asArrived} {
			if err := w.err(); err != nil {
				t.Fatal(err)
			}
		}
		if want, got := asMeasured.ending(), asArrived.ending(); got != want {
			t.Fatal(fmt.Errorf("as arrived\n%s\nas measured\n%s", got, want))
		}
	})
}
