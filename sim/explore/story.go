package explore

import (
	"fmt"
	"strings"

	"github.com/dronefleet/dronefleet/domain"
)

// Story is a history for people: a line for each step, with what it changed.
type Story []string

func (s Story) String() string { return strings.Join(s, "\n") }

// tell replays a history, and its fair end if it has one, and describes each step.
func (m *model) tell(steps, ending []action) (story Story) {
	s := m.initial()
	for i, a := range steps {
		next, _ := m.do(s, a)
		story = append(story, fmt.Sprintf("%2d. at %d  %s%s", i+1, s.ticks(), m.describe(&s, a), m.changes(&s, &next)))
		s = next
	}
	if len(ending) == 0 {
		return story
	}
	story = append(story, "    From here on nothing goes wrong.")
	s.Left, s.Script = fairBudgets, uint8(len(m.world.Script))
	for _, a := range ending {
		next, _ := m.do(s, a)
		if changed := m.changes(&s, &next); changed != "" && !strings.HasPrefix(changed, "\n      -> sent: report") {
			story = append(story, fmt.Sprintf("    at %d  %s%s", s.ticks(), m.describe(&s, a), changed))
		}
		s = next
	}
	return append(story, fmt.Sprintf("    at %d  the end is judged", s.ticks()))
}

var fates = map[fate]string{
	settled: "State Manager handles and acks the ", again: "State Manager handles the ",
	half:     "State Manager handles, and dies before it looks at the past mission of, the ",
	outdated: "State Manager that still knows a depot which is gone handles and acks the ",
	unsent:   "State Manager handles, and dies before it publishes the command of, the ",
	lost:     "Lost: the ", begun: "State Manager begins a transaction for the ", begunTwo: "State Manager begins a transaction for one copy of the ",
}

var manners = map[manner]string{
	fly: "flies to its next stop and reports", goOn: "flies and reports", idle: "waits and reports", land: "is home and reports",
	abandon: "gives its mission up and reports", hover: "hovers and reports", pass: "passes a hospital and reports",
	leap: "reports with a clock far ahead", low: "reports a low battery", charge: "charges and reports",
	problem: "has a problem and reports", emergency: "has an emergency and reports", maintenance: "is in maintenance and reports",
	await:     "waits where it was told to and reports",
	overcount: "counts too many stops and reports",
	boast:     "claims all of its stops and reports", stray: "claims all of its stops from where it is not and reports",
}

func (m *model) describe(s *state, a action) string {
	drone := droneID(int(a.A))
	switch a.Do {
	case doTick:
		return "A tick passes"
	case doReport:
		return fmt.Sprintf("Drone %s %s", drone, manners[manner(a.B)])
	case doDeliver:
		msg := m.messages.get(s.Bus[a.A])
		if msg.Kind == kindCommand && fate(a.B) != lost {
			return fmt.Sprintf("Drone D%d receives the %s", msg.Drone+1, msg) + map[bool]string{true: "; it will come again"}[fate(a.B) == again]
		}
		if msg.Kind == kindHandOver && fate(a.B) != begun && fate(a.B) != begunTwo {
			return "An optimizer commits the " + msg.String() + map[bool]string{true: "; it will try again"}[fate(a.B) == again]
		}
		if msg.Kind == kindMove && fate(a.B) != begun && fate(a.B) != begunTwo {
			return "An operator commits the " + msg.String()
		}
		return fates[fate(a.B)] + msg.String() + map[bool]string{true: "; it will come again"}[fate(a.B) == again]
	case doCommit:
		t := s.Open[a.A]
		return fmt.Sprintf("State Manager commits the transaction of %s for the %s", since(t.At.time()), m.messages.get(t.Message))
	case doPlan:
		return fmt.Sprintf("Snapshot of %s; it plans for %s", planner(a.C), drone)
	case doHandOver:
		return fmt.Sprintf("Snapshot of %s; it means to hand %s over to %s", planner(a.C), orderID(int(a.A)), depots[a.B].ID)
	case doTake:
		return fmt.Sprintf("Member %d takes the area of %s", a.A+1, depots[a.B].ID)
	case doAdopt:
		return "The sweeper finds a depot for " + string(orderID(int(a.A)))
	case doDelete:
		return fmt.Sprintf("Depot %s is deleted", depots[a.A].ID)
	case doAdd:
		return fmt.Sprintf("Depot %s is added", depots[a.A].ID)
	case doMove:
		return "An operator means to move the warehouse"
	case doHold:
		return "An operator holds " + string(orderID(int(a.A)))
	case doAmend:
		return fmt.Sprintf("Snapshot of an optimizer; it changes the mission of %s", drone)
	case doStandby:
		return fmt.Sprintf("Snapshot of an optimizer; it has %s wait", drone)
	case doForge:
		return "Somebody publishes a decision that no honest optimizer makes"
	case doPass:
		return "Somebody begins a hand-over that no honest optimizer makes"
	case doRequest:
		return "A requester publishes"
	case doPublish:
		return "State Manager publishes what " + string(missionID(int(a.A))) + " owes"
	case doSweep:
		return "The sweeper looks at " + string(drone)
	case doRelease:
		return "An operator releases " + string(orderID(int(a.A)))
	case doRecall:
		return "An operator recalls " + string(missionID(int(a.A)))
	case doPin:
		return fmt.Sprintf("An operator %s order %s and drone %s", map[uint8]string{0: "pins to each other", 1: "keeps apart"}[a.C], orderID(int(a.A)), droneID(int(a.B)))
	case doGround:
		return fmt.Sprintf("An operator grounds drone %s", droneID(int(a.A)))
	case doRegister:
		return fmt.Sprintf("An operator registers drone %s", droneID(int(a.A)))
	case doRetire:
		return fmt.Sprintf("An operator retires drone %s", droneID(int(a.A)))
	case doUnground:
		return fmt.Sprintf("An operator releases drone %s", droneID(int(a.A)))
	case doClear:
		return "An operator clears the emergency of " + string(drone)
	case doFail:
		return fmt.Sprintf("Drone %s %s", drone, map[uint8]string{dead: "falls silent for good", circling: "gets nowhere any more"}[a.B])
	case doForget:
		return "The plan of " + string(missionID(int(a.A))) + " is forgotten"
	case doCorrect:
		return fmt.Sprintf("The clock of %s, a tick ahead, is set right", drone)
	}
	return ""
}

// planner says whose cycle it is.
func planner(by uint8) string {
	switch by {
	case ofNewLease:
		return "an optimizer"
	case ofLostLease:
		return "a holder that lost its lease"
	}
	return fmt.Sprintf("member %d", by-ofMembers+1)
}

// changes lists what a step did to documents, to the real drones and to the bus.
func (m *model) changes(before, after *state) string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for i, n := range after.Drone {
		if n != before.Drone[i] {
			d, was := m.drones.get(n), m.drones.get(before.Drone[i])
			if d.Status == was.Status && d.CurrentMissionID == was.CurrentMissionID && d.MissionAcked == was.MissionAcked {
				continue // its whereabouts
			}
			text := string(d.Status)
			if d.Bound() {
				text += " on " + string(d.CurrentMissionID) + map[bool]string{true: ", which it knows"}[d.MissionAcked]
			}
			add("%s is %s", d.ID, text)
		}
	}
	for i, n := range after.Mission {
		if n != before.Mission[i] {
			x := m.missions.get(n)
			text := string(x.Status)
			if x.Status == domain.MissionFailed {
				text += " " + string(x.FailureReason)
			}
			add("%s is %s, stops reached %d", x.ID, text, x.ReachedStops)
		}
	}
	for i, n := range after.Order {
		if n != before.Order[i] {
			o := m.orders.get(n)
			text := string(o.Status)
			if o.Held {
				text += " and held"
			}
			if o.PlanningDepotID != "" {
				text += ", planned by " + string(o.PlanningDepotID)
			}
			add("%s is %s", o.ID, text)
		}
	}
	for i, n := range after.Ledger {
		if n != before.Ledger[i] && n != 0 {
			e := m.entries.get(n)
			add("%s is %s", e.ID, strings.TrimSpace(string(e.Outcome)+" "+e.Reason))
		}
	}
	if after.Site != before.Site {
		add("the warehouse is at %v", sites[after.Site])
	}
	for i, f := range after.Flight {
		if was := before.Flight[i]; f.Mission != was.Mission {
			if f.Mission == 0 {
				add("in truth %s flies no mission", droneID(i))
			} else {
				add("in truth %s flies %s", droneID(i), missionID(int(f.Mission-1)))
			}
		}
	}
	left := before.Bus
	for _, n := range after.Bus {
		if n == 0 {
			break
		}
		known := false
		for i := range left {
			if left[i] == n {
				left[i], known = 0, true
				break
			}
		}
		if !known {
			add("sent: %s", m.messages.get(n))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "\n      -> " + strings.Join(list, "; ")
}
