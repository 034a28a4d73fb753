package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/domain"
)

// A scenario is a random sequence of what can happen to a fleet of two drones and four orders:
// messages, each of which may be repeated later, the passing of time, the sweeper and an operator.
// The policies judge whether a step makes sense.
type scenario []step

// A step is one thing that happens. Its kind determines which of the numbers it uses. They are
// references, such as "the nth message so far", so that a scenario stays meaningful without some of
// its steps.
type step struct {
	kind    string
	drone   int // 0, 1
	order   int // 0 to 3
	status  domain.DroneStatus
	mission string  // none, current, last or other
	where   string  // away, next stop or any stop
	battery float64 // percent
	age     float64 // seconds between measuring, or the snapshot, and now
	fence   int     // 0 none, then lower, equal and higher than the last, and forged
	flaw    bool    // of a decision: its route misses a stop; of a request: it has other content
	back    int     // how many messages ago
}

func (s step) String() string {
	who := fmt.Sprintf("D%d", s.drone+1)
	switch s.kind {
	case "report":
		return fmt.Sprintf("%s reports %q naming %s %s, %g %%, %g s ago", who, s.status, s.mission, s.where, s.battery, s.age)
	case "decision":
		return fmt.Sprintf("decision for %s and O%d.. flawed %t, fence %d, snapshot %g s ago", who, s.order+1, s.flaw, s.fence, s.age)
	case "elapse":
		return fmt.Sprintf("%g s pass", s.age)
	case "again":
		return fmt.Sprintf("message %d back comes again", s.back)
	default:
		return fmt.Sprintf("%s %s/O%d flaw %t", s.kind, who, s.order+1, s.flaw)
	}
}

func (s scenario) String() string {
	var b strings.Builder
	for i, step := range s {
		if step.kind != "nothing" {
			fmt.Fprintf(&b, "\n%3d %s", i, step)
		}
	}
	return b.String()
}

// stepGenerator favours what happens often, and the reports that bring a
// mission forward, so that scenarios get anywhere.
var stepGenerator = rapid.Custom(func(t *rapid.T) step {
	kinds := []string{
		"nothing", // what a step shrinks to
		"report", "report", "report", "fly", "fly", "fly", "idle", "idle", "elapse", "elapse", "again", "again",
		"decision", "decision", "sound decision", "sound decision", "request", "cancel", "sweep",
		"hold", "release", "operator cancels", "clear",
	}
	return step{
		kind:    rapid.SampledFrom(kinds).Draw(t, "kind"),
		drone:   rapid.IntRange(0, 1).Draw(t, "drone"),
		order:   rapid.IntRange(0, 3).Draw(t, "order"),
		status:  rapid.SampledFrom(append([]domain.DroneStatus{""}, domain.DroneStatuses...)).Draw(t, "status"),
		mission: rapid.SampledFrom([]string{"none", "current", "last", "other"}).Draw(t, "mission"),
		where:   rapid.SampledFrom([]string{"away", "next stop", "any stop"}).Draw(t, "place"),
		battery: rapid.SampledFrom([]float64{80, 80, 80, 20, 4}).Draw(t, "battery"),
		age:     rapid.SampledFrom([]float64{0, 0, 0, 1, 6, 14, 26, 31, 125, -4, -6}).Draw(t, "age"),
		fence:   rapid.SampledFrom([]int{0, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4}).Draw(t, "fence"),
		flaw:    rapid.IntRange(0, 5).Draw(t, "flaw") == 0,
		back:    rapid.IntRange(0, 12).Draw(t, "back"),
	}
})

var scenarioGenerator = rapid.Map(rapid.SliceOfN(stepGenerator, 30, 90), func(s []step) scenario { return s })

// run lets a scenario happen to a fleet and returns what the contract forbids
// of what came of it.
func (s scenario) run(r rules) error { return s.happen(r).err() }

func (s scenario) happen(r rules) *world {
	w := newWorld(r).with(readyDrone("D1"), readyDrone("D2"))
	var sent []func() // messages, to come again
	decisions, fence := 0, uint64(50)
	send := func(message func()) {
		sent = append(sent, message)
		message()
	}
	for _, st := range s {
		drone := domain.DroneID(fmt.Sprintf("D%d", st.drone+1))
		order := domain.OrderID(fmt.Sprintf("O%d", st.order+1))
		switch st.kind {
		case "report", "fly", "idle":
			t := w.drawReport(drone, st)
			send(func() { _ = w.report(t) })
		case "request":
			req := request(order, st.order)
			if st.flaw {
				req.ProductType = "another product"
			}
			send(func() { _ = w.request(req) })
		case "cancel":
			send(func() { _ = w.request(cancellation(order)) })
		case "decision", "sound decision":
			decisions++
			d := w.drawDecision(decisions, drone, st)
			width := []int{15, 19}[st.back%2]
			switch st.fence {
			case 0:
				d.Fence = ""
			case 1:
				d.Fence = fmt.Sprintf("%0*d", width, fence-1)
			case 4:
				d.Fence = fmt.Sprintf("%0*d", width, fence+1e6) // handed out by nobody
			default:
				fence += uint64(st.fence - 2)
				d.Fence = fmt.Sprintf("%0*d", width, fence)
				w.issued["DEPOT"] = d.Fence
			}
			send(func() { w.decide(d) })
		case "again":
			if i := len(sent) - 1 - st.back; i >= 0 {
				sent[i]()
			}
		case "elapse":
			w.now = w.now.Add(time.Duration(max(st.age, 0.5) * float64(time.Second)))
		case "sweep":
			w.sweep()
		case "hold":
			if st.flaw {
				_ = w.forbidDrone(order, drone)
			} else {
				_ = w.holdOrder(order)
			}
		case "release":
			_ = w.releaseOrder(order)
			if st.flaw {
				_ = w.setPriority(order, domain.PriorityCritical)
				_ = w.setDeadline(order, w.now.Add(time.Minute))
				_ = w.pinOrder(order, drone)
			}
		case "operator cancels":
			_ = w.operatorCancels(order)
			if st.flaw {
				_ = w.recallMission(w.drones[drone].CurrentMissionID)
			}
		case "clear":
			_ = w.clearDrone(drone)
			if st.flaw {
				_ = w.groundDrone(drone)
			} else {
				_ = w.allowDrone(order, drone)
				_ = w.unpinOrder(order)
				_ = w.releaseDrone(drone)
			}
		}
	}
	return w
}

// drawReport is the report a step stands for: any at all, or, for "fly" and
// "idle", one that a drone which obeys its orders would make now.
func (w *world) drawReport(id domain.DroneID, st step) domain.Telemetry {
	d := w.drones[id]
	m := w.missions[d.CurrentMissionID]
	t := report(id, st.status, "", w.now.Add(-time.Duration(st.age*float64(time.Second))))
	t.Battery = st.battery
	switch {
	case st.mission == "current":
		t.MissionID = d.CurrentMissionID
	case st.mission == "last" && len(d.FailedMissions) > 0:
		t.MissionID = d.FailedMissions[len(d.FailedMissions)-1].ID
	case st.mission == "other":
		t.MissionID = otherMission
	}
	switch {
	case st.where == "any stop":
		t.Position = append([]domain.Position{depotAt, warehouseAt}, hospitalsAt...)[st.order]
	case st.where == "next stop" && m.ReachedStops < len(m.Route):
		t.Position = m.Route[m.ReachedStops].Position
	}
	if st.kind == "report" {
		return t
	}
	w.now = w.now.Add(time.Second)
	t.Timestamp, t.Battery = w.now, 80
	if st.kind == "idle" {
		t.Status, t.MissionID, t.Position = domain.DroneIdle, "", depotAt
		return t
	}
	t.Status, t.MissionID = domain.DroneMoving, d.CurrentMissionID
	if m.ReachedStops < len(m.Route) {
		t.Position = m.Route[m.ReachedStops].Position
		if m.ReachedStops == 0 && len(m.Route) > 1 {
			t.Position = m.Route[1].Position
		}
	}
	return t
}

// drawDecision is the decision a step stands for: any at all, or, if sound,
// one for orders that are pending and have waited.
func (w *world) drawDecision(n int, drone domain.DroneID, st step) domain.Decision {
	orders := []domain.OrderID{domain.OrderID(fmt.Sprintf("O%d", st.order+1))}
	if st.where == "any stop" {
		orders = append(orders, domain.OrderID(fmt.Sprintf("O%d", (st.order+1)%4+1)))
	}
	if st.kind == "sound decision" {
		orders = slices.DeleteFunc([]domain.OrderID{"O1", "O2", "O3", "O4"}, func(id domain.OrderID) bool {
			o, ok := w.orders[id]
			return ok && (o.Status != domain.OrderPending || o.Held)
		})
		for _, id := range orders {
			if _, ok := w.orders[id]; !ok {
				_ = w.request(request(id, 0))
			}
		}
		orders = orders[:min(len(orders), 1+st.order%2)]
		w.now = w.now.Add(time.Second)
	}
	d := plan(domain.DecisionID(fmt.Sprintf("X%d", n)), drone, orders...)
	d.SnapshotTime = w.now.Add(-time.Duration(max(st.age, 0) * float64(time.Second)))
	if st.kind == "sound decision" {
		d.SnapshotTime = w.now
	} else if st.flaw {
		d.Route = d.Route[:len(d.Route)-2]
	}
	return d
}
