package invariant

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dronefleet/dronefleet/domain"
)

// Check checks a history against all invariants, against F-ARE-04 where it has readings, and
// against F-SND-03 where it has a top speed. Equal histories give equal results.
func Check(h History) Result {
	if h.ClockTolerance == 0 {
		h.ClockTolerance = DefaultClockTolerance
	}
	c := newChecker(h)
	c.exclusive()
	c.legal()
	c.noOrderLost()
	c.clocks()
	c.fences()
	c.oneOutcome()
	c.allOrNothing()
	c.fold()
	c.effects()
	c.putDown()
	c.addresses()
	c.registered()
	c.possible()
	c.released()
	c.planned()
	slices.SortFunc(c.result.Violations, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Invariant, b.Invariant), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Detail, b.Detail))
	})
	return c.result
}

// checker is a history indexed by key.
type checker struct {
	History
	result Result

	droneByID   map[domain.DroneID]domain.Drone
	orderByID   map[domain.OrderID]domain.Order
	missionByID map[domain.MissionID]domain.Mission
	applied     map[domain.MissionID]domain.LedgerEntry

	events   map[entity][]domain.Event // by revision
	notes    []domain.Event            // recorded refusals; they change nothing
	entities []entity                  // with events, in a fixed order
}

// entity names a drone, an order or a mission.
type entity struct {
	kind domain.EntityKind
	id   string
}

func (e entity) String() string { return string(e.kind) + " " + e.id }

func drone(id domain.DroneID) entity     { return entity{domain.EntityDrone, string(id)} }
func order(id domain.OrderID) entity     { return entity{domain.EntityOrder, string(id)} }
func mission(id domain.MissionID) entity { return entity{domain.EntityMission, string(id)} }

func newChecker(h History) *checker {
	c := &checker{
		History:     h,
		result:      Result{Violations: []Violation{}},
		droneByID:   make(map[domain.DroneID]domain.Drone, len(h.Drones)),
		orderByID:   make(map[domain.OrderID]domain.Order, len(h.Orders)),
		missionByID: make(map[domain.MissionID]domain.Mission, len(h.Missions)),
		applied:     make(map[domain.MissionID]domain.LedgerEntry),
		events:      make(map[entity][]domain.Event),
	}
	for _, d := range h.Drones {
		c.droneByID[d.ID] = d
	}
	for _, o := range h.Orders {
		c.orderByID[o.ID] = o
	}
	for _, m := range h.Missions {
		c.missionByID[m.ID] = m
	}
	for _, row := range h.Ledger {
		if row.Outcome == domain.OutcomeApplied && row.AmendsMissionID == "" {
			c.applied[row.MissionID] = row
		}
	}
	for _, e := range h.Events {
		if e.Revision == 0 {
			c.notes = append(c.notes, e)
			continue
		}
		key := entity{e.Entity, e.ID}
		e.State = domain.WithDeadline(e.State)
		c.events[key] = append(c.events[key], e)
	}
	for key, events := range c.events {
		slices.SortStableFunc(events, func(a, b domain.Event) int { return cmp.Compare(a.Revision, b.Revision) })
		c.entities = append(c.entities, key)
	}
	slices.SortFunc(c.entities, func(a, b entity) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
	})
	return c
}

// expect counts one checked fact and adds a violation of the invariant unless ok.
func (c *checker) expect(ok bool, invariant string, subject fmt.Stringer, format string, args ...any) bool {
	c.result.Checked++
	if !ok {
		c.result.Violations = append(c.result.Violations, Violation{invariant, subject.String(), fmt.Sprintf(format, args...)})
	}
	return ok
}

// The functions below read an event's State; a missing value is the zero value.

func text(e domain.Event, key string) string {
	s, _ := e.State[key].(string)
	return s
}

func flag(e domain.Event, key string) bool {
	b, _ := e.State[key].(bool)
	return b
}

func number(e domain.Event, key string) int64 {
	n, _ := plain(e.State[key]).(int64)
	return n
}

// plain converts numbers to int64 where possible, because stores return them in
// different types.
func plain(v any) any {
	switch n := v.(type) {
	case int:
		return int64(n)
	case int32:
		return int64(n)
	case float64:
		if n == float64(int64(n)) {
			return int64(n)
		}
	}
	return v
}
