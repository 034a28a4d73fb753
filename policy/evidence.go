package policy

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// A mission's reached stops follow from the reports of its drone that name it, taken in
// the order of their timestamps, whatever order they arrive in (F-TEL-11). The mission
// keeps the times at which each stop was sighted. A stop is reached at its earliest
// sighting that is not before the previous stop was reached. Reports only add sightings,
// so a stop may turn out to be reached earlier, but is never lost.

// maxSightings bounds the sightings kept per stop. A dropped one lies between two kept ones, so the
// stop stays reached, perhaps at a later time.
const maxSightings = 16

// ReachTimes returns the times at which a mission's stops were reached, in route order, by
// its drone's clock.
func ReachTimes(m domain.Mission) []time.Time {
	indexes := commandedIndexes(m.Route, m.DroppedStops)
	var times []time.Time
	var before time.Time
	for i := range countedStops(m) {
		at, sighted := reachedAt(m.Sightings, indexes[i], before)
		switch {
		case sighted:
			before = at
		case i >= m.ReachedStops: // below that, a version without sightings counted it
			return times
		}
		times = append(times, before)
	}
	return times
}

// LastReachedAt is when the drone reached the latest of the mission's reached stops, by
// its clock; zero if it has reached none.
func LastReachedAt(m domain.Mission) time.Time {
	times := ReachTimes(m)
	if len(times) == 0 {
		return time.Time{}
	}
	return times[len(times)-1]
}

// reachedAt is the earliest sighting of a stop that is not before the previous stop was
// reached. A drone that claims a stop has also completed those before it.
func reachedAt(sightings []domain.Sighting, stop int, before time.Time) (at time.Time, sighted bool) {
	for _, s := range sightings {
		if s.Stop == stop && (s.Claimed || !s.At.Before(before)) && (!sighted || s.At.Before(at)) {
			at, sighted = s.At, true
		}
	}
	return at, sighted
}

// addEvidence adds what a report proves about a mission's stops and reports whether that is new. A
// parked drone's report that does not name the mission proves at most the next stop, by its
// position, and is not kept. No report proves more than the possible stops; beyond describes a
// claim of more, "" if there is none.
func (p DronePolicy) addEvidence(m *domain.Mission, t domain.Telemetry, named bool, possible int) (proved bool, beyond string) {
	times, indexes := ReachTimes(*m), commandedIndexes(m.Route, m.DroppedStops)
	most := math.MaxInt
	if named {
		most = provable(*m, t.MissionRevision)
	}
	from, to := 0, countedStops(*m) // the stops to judge by position
	var fresh []domain.Sighting
	see := func(i int, claimed bool) {
		s := domain.Sighting{Stop: indexes[i], At: t.Timestamp, Claimed: claimed}
		if indexes[i] < most && (i >= len(times) || s.At.Before(times[i])) && !slices.Contains(m.Sightings, s) {
			fresh = append(fresh, s)
		}
	}
	if named && t.CompletedStops != nil {
		completed := min(*t.CompletedStops, most)
		// The drone may still fly the route with the withdrawn orders and count their stops.
		certain, _ := slices.BinarySearch(indexes, completed)
		from, to = min(certain, to), min(completed, to)
		if from > possible {
			beyond = fmt.Sprintf("claimed %d stops of mission %s; at most %d were possible", from, m.ID, possible)
			from = possible
		}
		for i := range from {
			see(i, true)
		}
	}
	if isFault(t.Status) {
		to = from // a drone that failed near a stop has not served it
	}
	for i := from; i < min(to, possible); i++ {
		stop := m.Route[i]
		done := t.Position.DistanceMetres(stop.Position) <= p.StopRadiusMetres
		switch {
		case stop.Duty():
			done = dutyDone(stop, t, named)
		case stop.Type == domain.WaypointDepotStart && named:
			done = true
		}
		if done {
			see(i, false)
		}
	}
	if len(fresh) == 0 {
		return false, beyond
	}
	before := *m
	m.Sightings = kept(*m, append(slices.Clone(m.Sightings), fresh...))
	if news := named || len(ReachTimes(*m)) > len(times); !news || slices.Equal(m.Sightings, before.Sightings) {
		m.Sightings = before.Sightings
		return false, beyond
	}
	return true, beyond
}

// kept drops sightings of stops that were reached before, and those beyond the bound. It sorts the
// rest by stop and time, so that equal evidence makes equal documents.
func kept(m domain.Mission, all []domain.Sighting) []domain.Sighting {
	m.Sightings = all
	times, indexes := ReachTimes(m), commandedIndexes(m.Route, m.DroppedStops)
	var rest []domain.Sighting
	for i := range countedStops(m) {
		var of []domain.Sighting
		for _, s := range all {
			if s.Stop == indexes[i] && (i >= len(times) || !s.At.After(times[i])) {
				of = append(of, s)
			}
		}
		rest = append(rest, thinned(of)...)
	}
	return rest
}

// thinned sorts the sightings of one stop and bounds their number. It keeps the last one and the
// first of each second, or of each two, four and so on, so the result does not depend on their
// order of arrival. Of the claims it keeps the earliest.
func thinned(of []domain.Sighting) []domain.Sighting {
	slices.SortFunc(of, func(a, b domain.Sighting) int {
		if c := a.At.Compare(b.At); c != 0 || a.Claimed == b.Claimed {
			return c
		}
		if a.Claimed {
			return -1
		}
		return 1
	})
	claimed := false
	of = slices.DeleteFunc(of, func(s domain.Sighting) bool {
		again := claimed && s.Claimed
		claimed = claimed || s.Claimed
		return again
	})
	for step := time.Second; len(of) > maxSightings && step < 1<<20*time.Second; step *= 2 {
		last := of[len(of)-1]
		of = slices.CompactFunc(of[:len(of)-1], func(a, b domain.Sighting) bool {
			return a.Claimed == b.Claimed && a.At.Truncate(step).Equal(b.At.Truncate(step))
		})
		of = append(of, last)
	}
	return of
}

// dutyDone reports whether a report alone shows that the drone has charged or waited at a stop. A
// drone that counts its stops says so. Any other has waited when the time has come, and has charged
// if it left the mission with that charge.
func dutyDone(stop domain.Waypoint, t domain.Telemetry, named bool) bool {
	if stop.Type == domain.WaypointWait {
		return !t.Timestamp.Before(stop.WaitUntil)
	}
	return !named && t.Battery >= stop.ChargeToPercent
}
