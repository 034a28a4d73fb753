package live

import (
	"cmp"
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// AlertKind says what is wrong.
type AlertKind string

const (
	AlertCriticalAtRisk     AlertKind = "CRITICAL_AT_RISK"     // a CRITICAL order will probably be late
	AlertCriticalLate       AlertKind = "CRITICAL_LATE"        // a CRITICAL order is late
	AlertContactLost        AlertKind = "CONTACT_LOST"         // a drone is silent
	AlertGhost              AlertKind = "GHOST"                // a drone flies a mission that failed
	AlertImplausible        AlertKind = "IMPLAUSIBLE_REPORT"   // a drone claimed what it cannot have done
	AlertUnregistered       AlertKind = "UNREGISTERED_DRONE"   // a drone reports that nobody registered, or that is retired
	AlertDueSoon            AlertKind = "DRONE_DUE_SOON"       // an item of a drone is due, or soon will be
	AlertDroneIdentity      AlertKind = "DRONE_IDENTITY"       // a drone reports another serial number than its own
	AlertPutDownTwice       AlertKind = "PUT_DOWN_TWICE"       // a parcel was picked up again after it had been put down
	AlertRefusedForGood     AlertKind = "REFUSED_FOR_GOOD"     // messages became dead letters
	AlertDepotWithoutCycles AlertKind = "DEPOT_WITHOUT_CYCLES" // orders wait, and a depot's optimizer does not plan
	AlertClockOff           AlertKind = "CLOCK_OFF"            // this process's clock is wrong
	AlertBacklogOld         AlertKind = "BACKLOG_OLD"          // this process settles messages too late
)

// AlertKinds lists every kind.
var AlertKinds = []AlertKind{
	AlertCriticalLate, AlertCriticalAtRisk, AlertContactLost, AlertGhost, AlertImplausible, AlertUnregistered,
	AlertDueSoon, AlertDroneIdentity, AlertPutDownTwice, AlertRefusedForGood, AlertDepotWithoutCycles, AlertClockOff, AlertBacklogOld,
}

// Alert is something that a dispatcher should know.
type Alert struct {
	Kind  AlertKind
	About Key
	Since time.Time // zero if the state does not tell
	Text  string
	// Occasion tells an alert from an earlier one of the same kind and entity; "" if it cannot
	// recur.
	Occasion string
}

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
	// PickedUpAgain is when a late report showed it.
	PickedUpAgain map[domain.OrderID]time.Time
	// Process is what this process knows of itself.
	Process []Alert
}

// riskAhead is how long before its deadline a CRITICAL order must have a drone.
const riskAhead = 7 * time.Minute

// implausibleFor is how long an implausible report is shown.
const implausibleFor = 15 * time.Minute

// Alerts derives the alerts from a state. patience is how long a depot may be without a
// cycle while orders wait.
func Alerts(s *State, now time.Time, patience time.Duration) []Alert {
	alerts := append([]Alert(nil), s.Process...)
	say := func(kind AlertKind, about Key, since time.Time, occasion, format string, args ...any) {
		alerts = append(alerts, Alert{kind, about, since, fmt.Sprintf(format, args...), occasion})
	}
	for _, o := range s.Orders {
		if o.Status.Final() || o.Priority != domain.PriorityCritical {
			continue
		}
		about := Key{KindOrder, string(o.ID)}
		eta := s.Missions[o.AssignedMissionID].ExpectedAt(o.ID)
		switch left := o.Deadline.Sub(now); {
		case left < 0:
			say(AlertCriticalLate, about, o.Deadline, "", "CRITICAL order %s is late; it is %s", o.ID, o.Status)
		case !eta.IsZero() && eta.After(o.Deadline):
			say(AlertCriticalAtRisk, about, time.Time{}, "", "CRITICAL order %s will arrive %s after its deadline", o.ID, eta.Sub(o.Deadline).Round(time.Second))
		case o.AssignedMissionID == "" && left < riskAhead:
			say(AlertCriticalAtRisk, about, time.Time{}, "", "CRITICAL order %s is due soon and has no drone", o.ID)
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
	return alerts
}

// registryAlerts are those of a drone's registration. What is due has an occasion with its
// item and its latest maintenance, so that it is announced again the next time.
func registryAlerts(d domain.Drone, now time.Time) (alerts []Alert) {
	about := Key{KindDrone, string(d.ID)}
	switch {
	case d.Retired():
		if d.LastUpdate.After(d.RetiredAt) {
			alerts = append(alerts, Alert{AlertUnregistered, about, d.RetiredAt, fmt.Sprintf("drone %s is retired and reports; register it again, or switch it off", d.ID), stamp(d.RetiredAt)})
		}
		return alerts
	case d.Unregistered:
		return []Alert{{AlertUnregistered, about, time.Time{}, fmt.Sprintf("drone %s reports and nobody has registered it; register it, or find out who sends its reports", d.ID), ""}}
	}
	if d.OtherIdentity() {
		alerts = append(alerts, Alert{AlertDroneIdentity, about, time.Time{}, fmt.Sprintf("drone %s reports serial number %q, and is registered with %q; find out which drone it is", d.ID, d.ReportedSerial, d.SerialNumber), d.ReportedSerial})
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
			alerts = append(alerts, Alert{AlertDueSoon, about, time.Time{}, fmt.Sprintf("drone %s: %s", d.ID, why), item.Item + ":" + stamp(since)})
		}
	}
	one.Due, one.BatteryHealth = nil, d.BatteryHealth
	if why := policy.Due(one, now); why != "" {
		alerts = append(alerts, Alert{AlertDueSoon, about, time.Time{}, fmt.Sprintf("drone %s: %s", d.ID, why), "battery health"})
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
