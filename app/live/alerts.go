package live

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// AlertKind says what is wrong.
type AlertKind string

const (
	AlertDepotWithoutCycles AlertKind = "DEPOT_WITHOUT_CYCLES" // orders wait, and a depot's optimizer does not plan
	AlertCriticalLate       AlertKind = "CRITICAL_LATE"        // a CRITICAL order is late
	AlertCriticalUnserved   AlertKind = "CRITICAL_UNSERVED"    // no drone can deliver a CRITICAL order in time
	AlertCriticalAtRisk     AlertKind = "CRITICAL_AT_RISK"     // a CRITICAL order will probably be late
	AlertGhost              AlertKind = "GHOST"                // a drone flies a mission that failed
	AlertContactLost        AlertKind = "CONTACT_LOST"         // a drone is silent
	AlertBacklogOld         AlertKind = "BACKLOG_OLD"          // this process settles messages too late
	AlertClockOff           AlertKind = "CLOCK_OFF"            // this process's clock is wrong
	AlertPutDownTwice       AlertKind = "PUT_DOWN_TWICE"       // a parcel was picked up again after it had been put down
	AlertDroneIdentity      AlertKind = "DRONE_IDENTITY"       // a drone reports another serial number than its own
	AlertImplausible        AlertKind = "IMPLAUSIBLE_REPORT"   // a drone claimed what it cannot have done
	AlertUnregistered       AlertKind = "UNREGISTERED_DRONE"   // a drone reports that nobody registered, or that is retired
	AlertRefusedForGood     AlertKind = "REFUSED_FOR_GOOD"     // messages became dead letters
	AlertDueSoon            AlertKind = "DRONE_DUE_SOON"       // an item of a drone is due, or soon will be
)

// AlertKinds lists every kind, the worst first.
var AlertKinds = []AlertKind{
	AlertDepotWithoutCycles, AlertCriticalLate, AlertCriticalUnserved, AlertCriticalAtRisk, AlertGhost, AlertContactLost, AlertBacklogOld,
	AlertClockOff, AlertPutDownTwice, AlertDroneIdentity, AlertImplausible, AlertUnregistered, AlertRefusedForGood, AlertDueSoon,
}

// rankOf is a kind's place among all, from 1 for the worst.
func rankOf(kind AlertKind) int { return slices.Index(AlertKinds, kind) + 1 }

// Alert is something that a dispatcher should know.
type Alert struct {
	Kind  AlertKind
	About Key
	Since time.Time // zero if the state does not tell
	Text  string
	// Occasion tells an alert from an earlier one of the same kind and entity; "" if it cannot
	// recur.
	Occasion string
	// Rank says how bad it is, from 1 for the worst: as its kind or, if it is worse, as what it
	// explains.
	Rank int
	// Cause is the id of the alert that explains this one; "" for none.
	Cause string
}

// Urgent reports whether somebody must act at once.
func (a Alert) Urgent() bool { return a.Rank <= rankOf(AlertCriticalAtRisk) }

// ID names the alert.
func (a Alert) ID() string {
	id := string(a.Kind) + ":" + a.About.ID
	if a.Occasion != "" {
		id += ":" + a.Occasion
	}
	return id
}

// State is what alerts are derived from.
type State struct {
	Drones   map[domain.DroneID]domain.Drone
	Orders   map[domain.OrderID]domain.Order
	Missions map[domain.MissionID]domain.Mission
	Cycles   map[domain.CycleID]domain.Cycle
	Depots   map[domain.DepotID]domain.Depot

	Warehouses map[domain.WarehouseID]domain.Warehouse
	// Arrivals is how soon the orders that wait could be delivered, as far as that was estimated.
	Arrivals map[domain.OrderID]planner.Arrival
	// PickedUpAgain is when a late report showed it.
	PickedUpAgain map[domain.OrderID]time.Time
	// Process is what this process knows of itself.
	Process []Alert
}

const (
	// leastSlack is how much later than at once a drone must still be able to take a CRITICAL order
	// that has none and deliver it in time.
	leastSlack = 2 * time.Minute
	// riskAhead is how long before its deadline a CRITICAL order must have a drone, if it is not
	// known how soon one could deliver it.
	riskAhead = 7 * time.Minute
)

// implausibleFor is how long an implausible report is shown.
const implausibleFor = 15 * time.Minute

// Alerts derives the alerts from a state. patience is how long a depot may be without a
// cycle while orders wait.
func Alerts(s *State, now time.Time, patience time.Duration) []Alert {
	alerts := slices.Clone(s.Process)
	say := func(kind AlertKind, about Key, since time.Time, occasion, format string, args ...any) {
		alerts = append(alerts, Alert{Kind: kind, About: about, Since: since, Text: fmt.Sprintf(format, args...), Occasion: occasion})
	}
	for _, o := range s.Orders {
		if o.Status.Final() || o.Priority != domain.PriorityCritical {
			continue
		}
		if kind, text := s.judge(o, now); kind != "" {
			since := time.Time{}
			if kind == AlertCriticalLate {
				since = o.Deadline
			}
			say(kind, Key{KindOrder, string(o.ID)}, since, "", "%s", text)
		}
	}
	for _, d := range s.Drones {
		about := Key{KindDrone, string(d.ID)}
		// Without a mission, a drone that is not planned may be switched off.
		if d.Status == domain.DroneUnknown && !d.LastUpdate.IsZero() && (d.Bound() || !d.Grounded && !d.Unregistered && !d.Retired()) {
			say(AlertContactLost, about, d.LastUpdate, stamp(d.LastUpdate), "drone %s has been silent since its last report", d.ID)
		}
		if d.GhostMissionID != "" {
			say(AlertGhost, about, time.Time{}, string(d.GhostMissionID), "drone %s flies mission %s, which failed", d.ID, d.GhostMissionID)
		}
		if !d.ImplausibleAt.IsZero() && now.Sub(d.ImplausibleAt) < implausibleFor {
			say(AlertImplausible, about, d.ImplausibleAt, stamp(d.ImplausibleAt), "drone %s %s; find out who sends its reports", d.ID, d.Implausible)
		}
	}
	for _, d := range s.Drones {
		alerts = append(alerts, registryAlerts(d, now)...)
	}
	for id, at := range s.PickedUpAgain {
		say(AlertPutDownTwice, Key{KindOrder, string(id)}, at, stamp(at), "parcel %s was picked up again after it had been put down; find out where it is", id)
	}
	waits := s.waitingSince()
	for id := range s.Depots {
		if since := s.withoutCycle(id, waits[id]); !since.IsZero() && now.Sub(since) > patience {
			say(AlertDepotWithoutCycles, Key{KindDepot, string(id)}, since, stamp(since), "depot %s has had no cycle while orders wait", id)
		}
	}
	s.explain(alerts)
	return alerts
}

// judge says what is wrong with an open CRITICAL order; "" for nothing.
func (s *State) judge(o domain.Order, now time.Time) (kind AlertKind, text string) {
	soonest, estimated := s.Arrivals[o.ID]
	estimated = estimated && o.Waits()
	slack := o.Deadline.Sub(soonest.At)
	switch eta := s.Missions[o.AssignedMissionID].ExpectedAt(o.ID); {
	case o.Deadline.Before(now) && estimated:
		return AlertCriticalLate, fmt.Sprintf("CRITICAL order %s is late and has no drone", o.ID)
	case o.Deadline.Before(now):
		return AlertCriticalLate, fmt.Sprintf("CRITICAL order %s is late; it is %s", o.ID, o.Status)
	case eta.After(o.Deadline):
		return AlertCriticalAtRisk, fmt.Sprintf("CRITICAL order %s will arrive %s after its deadline", o.ID, eta.Sub(o.Deadline).Round(time.Second))
	case estimated && soonest.DroneID == "":
		return AlertCriticalUnserved, fmt.Sprintf("no drone can deliver CRITICAL order %s, however long it waits", o.ID)
	case estimated && slack < 0:
		return AlertCriticalUnserved, fmt.Sprintf("no drone can deliver CRITICAL order %s in time; the soonest, %s, would be %s late", o.ID, soonest.DroneID, (-slack).Round(time.Second))
	case estimated && slack < leastSlack:
		return AlertCriticalAtRisk, fmt.Sprintf("CRITICAL order %s has no drone; the soonest, %s, would be just in time", o.ID, soonest.DroneID)
	case !estimated && o.AssignedMissionID == "" && o.Deadline.Sub(now) < riskAhead:
		return AlertCriticalAtRisk, fmt.Sprintf("CRITICAL order %s is due soon and has no drone", o.ID)
	}
	return "", ""
}

// explain names the cause of each alert about an order, and ranks all alerts. What explains an alert
// about an order is, in this order, what is wrong with the drone that has the parcel or should fetch
// it, with the depot that plans the order, or with this process. A cause ranks like the worst alert
// that it explains.
func (s *State) explain(alerts []Alert) {
	causes, process := map[Key]int{}, -1 // by what they are about
	for i := range alerts {
		a := &alerts[i]
		a.Rank = rankOf(a.Kind)
		_, known := causes[a.About]
		switch {
		case a.Kind == AlertGhost, a.Kind == AlertDepotWithoutCycles, a.Kind == AlertContactLost && !known:
			causes[a.About] = i
		case a.Kind == AlertBacklogOld, a.Kind == AlertClockOff && process < 0:
			process = i
		}
	}
	flown := s.flownByGhosts()
	for i := range alerts {
		a := &alerts[i]
		o, is := s.Orders[domain.OrderID(ifKind(a.About, KindOrder))]
		if !is || a.Rank > rankOf(AlertCriticalAtRisk) {
			continue
		}
		cause := process
		suspects := []Key{{KindDrone, string(o.AssignedDroneID)}, {KindDrone, string(flown[o.ID])}}
		if o.Waits() {
			suspects = append(suspects, Key{KindDepot, string(o.PlanningDepotID)})
		}
		for _, k := range slices.Backward(suspects) {
			if of, is := causes[k]; is {
				cause = of
			}
		}
		if cause >= 0 {
			a.Cause = alerts[cause].ID()
			alerts[cause].Rank = min(alerts[cause].Rank, a.Rank)
		}
	}
}

// flownByGhosts says which drone may have the parcel of an order whose mission failed while the drone
// flies on.
func (s *State) flownByGhosts() map[domain.OrderID]domain.DroneID {
	flown := map[domain.OrderID]domain.DroneID{}
	for _, d := range s.Drones {
		if d.GhostMissionID == "" {
			continue
		}
		for _, id := range s.Missions[d.GhostMissionID].EveryOrder() {
			flown[id] = d.ID
		}
	}
	return flown
}

// registryAlerts are those of a drone's registration. What is due has an occasion with its
// item and its latest maintenance, so that it is announced again the next time.
func registryAlerts(d domain.Drone, now time.Time) (alerts []Alert) {
	say := func(kind AlertKind, since time.Time, occasion, format string, args ...any) {
		text := fmt.Sprintf("drone %s", d.ID) + fmt.Sprintf(format, args...)
		alerts = append(alerts, Alert{Kind: kind, About: Key{KindDrone, string(d.ID)}, Since: since, Text: text, Occasion: occasion})
	}
	switch {
	case d.Retired():
		if d.LastUpdate.After(d.RetiredAt) {
			say(AlertUnregistered, d.RetiredAt, stamp(d.RetiredAt), " is retired and reports; register it again, or switch it off")
		}
		return alerts
	case d.Unregistered:
		say(AlertUnregistered, time.Time{}, "", " reports and nobody has registered it; register it, or find out who sends its reports")
		return alerts
	}
	if d.OtherIdentity() {
		say(AlertDroneIdentity, time.Time{}, d.ReportedSerial, " reports serial number %q, and is registered with %q; find out which drone it is", d.ReportedSerial, d.SerialNumber)
	}
	one := d
	for _, item := range d.Due {
		one.Due, one.BatteryHealth = []domain.DueItem{item}, nil
		since := d.RegisteredAt
		for _, m := range d.Maintained {
			if m.Item == item.Item {
				since = m.Done.At
			}
		}
		if why := cmp.Or(policy.Due(one, now), policy.DueSoon(one, now)); why != "" {
			say(AlertDueSoon, time.Time{}, item.Item+":"+stamp(since), ": %s", why)
		}
	}
	one.Due, one.BatteryHealth = nil, d.BatteryHealth
	if why := policy.Due(one, now); why != "" {
		say(AlertDueSoon, time.Time{}, "battery health", ": %s", why)
	}
	return alerts
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// waitingSince is since when the first order waits that a depot plans.
func (s *State) waitingSince() map[domain.DepotID]time.Time {
	first := map[domain.DepotID]time.Time{}
	for _, o := range s.Orders {
		if !o.Waits() {
			continue
		}
		since := o.PendingSince
		if o.PlanningSince.After(since) { // before, another depot planned it
			since = o.PlanningSince
		}
		if at, ok := first[o.PlanningDepotID]; !ok || since.Before(at) {
			first[o.PlanningDepotID] = since
		}
	}
	return first
}

// withoutCycle returns since when a depot has had no cycle with a plan while an order waits; zero
// if no order waits. waits is since when one waits.
func (s *State) withoutCycle(depot domain.DepotID, waits time.Time) time.Time {
	since := waits
	if waits.IsZero() {
		return since
	}
	for _, c := range s.Cycles {
		if c.PlannedFor(depot) && c.StartedAt.After(since) && planned(c.Outcome) {
			since = c.StartedAt
		}
	}
	return since
}

// planned reports whether a cycle came to a plan.
func planned(o domain.CycleOutcome) bool {
	switch o {
	case domain.CyclePublishing, domain.CyclePublished, domain.CycleEmpty:
		return true
	case domain.CycleLeaseLost, domain.CycleAborted, domain.CycleFailed:
	}
	return false
}
