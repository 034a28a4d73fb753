package policy

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// atOnce is when something is due that does not wait for a time.
var atOnce = time.Unix(0, 0).UTC()

const (
	// idleLate is how much later than at the end of its silence an idle drone is found. No drone gets a
	// mission after MaxSilence, found or not.
	idleLate = 2 * time.Second
	// unevenBeat is how much later than after a heartbeat the next write may come.
	unevenBeat = 250 * time.Millisecond
)

// DroneDue is the time before which the sweeper has nothing to do about a drone and the mission that
// holds it; zero if it never has. It depends on their documents alone, so that it can be stored when
// one of them is written.
func (p DronePolicy) DroneDue(d domain.Drone, m *domain.Mission) time.Time {
	switch {
	case !d.Bound() && d.Status == domain.DroneIdle:
		return d.SeenAt.Add(p.IdleSilence)
	case !d.Bound():
		return time.Time{}
	case m == nil:
		return d.SeenAt.Add(p.BoundSilence)
	}
	due := later(d.SeenAt, m.StartTime).Add(p.BoundSilence)
	if d.MissionAcked && m.CommandPending && m.Amendment == nil {
		due = earlier(due, m.CommandExpiresAt)
	}
	if m.Status != domain.MissionActive {
		return due
	}
	if !d.FaultSince.IsZero() {
		due = earlier(due, d.FaultSince.Add(p.FaultGrace+p.ClockError))
	}
	if !d.ParkedSince.IsZero() {
		due = earlier(due, d.ParkedSince.Add(p.LateGrace+p.ClockError))
	}
	if !m.Revoked() && !m.CommandPending && m.CommandPublishedAt.IsZero() {
		due = atOnce
	}
	stalls := later(m.StartTime, m.AmendedAt).Add(p.stallLimit(d, *m))
	for _, stop := range m.Route[min(m.ReachedStops, len(m.Route)):] {
		if stop.Type == domain.WaypointWait {
			stalls = later(stalls, stop.WaitUntil.Add(p.BoundSilence))
		}
	}
	return earlier(due, stalls)
}

// Dated is a drone with the time at which it is due, as it is to be stored. m is its mission, nil if
// unknown; then what was stored still counts.
//
// A time that was stored stays while it is not too early, which is a third of the silence, or two of a
// mission's. Otherwise each report would move it, and with it an entry of an index whose values rise; in
// Enterprise edition that costs twice as much as the document. An idle drone's stays over one heartbeat:
// it is a little late, so that the second heartbeat comes before it.
func (p DronePolicy) Dated(d domain.Drone, m *domain.Mission) domain.Drone {
	due, early, late := p.DroneDue(d, m), p.IdleSilence/3, time.Duration(0)
	switch {
	case d.Bound():
		early = p.BoundSilence * 2 / 3
		if m == nil || m.ID != d.CurrentMissionID {
			due = earlier(p.DroneDue(d, nil), later(d.DueAt, atOnce))
		}
	case !p.Foretelling.Off():
		early, late = max(early, p.IdleSilence-p.Foretelling.Heartbeat-unevenBeat), idleLate
	}
	if !due.IsZero() {
		due = later(due, atOnce)
	}
	if due.IsZero() || d.DueAt.IsZero() || d.DueAt.Sub(due) > late || due.Sub(d.DueAt) > early {
		d.DueAt = due
		if !due.IsZero() {
			d.DueAt = due.Add(late)
		}
	}
	return d
}

// OrderDue is the time before which the sweeper has nothing to do about an order whose depot exists;
// zero if it never has.
func OrderDue(o domain.Order) time.Time {
	switch {
	case o.Status == domain.OrderPending && o.PlanningDepotID == "":
		return atOnce
	case o.Late || o.Status.Final():
		return time.Time{}
	}
	return o.Deadline
}
