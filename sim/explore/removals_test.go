package explore

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// removal removes one rule of the contract from the policies.
type removal struct {
	rule, without string
	remove        func(Rules, Limits) Rules
	world         string
	caughtBy      string // the invariant
	steps         int    // of the shortest history that violates it
	why           string // why no invariant needs the rule
}

// heard changes the input of the telemetry policy.
func heard(change func(b *policy.Binding, t *domain.Telemetry, now time.Time)) func(Rules, Limits) Rules {
	return func(r Rules, _ Limits) Rules {
		apply := r.Telemetry
		r.Telemetry = func(b policy.Binding, t domain.Telemetry, now time.Time) (policy.Binding, policy.Change, error) {
			b = cloned(b)
			change(&b, &t, now)
			return apply(b, t, now)
		}
		return r
	}
}

func cloned(b policy.Binding) policy.Binding {
	if b.Mission != nil {
		m := *b.Mission
		b.Mission = &m
	}
	b.Orders = maps.Clone(b.Orders)
	return b
}

// told changes the result of the telemetry policy.
func told(change func(before, after *policy.Binding, c *policy.Change)) func(Rules, Limits) Rules {
	return func(r Rules, _ Limits) Rules {
		apply := r.Telemetry
		r.Telemetry = func(b policy.Binding, t domain.Telemetry, now time.Time) (policy.Binding, policy.Change, error) {
			after, c, err := apply(b, t, now)
			if err == nil {
				change(&b, &after, &c)
			}
			return after, c, err
		}
		return r
	}
}

// assignedAs judges decisions by changed orders, and leaves their pins and prohibitions
// as they are.
func assignedAs(change func(*domain.Order)) func(Rules, Limits) Rules {
	return func(r Rules, _ Limits) Rules {
		assign := r.Assign
		r.Assign = func(s policy.DecisionState, d domain.Decision, via policy.Delivery, now time.Time) (policy.Verdict, error) {
			orders := s.Orders
			s.Orders = map[domain.OrderID]domain.Order{}
			for id, o := range orders {
				change(&o)
				s.Orders[id] = o
			}
			v, err := assign(s, d, via, now)
			for i := range v.Change.Orders {
				o := &v.Change.Orders[i]
				o.PinnedDroneID, o.ForbiddenDroneIDs = orders[o.ID].PinnedDroneID, orders[o.ID].ForbiddenDroneIDs
				for j := range v.Change.Events {
					if e := &v.Change.Events[j]; e.OrderID == o.ID && e.Entity == domain.EntityOrder {
						e.State = domain.OrderState(*o)
					}
				}
			}
			return v, err
		}
		return r
	}
}

// returned changes the orders that a failed mission returns to PENDING, and their events.
func returned(change func(before domain.Order, o *domain.Order)) func(Rules, Limits) Rules {
	return told(func(before, after *policy.Binding, c *policy.Change) {
		for i := range c.Orders {
			o := &c.Orders[i]
			if o.Status != domain.OrderPending {
				continue
			}
			change(before.Orders[o.ID], o)
			after.Orders[o.ID] = *o
			for j := range c.Events {
				if e := &c.Events[j]; e.OrderID == o.ID && e.Revision == o.Revision {
					e.State = domain.OrderState(*o)
				}
			}
		}
	})
}

// asked changes the input of the order policy.
func asked(change func(o *domain.Order, b **policy.Binding, req *domain.OrderRequest)) func(Rules, Limits) Rules {
	return func(r Rules, _ Limits) Rules {
		ingest := r.Ingest
		r.Ingest = func(depots []domain.Depot, o *domain.Order, b *policy.Binding, req domain.OrderRequest, published, now time.Time) (policy.Change, error) {
			if o != nil {
				x := *o
				o = &x
				change(o, &b, &req)
			}
			return ingest(depots, o, b, req, published, now)
		}
		return r
	}
}

// judgedBy changes the input of the assignment policy.
func judgedBy(change func(*policy.DecisionState, *domain.Decision, *policy.Delivery)) func(Rules, Limits) Rules {
	return func(r Rules, _ Limits) Rules {
		assign := r.Assign
		r.Assign = func(s policy.DecisionState, d domain.Decision, via policy.Delivery, now time.Time) (policy.Verdict, error) {
			if s.Drone != nil {
				x := *s.Drone
				s.Drone = &x
			}
			s.Orders = maps.Clone(s.Orders)
			change(&s, &d, &via)
			return assign(s, d, via, now)
		}
		return r
	}
}

func everyOrder(change func(*domain.Order)) func(Rules, Limits) Rules {
	return judgedBy(func(s *policy.DecisionState, _ *domain.Decision, _ *policy.Delivery) {
		for id, o := range s.Orders {
			change(&o)
			s.Orders[id] = o
		}
	})
}

// decided changes the result of the assignment policy for applied decisions.
func decided(change func(*policy.Verdict, time.Time)) func(Rules, Limits) Rules {
	return func(r Rules, _ Limits) Rules {
		assign := r.Assign
		r.Assign = func(s policy.DecisionState, d domain.Decision, via policy.Delivery, now time.Time) (policy.Verdict, error) {
			v, err := assign(s, d, via, now)
			if err == nil && !v.Replay && v.Entry.Outcome == domain.OutcomeApplied {
				change(&v, now)
			}
			return v, err
		}
		return r
	}
}

// handOver is one call of the rule that hands an order over.
type handOver struct {
	order *domain.Order
	areas []domain.Area
	by    domain.HandOvers
	one   domain.HandOver
	now   time.Time
}

type handOverRule func(handOver) (policy.Change, error)

// handedOver puts another rule before the one that hands orders over, which it may call.
func handedOver(instead func(h handOver, rule handOverRule) (policy.Change, error)) func(Rules, Limits) Rules {
	return func(r Rules, _ Limits) Rules {
		original := r.HandOver
		rule := func(h handOver) (policy.Change, error) { return original(h.order, h.areas, h.by, h.one, h.now) }
		r.HandOver = func(o *domain.Order, areas []domain.Area, by domain.HandOvers, one domain.HandOver, now time.Time) (policy.Change, error) {
			return instead(handOver{o, areas, by, one, now}, rule)
		}
		return r
	}
}

// handedOverAs changes what the rule sees of an order that exists.
func handedOverAs(change func(*handOver)) func(Rules, Limits) Rules {
	return handedOver(func(h handOver, rule handOverRule) (policy.Change, error) {
		if h.order != nil {
			order := *h.order
			h.order = &order
			change(&h)
		}
		return rule(h)
	})
}

// handedOverForgetting hides some of the depots that had the order before from the rule.
func handedOverForgetting(forgets func(before, to domain.DepotID) bool) func(Rules, Limits) Rules {
	return handedOver(func(h handOver, rule handOverRule) (policy.Change, error) {
		had := h.order.HandedOverBy
		order := *h.order
		order.HandedOverBy = slices.DeleteFunc(slices.Clone(had), func(d domain.DepotID) bool { return forgets(d, h.one.To) })
		h.order = &order
		c, err := rule(h)
		return rewritten(c, func(o *domain.Order) { o.HandedOverBy = append(slices.Clone(had), h.one.From) }), err
	})
}

// ofItsArea takes every hand-over for one by the area that plans the order.
var ofItsArea = handedOverAs(func(h *handOver) {
	if area, planned := policy.AreaOf(h.areas, h.one.From); planned {
		h.by.DepotID = area.ID()
	}
})

// handOversAdmitted changes how the fence of a hand-over is judged.
func handOversAdmitted(before func(*policy.DecisionState), after func(*policy.Verdict)) func(Rules, Limits) Rules {
	return func(r Rules, _ Limits) Rules {
		admit := r.AdmitHandOvers
		r.AdmitHandOvers = func(s policy.DecisionState, h domain.HandOvers) (policy.Verdict, error) {
			before(&s)
			v, err := admit(s, h)
			after(&v)
			return v, err
		}
		return r
	}
}

// rewritten changes the orders of a change, and their events.
func rewritten(c policy.Change, change func(*domain.Order)) policy.Change {
	for i := range c.Orders {
		o := &c.Orders[i]
		change(o)
		for j := range c.Events {
			if e := &c.Events[j]; e.Entity == domain.EntityOrder && e.ID == string(o.ID) {
				e.State = domain.OrderState(*o)
			}
		}
	}
	return c
}

func limited(change func(*Limits)) func(Rules, Limits) Rules {
	return func(_ Rules, l Limits) Rules {
		change(&l)
		return Contract(l)
	}
}

// dueLate lets the sweeper find some drones a tick late.
func dueLate(which func(domain.Drone) bool) func(Rules, Limits) Rules {
	return func(r Rules, _ Limits) Rules {
		due := r.DroneDue
		r.DroneDue = func(d domain.Drone, m *domain.Mission) time.Time {
			if at := due(d, m); at.IsZero() || !which(d) {
				return at
			}
			return due(d, m).Add(tick)
		}
		return r
	}
}

// anywhere removes a rule together with the comparison of stops with addresses, which would
// refuse most of what the rule does.
func anywhere(remove func(Rules, Limits) Rules) func(Rules, Limits) Rules {
	return func(_ Rules, l Limits) Rules {
		recordOnly(&l)
		return remove(Contract(l), l)
	}
}

// visitedBy lets only some of a mission's stops keep a warehouse where it is.
func visitedBy(stops func(domain.Mission) []domain.Waypoint) func(Rules, Limits) Rules {
	return func(r Rules, _ Limits) Rules {
		r.Visitors = func(active []domain.Mission, w domain.WarehouseID) (names []string) {
			for _, x := range active {
				if slices.ContainsFunc(stops(x), func(stop domain.Waypoint) bool { return stop.WarehouseID == w }) {
					names = append(names, string(x.ID))
				}
			}
			return names
		}
		return r
	}
}

// marked changes the time of the mark that a move leaves.
func marked(at func(began, commits moment) moment) func(Rules, Limits) Rules {
	return func(r Rules, _ Limits) Rules {
		r.Mark = at
		return r
	}
}

func recordOnly(l *Limits) { l.Assignment.RecordStops = true }

const never = time.Hour

func parks(s domain.DroneStatus) bool { return s == domain.DroneIdle || s == domain.DroneCharging }

// Rules without a row: F-TEL-01 and F-TEL-07's distance (covered by package policy's
// property tests and tables), ordering keys and F-DEC-06 (nothing to remove), F-ORD-01
// (values, covered by tables), F-ORD-05 (the planner's), F-DEC-04 (the model assigns ids).
var removals = []removal{
	{"F-TEL-02", "a redelivered report is applied again", heard(func(b *policy.Binding, _ *domain.Telemetry, _ time.Time) {
		b.Drone.LastUpdate = b.Drone.LastUpdate.Add(-1)
	}), "flight", "I9", 1, ""},
	{"F-TEL-02", "older reports are applied", heard(func(b *policy.Binding, t *domain.Telemetry, _ time.Time) {
		if t.Timestamp.Before(b.Drone.LastUpdate) {
			b.Drone.LastUpdate = time.Time{}
		}
	}), "flight", "I4", 8, ""},
	{"F-TEL-03", "reports from the future are believed", limited(func(l *Limits) { l.Drone.MaxFuture = never }), "odd", "I10", 2, ""},
	{"F-TEL-04", "an unknown drone is not registered", func(r Rules, _ Limits) Rules {
		apply := r.Telemetry
		r.Telemetry = func(b policy.Binding, t domain.Telemetry, now time.Time) (policy.Binding, policy.Change, error) {
			if b.Drone.ID == "" {
				return b, policy.Change{}, nil
			}
			return apply(b, t, now)
		}
		return r
	}, "stranger", "I9", 1, ""},
	{"F-TEL-04", "an old IDLE report makes a drone available", limited(func(l *Limits) { l.Drone.IdleSilence = never }), "odd", "", 0, "DRONE_SILENT refuses the decision, and the sweeper takes the drone off the list"},
	{"F-TEL-05", "an empty battery is no emergency", limited(func(l *Limits) { l.Drone.EmergencyBattery = 0 }), "odd", "", 0, "only the displayed status differs: LOW_BATTERY rejects a mission, and a crash shows as a fault or as silence"},
	{"F-TEL-06", "telemetry binds a drone", heard(func(b *policy.Binding, t *domain.Telemetry, _ time.Time) {
		if t.Status == domain.DroneMoving && !b.Drone.Bound() {
			b.Drone.CurrentMissionID = t.MissionID
		}
	}), "requests", "I2", 10, ""},
	{"F-TEL-06 a", "an assigned drone counts as having heard of its mission", decided(func(v *policy.Verdict, _ time.Time) {
		v.Change.Drone.MissionAcked = true
		for i := range v.Change.Events {
			if v.Change.Events[i].Entity == domain.EntityDrone {
				v.Change.Events[i].State = domain.DroneState(*v.Change.Drone)
			}
		}
	}), "race", "I2", 1, ""},
	{"F-TEL-06 a", "the command's lifetime leaves no room for clock errors", limited(func(l *Limits) { l.Assignment.ClockError = 0 }), "clock", "AIR", 7, ""},
	{"F-TEL-06 a", "an assignment moves lastUpdate", decided(func(v *policy.Verdict, now time.Time) { v.Change.Drone.LastUpdate = now.Add(tick) }), "race", "I4", 1, ""},
	{"F-TEL-06 b", "naming the mission is no acknowledgement", heard(func(b *policy.Binding, t *domain.Telemetry, _ time.Time) {
		if !b.Drone.MissionAcked {
			t.MissionID = ""
		}
	}), "flight", "I10", 1, ""},
	{"F-TEL-06 c", "any IDLE frees an unacked drone", heard(func(b *policy.Binding, _ *domain.Telemetry, _ time.Time) {
		b.Drone.FreeAfter = time.Time{}
	}), "flight", "AIR", 6, ""},
	{"F-TEL-06 c", "nothing frees an unacked drone", heard(func(b *policy.Binding, t *domain.Telemetry, _ time.Time) {
		b.Drone.FreeAfter = t.Timestamp
	}), "flight", "", 0, "STALLED frees it later; the rule only saves time"},
	{"F-TEL-06 c", "a drone need not have heard of its mission", func(r Rules, l Limits) Rules {
		l.Drone.LateGrace = 0
		apply := l.Drone.ApplyTelemetry
		r.Telemetry = func(b policy.Binding, t domain.Telemetry, now time.Time) (policy.Binding, policy.Change, error) {
			b = cloned(b)
			b.Drone.MissionAcked = b.Drone.MissionAcked || b.Drone.Bound() && parks(t.Status)
			return apply(b, t, now)
		}
		return r
	}, "flight", "AIR", 6, ""},
	{"F-TEL-06 d", "IDLE while naming the mission ends it", heard(func(_ *policy.Binding, t *domain.Telemetry, _ time.Time) {
		if t.Status == domain.DroneIdle {
			t.MissionID = ""
		}
	}), "hover", "AIR", 8, ""},
	{"F-TEL-06 d", "a mission that was given up counts as completed", heard(func(b *policy.Binding, t *domain.Telemetry, _ time.Time) {
		if parks(t.Status) && b.Mission != nil && t.MissionID != b.Mission.ID {
			b.Mission.ReachedStops = len(b.Mission.Route)
		}
	}), "handover", "I3", 8, ""},
	{"F-TEL-06 d", "a done mission ends though its drone never moved", heard(func(b *policy.Binding, _ *domain.Telemetry, _ time.Time) {
		b.Drone.MissionMoved = b.Drone.MissionAcked
	}), "odd", "", 0, "needs a route whose stops are all at the depot; no world has one"},
	{"F-TEL-06 e", "a drone that names its failed mission is idle", heard(func(b *policy.Binding, _ *domain.Telemetry, _ time.Time) {
		b.Drone.FailedMissions = nil
	}), "cancelled", "READY", 9, ""},
	{"F-TEL-07", "stops are reached in any order", heard(func(b *policy.Binding, t *domain.Telemetry, _ time.Time) {
		if b.Mission == nil {
			return
		}
		for i, stop := range b.Mission.Route {
			if i > b.Mission.ReachedStops && t.Position == stop.Position && stop.ForOrder() {
				b.Mission.ReachedStops = i
			}
		}
	}), "odd", "I3", 8, ""},
	{"F-TEL-08", "a fault fails an acked drone's mission at once", limited(func(l *Limits) { l.Drone.FaultGrace = 0 }), "faults", "", 0, "the grace only saves missions: without it more of them fail, and are handled correctly"},
	{"F-TEL-08", "a fault is forgiven for ever", limited(func(l *Limits) { l.Drone.FaultGrace = never }), "faults", "", 0, "CONTACT_LOST and STALLED end the mission later"},
	{"F-TEL-08", "an emergency is over when the drone says so", heard(func(_ *policy.Binding, t *domain.Telemetry, _ time.Time) {
		if t.Status == domain.DroneEmergency {
			t.Status = domain.DroneProblem
		}
	}), "faults", "READY", 4, ""},
	{"F-TEL-08", "maintenance is a problem like others", heard(func(_ *policy.Binding, t *domain.Telemetry, _ time.Time) {
		if t.Status == domain.DroneMaintenance {
			t.Status = domain.DroneProblem
		}
	}), "faults", "", 0, "the same: the mission ends later"},
	{"F-TEL-09", "nobody sweeps bound drones", func(r Rules, _ Limits) Rules {
		r.SweepBinding = func(policy.Binding, time.Time) policy.Change { return policy.Change{} }
		return r
	}, "faults", "LIVE", 1, ""},
	{"F-TEL-09", "a drone that is silent for good keeps its mission, until it stalls", func(r Rules, _ Limits) Rules {
		sweep := r.SweepBinding
		r.SweepBinding = func(b policy.Binding, now time.Time) policy.Change {
			b.Drone.SeenAt = now
			return sweep(b, now)
		}
		return r
	}, "faults", "", 0, "STALLED ends the mission later; with neither, see the row after this one"},
	{"F-TEL-09", "a drone that is silent for good keeps its mission, which never stalls", func(_ Rules, l Limits) Rules {
		l.Drone.BoundSilence, l.Drone.StallFactor = never, 1e6
		return Contract(l)
	}, "faults", "LIVE", 1, ""},
	{"F-TEL-09", "a stalled mission continues", limited(func(l *Limits) { l.Drone.StallFactor = 1e6 }), "faults", "LIVE", 4, ""},
	{"F-TEL-09", "a silent idle drone stays available", func(r Rules, _ Limits) Rules {
		r.SweepIdle = func(domain.Drone, time.Time) policy.Change { return policy.Change{} }
		return r
	}, "faults", "LIVE", 1, ""},
	{"F-TEL-09", "late orders are not marked", func(r Rules, _ Limits) Rules {
		r.SweepOrder = func(domain.Order, time.Time) policy.Change { return policy.Change{} }
		return r
	}, "faults", "LIVE", 2, ""},
	{"F-SWP-01", "an idle drone is due a tick late", dueLate(func(d domain.Drone) bool { return !d.Bound() }), "faults", "DUE", 1, ""},
	{"F-SWP-01", "a bound drone is due a tick late", dueLate(func(d domain.Drone) bool { return d.Bound() }), "faults", "DUE", 1, ""},
	{"F-SWP-01", "a drone with a fault is due a tick late", dueLate(func(d domain.Drone) bool { return !d.FaultSince.IsZero() }), "faults", "DUE", 7, ""},
	{"F-SWP-01", "an order is due after its deadline", func(r Rules, _ Limits) Rules {
		r.OrderDue = func(o domain.Order) time.Time { return policy.OrderDue(o).Add(2 * tick) }
		return r
	}, "faults", "DUE", 7, ""},
	{"F-TEL-10", "a ghost gets its revocation only once", told(func(_, _ *policy.Binding, c *policy.Change) { c.Revoke = nil }), "ghost", "LIVE", 12, ""},
	{"F-TEL-11", "late reports prove nothing", func(r Rules, _ Limits) Rules {
		apply := r.Telemetry
		r.Telemetry = func(b policy.Binding, t domain.Telemetry, now time.Time) (policy.Binding, policy.Change, error) {
			if b.Drone.ID != "" && !t.Timestamp.After(b.Drone.LastUpdate) {
				return b, policy.Change{}, &policy.Rejection{Reason: policy.ReasonStaleTelemetry}
			}
			return apply(b, t, now)
		}
		return r
	}, "flight", "I10", 3, ""},
	{"F-TEL-11", "late reports prove nothing about a mission that is over", func(r Rules, _ Limits) Rules {
		r.ProveLate = func(policy.Ended, domain.Telemetry, time.Time) (policy.Change, error) {
			return policy.Change{}, &policy.Rejection{Reason: policy.ReasonStaleTelemetry}
		}
		return r
	}, "anew", "I10", 2, ""},
	{"F-TEL-11", "a parked drone's mission ends at once", limited(func(l *Limits) { l.Drone.LateGrace = 0 }), "late", "I10", 10, ""},
	{"F-TEL-12", "completed stops are ignored", heard(func(_ *policy.Binding, t *domain.Telemetry, _ time.Time) { t.CompletedStops = nil }), "counts", "I10", 5, ""},
	{"F-TEL-12", "more stops than the route has are taken for all of them", heard(func(b *policy.Binding, t *domain.Telemetry, _ time.Time) {
		if b.Mission != nil && t.CompletedStops != nil {
			n := min(*t.CompletedStops, len(b.Mission.Route))
			t.CompletedStops = &n
		}
	}), "counts", "TRUE", 5, ""},

	{"F-ORD-02", "a redelivered order starts over", asked(func(o *domain.Order, _ **policy.Binding, req *domain.OrderRequest) {
		if !req.Cancel && o.Status != domain.OrderCancelled {
			o.ContentHash, o.Status = "", domain.OrderPending
		}
	}), "requests", "I9", 2, ""},
	{"F-ORD-02", "changed content of an assigned order is accepted", asked(func(o *domain.Order, _ **policy.Binding, req *domain.OrderRequest) {
		if o.Status == domain.OrderAssigned && !req.Cancel {
			o.Status = domain.OrderPending
		}
	}), "requests", "I2", 6, ""},
	{"F-ORD-02", "an older request replaces a newer one", asked(func(o *domain.Order, _ **policy.Binding, _ *domain.OrderRequest) {
		o.ContentPublishedAt = time.Time{}
	}), "requests", "I9", 4, ""},
	{"F-ORD-03", "a cancellation that overtakes its order is forgotten", func(r Rules, _ Limits) Rules {
		ingest := r.Ingest
		r.Ingest = func(depots []domain.Depot, o *domain.Order, b *policy.Binding, req domain.OrderRequest, published, now time.Time) (policy.Change, error) {
			if o == nil && req.Cancel {
				return policy.Change{}, nil
			}
			return ingest(depots, o, b, req, published, now)
		}
		return r
	}, "requests", "I9", 4, ""},
	{"F-ORD-03", "a parcel aboard can be cancelled", asked(func(o *domain.Order, _ **policy.Binding, req *domain.OrderRequest) {
		if req.Cancel && o.Status == domain.OrderInDelivery {
			o.Status = domain.OrderAssigned
		}
	}), "withdraw", "I8", 7, ""},
	{"F-ORD-03", "a cancelled order stays in its mission", asked(func(_ *domain.Order, b **policy.Binding, _ *domain.OrderRequest) { *b = nil }), "withdraw", "I3", 4, ""},
	{"F-ORD-03", "a refused cancellation is not recorded", func(r Rules, _ Limits) Rules {
		ingest := r.Ingest
		r.Ingest = func(depots []domain.Depot, o *domain.Order, b *policy.Binding, req domain.OrderRequest, published, now time.Time) (policy.Change, error) {
			c, err := ingest(depots, o, b, req, published, now)
			if err != nil {
				c = policy.Change{}
			}
			return c, err
		}
		return r
	}, "withdraw", "I9", 7, ""},
	{"F-ORD-04", "an order aboard goes back to the pool", returned(func(before domain.Order, o *domain.Order) {
		if before.Status == domain.OrderInDelivery {
			o.Held = false
		}
	}), "handover", "I2", 8, ""},
	{"F-ORD-04", "failed attempts are not counted", returned(func(before domain.Order, o *domain.Order) { o.Attempts = before.Attempts }), "flight", "I2", 3, ""},
	{"F-ORD-04", "an order is tried for ever", returned(func(before domain.Order, o *domain.Order) {
		if before.Status == domain.OrderAssigned {
			o.Held = false
		}
	}), "third try", "I2", 4, ""},
	{"F-ORD-04", "a failed mission keeps its orders", told(func(_, _ *policy.Binding, c *policy.Change) {
		c.Events = slices.DeleteFunc(c.Events, func(e domain.Event) bool {
			return e.Entity == domain.EntityOrder && e.To == string(domain.OrderPending)
		})
		c.Orders = slices.DeleteFunc(c.Orders, func(o domain.Order) bool { return o.Status == domain.OrderPending })
	}), "flight", "I3", 3, ""},

	{"F-DEC-01", "an assignment forgets an order", decided(func(v *policy.Verdict, _ time.Time) {
		if n := len(v.Change.Orders); n > 1 {
			lost := v.Change.Orders[n-1].ID
			v.Change.Orders = v.Change.Orders[:n-1]
			v.Change.Events = slices.DeleteFunc(v.Change.Events, func(e domain.Event) bool { return e.OrderID == lost })
		}
	}), "race", "I7", 2, ""},
	{"F-DEC-02", "the ledger is not read", judgedBy(func(s *policy.DecisionState, _ *domain.Decision, _ *policy.Delivery) { s.Ledger = nil }), "race", "I6", 3, ""},
	{"F-DEC-02", "another decision takes the id", judgedBy(func(s *policy.DecisionState, d *domain.Decision, _ *policy.Delivery) {
		if s.Ledger != nil {
			d.PayloadHash = s.Ledger.PayloadHash
		}
	}), "forged", "I6", 4, ""},
	{"F-DEC-02", "STALE_FENCE: fences are not compared", judgedBy(func(s *policy.DecisionState, _ *domain.Decision, _ *policy.Delivery) {
		s.Fences, s.Issued = nil, policy.Fences{depot: fenceText(forgedFence)}
	}), "race", "I5", 4, ""},
	{"F-OWN-03", "STALE_FENCE: an owner whose area another member took is believed", judgedBy(func(s *policy.DecisionState, d *domain.Decision, _ *policy.Delivery) {
		s.Fences, s.Issued = nil, policy.Fences{d.DepotID: fenceText(forgedFence)}
	}), "owned", "I5", 6, ""},
	{"F-DEC-07", "FENCE_UNKNOWN: a fence that the lock never handed out is applied", judgedBy(func(s *policy.DecisionState, d *domain.Decision, _ *policy.Delivery) {
		if s.Issued != nil {
			s.Issued.Raise(depot, d.Fence)
		}
	}), "forged", "I5", 2, ""},
	{"F-DEC-07", "FENCE_MISSING: a decision needs no fence", limited(func(l *Limits) { l.Assignment.AllowUnfenced = true }), "forged", "I5", 2, ""},
	{"F-DEC-07", "a forged fence that was applied blocks the depot for ever", judgedBy(func(s *policy.DecisionState, _ *domain.Decision, _ *policy.Delivery) {
		s.Issued = nil
	}), "blocked", "LIVE", 1, ""},
	{"F-DEC-02", "a higher fence is not stored", decided(func(v *policy.Verdict, _ time.Time) { v.Fence = "" }), "race", "I5", 1, ""},
	{"F-DEC-02", "DECISION_EXPIRED: a decision never expires", limited(func(l *Limits) { l.Assignment.MaxAge = never }), "forged", "READY", 3, ""},
	{"F-DEC-02", "a snapshot from the future is believed", judgedBy(func(_ *policy.DecisionState, _ *domain.Decision, via *policy.Delivery) { via.PublishedAt = time.Time{} }), "forged", "READY", 3, ""},
	{"F-DEC-02", "DRONE_UNKNOWN: any drone will do", judgedBy(func(s *policy.DecisionState, d *domain.Decision, via *policy.Delivery) {
		if s.Drone == nil {
			s.Drone = &domain.Drone{ID: d.DroneID, Status: domain.DroneIdle, Battery: 90, SeenAt: via.ReceivedAt}
		}
	}), "forged", "I2", 3, ""},
	{"F-OPR-01", "DRONE_GROUNDED: a grounded drone is assigned", judgedBy(func(s *policy.DecisionState, _ *domain.Decision, _ *policy.Delivery) {
		if s.Drone != nil {
			s.Drone.Grounded = false
		}
	}), "grounded", "I2", 3, ""},
	{"F-REG-09", "DRONE_UNREGISTERED: a drone that nobody registered, or that is retired, is assigned", judgedBy(func(s *policy.DecisionState, _ *domain.Decision, _ *policy.Delivery) {
		if s.Drone != nil {
			s.Drone.Unregistered, s.Drone.RetiredAt = false, time.Time{}
		}
	}), "stranger", "I12", 6, ""},
	{"F-SND-03", "a report proves whatever it claims", heard(func(b *policy.Binding, _ *domain.Telemetry, _ time.Time) {
		b.Drone.Track = nil
	}), "boaster", "CLAIM", 2, ""},
	{"F-SND-03", "a report proves whatever it claims of a mission that has ended", func(r Rules, _ Limits) Rules {
		prove := r.ProveLate
		r.ProveLate = func(e policy.Ended, t domain.Telemetry, now time.Time) (policy.Change, error) {
			e.Mission.Track = nil
			return prove(e, t, now)
		}
		return r
	}, "boaster", "CLAIM", 5, ""},
	{"F-SND-03", "a drone is believed to be wherever it jumps to", heard(func(b *policy.Binding, _ *domain.Telemetry, _ time.Time) {
		if k := b.Drone.Track; k != nil {
			b.Drone.Track = &domain.Track{Position: b.Drone.Position, At: b.Drone.LastUpdate, MissionID: k.MissionID, Stops: max(1, k.Stops)}
		}
	}), "boaster", "I9", 2, ""},
	{"F-SND-03", "a drone passes a stop when it jumps", told(func(before, after *policy.Binding, c *policy.Change) {
		if from, to := before.Drone.Track, after.Drone.Track; from != nil && to != nil && c.Drone != nil && to.At.Equal(from.At) {
			to.Stops = max(1, to.Stops) + 1
			c.Drone.Track = to
		}
	}), "boaster", "I9", 2, ""},
	{"F-SND-03", "a drone that reports late has flown no farther", func(r Rules, l Limits) Rules {
		l.Drone.ClockError = 0
		r.Telemetry = l.Drone.ApplyTelemetry
		return r
	}, "boaster", "CLAIM", 1, ""},
	{"F-OPR-01", "a report releases a grounded drone", heard(func(b *policy.Binding, _ *domain.Telemetry, _ time.Time) {
		b.Drone.Grounded = false
	}), "grounded", "I8", 4, ""},
	{"F-OPR-05", "DRONE_NOT_ALLOWED: an order is assigned to another drone than its pin", assignedAs(func(o *domain.Order) {
		o.PinnedDroneID = ""
	}), "pinned", "I2", 3, ""},
	{"F-OPR-05", "DRONE_NOT_ALLOWED: an order is assigned to a forbidden drone", assignedAs(func(o *domain.Order) {
		o.ForbiddenDroneIDs = nil
	}), "pinned", "I2", 3, ""},
	{"F-OPR-02", "a recalled mission ends though its drone still flies it", heard(func(b *policy.Binding, t *domain.Telemetry, _ time.Time) {
		if b.Mission != nil && !b.Mission.RecalledAt.IsZero() {
			t.MissionID = ""
		}
	}), "recalled", "I10", 5, ""},
	{"F-OPR-02", "a recalled mission ends before its command has expired", heard(func(b *policy.Binding, t *domain.Telemetry, _ time.Time) {
		if b.Mission != nil && !b.Mission.RecalledAt.IsZero() && t.MissionID == "" {
			b.Drone.FreeAfter, b.Drone.ParkedSince = time.Time{}, start.Add(-never)
		}
	}), "recalled", "AIR", 7, ""},
	{"F-OPR-02", "a recalled mission's orders are free as soon as its drone leaves it", heard(func(b *policy.Binding, _ *domain.Telemetry, _ time.Time) {
		if b.Mission != nil && !b.Mission.RecalledAt.IsZero() {
			b.Drone.ParkedSince = start.Add(-never)
		}
	}), "recalled late", "I10", 5, ""},
	{"F-OPR-02", "a recalled drone is told to land with a parcel aboard", func(r Rules, l Limits) Rules {
		recall := r.Recall
		r.Recall = func(b policy.Binding, m *domain.Mission, id domain.MissionID, why string, now time.Time) (policy.Change, error) {
			b.Orders = nil
			return recall(b, m, id, why, now)
		}
		return r
	}, "recalled half", "", 0, "the parcel is held for an operator; it is only not delivered"},
	{"F-DEC-02", "DRONE_NOT_IDLE: a drone is assigned whatever it does", judgedBy(func(s *policy.DecisionState, _ *domain.Decision, _ *policy.Delivery) {
		if s.Drone != nil {
			s.Drone.Status, s.Drone.CurrentMissionID = domain.DroneIdle, ""
		}
	}), "race", "I2", 4, ""},
	{"F-DEC-02", "DRONE_SILENT: a silent drone is assigned", limited(func(l *Limits) { l.Assignment.MaxSilence = never }), "flight", "READY", 6, ""},
	{"F-DEC-02", "LOW_BATTERY: a drone lands on an empty battery", judgedBy(func(_ *policy.DecisionState, d *domain.Decision, _ *policy.Delivery) {
		d.EstimatedBatteryConsumption = 0
	}), "forged", "READY", 3, ""},
	{"F-DEC-02", "DRONE_CHANGED: a drone that was away is taken for the one the plan saw", judgedBy(func(s *policy.DecisionState, _ *domain.Decision, _ *policy.Delivery) {
		if s.Drone != nil {
			s.Drone.IdleSince = time.Time{}
		}
	}), "odd", "READY", 9, ""},
	{"F-DEC-02", "ORDER_UNKNOWN: an order need not exist", anywhere(judgedBy(func(s *policy.DecisionState, d *domain.Decision, _ *policy.Delivery) {
		for _, id := range d.OrderIDs {
			if _, ok := s.Orders[id]; !ok {
				s.Orders[id] = domain.Order{ID: id, Status: domain.OrderPending}
			}
		}
	})), "forged", "I8", 3, ""},
	{"F-DEC-02", "ORDER_NOT_PENDING: an order is assigned whatever its status", everyOrder(func(o *domain.Order) { o.Status = domain.OrderPending }), "race", "I8", 4, ""},
	{"F-DEC-02", "ORDER_HELD: a held order is assigned", everyOrder(func(o *domain.Order) { o.Held = false }), "third try", "I2", 9, ""},
	{"F-DEC-02", "ORDER_CHANGED: an order that changed is taken for the one the plan saw", anywhere(everyOrder(func(o *domain.Order) { o.PendingSince = time.Time{} })), "requests", "READY", 6, ""},
	{"F-DEC-02", "ORDER_CHANGED: a request that commits after the snapshot is dated before it", anywhere(judgedBy(func(s *policy.DecisionState, _ *domain.Decision, _ *policy.Delivery) {
		s.OrdersWritten = nil
	})), "slow", "READY", 5, ""},
	{"F-DEC-02", "BAD_ROUTE: routes are not checked", judgedBy(func(_ *policy.DecisionState, d *domain.Decision, _ *policy.Delivery) {
		if d.Route[1].Type == domain.WaypointHospitalDelivery {
			d.Route = slices.Clone(d.Route)
			d.Route[1], d.Route[2] = d.Route[2], d.Route[1]
		}
	}), "forged", "READY", 3, ""},
	{"F-STP-01", "STOP_MISPLACED: stops are not compared with addresses", limited(recordOnly), "misplaced", "I11", 3, ""},
	{"F-STP-01", "STOP_MISPLACED: stops are not compared with addresses", limited(recordOnly), "moved", "", 0, "the mark that a move leaves makes older decisions expire"},
	{"F-STP-05", "IN_USE: a warehouse moves while missions still fly to it", visitedBy(func(domain.Mission) []domain.Waypoint { return nil }), "moved", "I11", 4, ""},
	{"F-STP-05", "IN_USE: a warehouse moves while an amendment leads to it", visitedBy(func(x domain.Mission) []domain.Waypoint {
		return x.Route[x.ReachedStops:]
	}), "moved", "I11", 4, ""},
	{"F-STP-05", "DECISION_EXPIRED: a move leaves no mark", marked(func(_, _ moment) moment { return 0 }), "moved", "", 0, "STOP_MISPLACED refuses the decision"},
	{"F-STP-05", "DECISION_EXPIRED: a move leaves no mark, and stops are not compared", anywhere(marked(func(_, _ moment) moment { return 0 })), "moved", "I11", 4, ""},
	{"F-STP-05", "DECISION_EXPIRED: a move is dated before its commit, and stops are not compared", anywhere(marked(func(began, _ moment) moment { return began })), "moved", "I11", 5, ""},
	{"F-DEC-02", "OVER_CAPACITY: loads are not checked", judgedBy(func(s *policy.DecisionState, _ *domain.Decision, _ *policy.Delivery) {
		if s.Drone != nil {
			s.Drone.PayloadCapacityKg = 0
		}
	}), "forged", "READY", 3, ""},
	{"F-DEC-03", "the good orders of a bad decision are assigned", judgedBy(func(s *policy.DecisionState, d *domain.Decision, _ *policy.Delivery) {
		good := slices.DeleteFunc(slices.Clone(d.OrderIDs), func(id domain.OrderID) bool { return s.Orders[id].Status != domain.OrderPending })
		if len(good) > 0 && len(good) < len(d.OrderIDs) {
			d.Route = slices.DeleteFunc(slices.Clone(d.Route), func(w domain.Waypoint) bool { return w.ForOrder() && !slices.Contains(good, w.OrderID) })
			d.OrderIDs = good
		}
	}), "race", "I7", 4, ""},
	{"F-DEC-05", "an assigned drone is owed no command", decided(func(v *policy.Verdict, now time.Time) {
		v.Change.Missions[0].CommandPending, v.Change.Missions[0].CommandPublishedAt = false, now
	}), "race", "", 0, "the mission fails as NOT_ACKED, and the order is assigned again or held; only time is lost"},
	{"F-AMD-04", "an order is taken away before the drone knows", heard(func(b *policy.Binding, t *domain.Telemetry, _ time.Time) {
		if b.Mission != nil && b.Mission.Amendment != nil && t.MissionID == b.Mission.ID && len(b.Mission.Amendment.ReleasedIDs) > 0 {
			t.MissionRevision = b.Mission.Amendment.Revision
		}
	}), "amended late", "TRUE", 4, ""},
	{"F-AMD-04", "an order is taken away when it is decided", decided(func(v *policy.Verdict, now time.Time) {
		for i := range v.Change.Orders {
			o := &v.Change.Orders[i]
			if !o.Releasing {
				continue
			}
			o.Status, o.AssignedDroneID, o.AssignedMissionID, o.Releasing, o.PendingSince = domain.OrderPending, "", "", false, now
			m := &v.Change.Missions[0]
			m.OrderIDs = slices.DeleteFunc(slices.Clone(m.OrderIDs), func(id domain.OrderID) bool { return id == o.ID })
			for j := range v.Change.Events {
				switch e := &v.Change.Events[j]; e.ID {
				case string(o.ID):
					e.To, e.State = string(o.Status), domain.OrderState(*o)
				case string(m.ID):
					e.State = domain.MissionState(*m)
				}
			}
		}
	}), "amended late", "I2", 2, ""},
	{"F-AMD-03", "an amendment is void before its command expires", heard(func(b *policy.Binding, t *domain.Telemetry, _ time.Time) {
		if b.Mission != nil && b.Mission.Amendment != nil && t.MissionID == b.Mission.ID {
			b.Mission.CommandExpiresAt = start
		}
	}), "amended", "I1", 6, ""},
	{"F-AMD-03", "naming the mission confirms its amendment", heard(func(b *policy.Binding, t *domain.Telemetry, _ time.Time) {
		if b.Mission != nil && b.Mission.Amendment != nil && t.MissionID == b.Mission.ID {
			t.MissionRevision = b.Mission.Amendment.Revision
		}
	}), "amended", "I10", 3, ""},
	{"F-AMD-03", "an amendment can be void after the drone named it", told(func(before, after *policy.Binding, c *policy.Change) {
		was, is := before.Mission, after.Mission
		if was == nil || is == nil || was.Amendment == nil || is.RouteRevision != was.Amendment.Revision || is.Status != domain.MissionActive {
			return
		}
		m := *is // the old route stays in force, as if nothing had been said
		m.RouteRevision, m.Route, m.Amendment, m.EarlierRoutes = was.RouteRevision, was.Route, was.Amendment, was.EarlierRoutes
		after.Mission = &m
		for i := range c.Missions {
			if c.Missions[i].ID == m.ID {
				m.Revision, m.ReachedStops, m.Sightings = c.Missions[i].Revision, c.Missions[i].ReachedStops, c.Missions[i].Sightings
				c.Missions[i] = m
			}
		}
		for i := range c.Events {
			if e := &c.Events[i]; e.Entity == domain.EntityMission && e.ID == string(m.ID) {
				e.State = domain.MissionState(m)
			}
		}
	}), "amended", "I9", 3, ""},
	{"F-AMD-03", "an amendment never expires", heard(func(b *policy.Binding, _ *domain.Telemetry, _ time.Time) {
		if b.Mission != nil && b.Mission.Amendment != nil {
			b.Mission.CommandExpiresAt = b.Mission.CommandExpiresAt.Add(never)
		}
	}), "amended", "", 0, "the drone lands at last, and the order waits again; package policy's stories show when it should"},
	{"F-AMD-01", "REVISION_CHANGED: an amendment is decided while another waits for the drone", judgedBy(func(s *policy.DecisionState, d *domain.Decision, _ *policy.Delivery) {
		if s.Mission != nil {
			m := *s.Mission
			m.Amendment, d.AmendsRevision = nil, m.RouteRevision
			s.Mission = &m
		}
	}), "amended", "READY", 4, ""},
	{"F-AMD-02", "ORDER_ABOARD and STOP_COMMITTED: what is aboard is taken away", func(r Rules, l Limits) Rules {
		assign := r.Assign
		r.Assign = func(s policy.DecisionState, d domain.Decision, via policy.Delivery, now time.Time) (policy.Verdict, error) {
			if s.Mission == nil {
				return assign(s, d, via, now)
			}
			m, reached := *s.Mission, s.Mission.ReachedStops
			m.ReachedStops = 0
			s.Mission, s.Orders = &m, maps.Clone(s.Orders)
			for id, o := range s.Orders {
				if o.Status == domain.OrderInDelivery && !slices.Contains(d.OrderIDs, id) {
					delete(s.Orders, id)
				}
			}
			v, err := assign(s, d, via, now)
			for i := range v.Change.Missions {
				v.Change.Missions[i].ReachedStops = reached
				for j := range v.Change.Events {
					if e := &v.Change.Events[j]; e.Entity == domain.EntityMission {
						e.State = domain.MissionState(v.Change.Missions[i])
					}
				}
			}
			return v, err
		}
		return r
	}, "amended late", "I7", 5, ""},
	{"F-AMD-06", "a mission without orders does not give way", judgedBy(func(s *policy.DecisionState, _ *domain.Decision, _ *policy.Delivery) {
		if s.Mission != nil && s.Mission.Standby() {
			s.Mission = nil
		}
	}), "standby late", "READY", 2, ""},
	{"F-AMD-06", "a drone that waits is given a second mission", judgedBy(func(s *policy.DecisionState, d *domain.Decision, _ *policy.Delivery) {
		if !d.Amends() && s.Drone != nil && s.Drone.Bound() {
			s.Drone.Status, s.Drone.CurrentMissionID = domain.DroneIdle, ""
		}
	}), "standby", "I2", 3, ""},
	{"F-AMD-06", "a drone has waited as soon as it says that it does", heard(func(b *policy.Binding, t *domain.Telemetry, _ time.Time) {
		if b.Mission != nil && b.Mission.Standby() && t.MissionID == b.Mission.ID {
			t.CompletedStops = new(len(b.Mission.Route))
		}
	}), "standby", "TRUE", 3, ""},
	{"F-AMD-06", "a drone that waits for nobody keeps the order that it was never told of", heard(func(b *policy.Binding, t *domain.Telemetry, _ time.Time) {
		if b.Mission != nil && b.Mission.Standby() && b.Mission.Amendment != nil && t.MissionID == b.Mission.ID {
			t.MissionRevision = b.Mission.Amendment.Revision
		}
	}), "standby late", "TRUE", 4, ""},
	{"F-DEC-02", "a drone under way is given its next mission", judgedBy(func(s *policy.DecisionState, _ *domain.Decision, _ *policy.Delivery) {
		s.Drone.Homebound = s.Drone.Bound()
	}), "homebound", "READY", 8, ""},
	{"F-DEC-02", "a drone that has served another mission since the snapshot is given one", judgedBy(func(s *policy.DecisionState, _ *domain.Decision, _ *policy.Delivery) {
		s.Drone.HomeboundSince = time.Time{}
	}), "homebound", "READY", 10, ""},
	{"F-ARE-04", "the first area does not plan orders whose depot is gone", func(r Rules, _ Limits) Rules {
		r.Reads = func(_ []domain.Area, area domain.DepotID, o domain.Order) bool { return o.PlanningDepotID == area }
		return r
	}, "areas", "AREA", 1, ""},
	{"F-ARE-04", "a cycle reads the orders of every area", func(r Rules, _ Limits) Rules {
		r.Reads = func([]domain.Area, domain.DepotID, domain.Order) bool { return true }
		return r
	}, "areas", "AREA", 1, ""},
	{"F-ARE-04", "the sweeper finds no depot for an order whose depot is gone", func(r Rules, _ Limits) Rules {
		r.SweepPlanningDepot = func(domain.Order, []domain.Depot, time.Time) policy.Change { return policy.Change{} }
		return r
	}, "readdressed", "LIVE", 5, ""},
	{"F-ARE-04", "the sweeper finds a depot for orders that have one", func(r Rules, _ Limits) Rules {
		sweep := r.SweepPlanningDepot
		r.SweepPlanningDepot = func(o domain.Order, depots []domain.Depot, now time.Time) policy.Change {
			return sweep(o, slices.DeleteFunc(slices.Clone(depots), func(d domain.Depot) bool { return d.ID == o.PlanningDepotID }), now)
		}
		return r
	}, "areas", "AREA", 1, ""},
	{"F-ARE-04", "a new order gets no depot", func(r Rules, _ Limits) Rules {
		ingest := r.Ingest
		r.Ingest = func(_ []domain.Depot, o *domain.Order, b *policy.Binding, req domain.OrderRequest, published, now time.Time) (policy.Change, error) {
			return ingest(nil, o, b, req, published, now)
		}
		return r
	}, "readdressed", "AREA", 2, ""},
	{"F-ARE-04", "an order that is wanted elsewhere keeps its depot", func(r Rules, _ Limits) Rules {
		ingest := r.Ingest
		r.Ingest = func(depots []domain.Depot, o *domain.Order, b *policy.Binding, req domain.OrderRequest, published, now time.Time) (policy.Change, error) {
			c, err := ingest(depots, o, b, req, published, now)
			if o == nil {
				return c, err
			}
			return rewritten(c, func(x *domain.Order) {
				x.PlanningDepotID, x.PlanningSince, x.HandedOverBy = o.PlanningDepotID, o.PlanningSince, o.HandedOverBy
			}), err
		}
		return r
	}, "readdressed", "AREA", 4, ""},
	{"F-ARE-05", "NOT_PENDING: an order is handed over whatever its status", handedOverAs(func(h *handOver) {
		h.order.Status = domain.OrderPending
	}), "areas", "I2", 4, ""},
	{"F-ARE-05", "ORDER_HELD: a held order is handed over", handedOverAs(func(h *handOver) {
		h.order.Held = false
	}), "areas", "I2", 3, ""},
	{"F-ARE-05", "PLANNED_ELSEWHERE: an order that has moved is handed over", handedOverAs(func(h *handOver) {
		h.order.PlanningDepotID = h.one.From
	}), "areas", "I2", 5, ""},
	{"F-ARE-05", "DEPOT_UNKNOWN: an order is handed over to a depot that is gone", handedOverAs(func(h *handOver) {
		h.areas = append(slices.Clone(h.areas), domain.Area{Depots: []domain.Depot{{ID: h.one.To}}})
	}), "areas", "AREA", 3, ""},
	{"F-ARE-05", "HANDED_OVER_BEFORE: a depot gets an order back", handedOverForgetting(func(before, to domain.DepotID) bool { return before == to }), "areas", "I2", 4, ""},
	{"F-ARE-05", "TOO_MANY_HAND_OVERS: an order is handed over any number of times", handedOverForgetting(func(before, to domain.DepotID) bool { return before != to }), "areas", "I2", 4, ""},
	{"F-ARE-05", "STALE_FENCE: fences of hand-overs are not compared", handOversAdmitted(func(s *policy.DecisionState) {
		s.Fences = nil
	}, func(*policy.Verdict) {}), "areas", "I5", 4, ""},
	{"F-ARE-05", "the fence of a hand-over is not stored", handOversAdmitted(func(*policy.DecisionState) {}, func(v *policy.Verdict) {
		v.Fence = ""
	}), "areas", "I5", 2, ""},
	{"F-ARE-01", "a chain of depots is not joined beyond the next one", func(r Rules, _ Limits) Rules {
		r.Areas = func(depots []domain.Depot, radiusKm float64) (areas []domain.Area) {
			for _, d := range depots {
				areas = append(areas, domain.Area{Depots: slices.DeleteFunc(slices.Clone(depots), func(other domain.Depot) bool {
					return d.Position.DistanceMetres(other.Position) > radiusKm*1000
				})})
			}
			return areas
		}
		return r
	}, "regrouped", "AREA", 2, ""},
	{"F-ARE-02", "a cycle reads the orders of the depot alone that names its area", func(r Rules, _ Limits) Rules {
		reads := r.Reads
		r.Reads = func(areas []domain.Area, area domain.DepotID, o domain.Order) bool {
			return reads(areas, area, o) && (o.PlanningDepotID == area || o.PlanningDepotID == "")
		}
		return r
	}, "grouped", "AREA", 1, ""},
	{"F-ARE-04", "one area plans the orders without a depot, whatever happens to its depots", func(r Rules, _ Limits) Rules {
		reads := r.Reads
		r.Reads = func(areas []domain.Area, area domain.DepotID, o domain.Order) bool {
			if _, planned := policy.AreaOf(areas, o.PlanningDepotID); !planned {
				return area == "EAST"
			}
			return reads(areas, area, o)
		}
		return r
	}, "founded", "AREA", 3, ""},
	{"F-ARE-05", "PLANNED_ELSEWHERE: an area whose depot is gone hands its orders over", handedOverAs(func(h *handOver) {
		h.areas = append(slices.Clone(h.areas), domain.Area{Depots: []domain.Depot{{ID: h.by.DepotID}, {ID: h.one.From}}})
	}), "grouped", "AREA", 3, ""},
	{"F-ARE-05", "PLANNED_ELSEWHERE: a cycle of areas that were regrouped hands orders over", ofItsArea, "regrouped", "AREA", 3, ""},
	{"F-ARE-05", "PLANNED_ELSEWHERE: an area takes the orders of another one", ofItsArea, "passed", "AREA", 2, ""},
	{"F-ARE-05", "PLANNED_ELSEWHERE: an area hands over what its depot does not plan", handedOverAs(func(h *handOver) {
		h.order.PlanningDepotID = h.one.From
	}), "passed", "I2", 2, ""},
	{"F-ARE-05", "NOT_FOUND: an order that nobody knows is handed over", handedOver(func(h handOver, rule handOverRule) (policy.Change, error) {
		if h.order == nil {
			h.order = &domain.Order{ID: h.one.OrderID, Status: domain.OrderPending, PlanningDepotID: h.one.From}
		}
		return rule(h)
	}), "passed", "I8", 2, ""},
	{"F-ARE-05", "NOT_PENDING: an order that has ended is handed over", handedOverAs(func(h *handOver) {
		if h.order.Status.Final() {
			h.order.Status = domain.OrderPending
		}
	}), "passed", "I2", 2, ""},
	{"F-ARE-05", "FENCE_UNKNOWN: the lock's fences do not bound a hand-over's", handOversAdmitted(func(s *policy.DecisionState) {
		for depot := range s.Issued {
			s.Issued = policy.Fences{depot: "900000000000000"}
		}
	}, func(*policy.Verdict) {}), "passed", "I5", 2, ""},
	{"F-ARE-05", "FENCE_MISSING: a hand-over needs no fence", func(r Rules, _ Limits) Rules {
		admit := r.AdmitHandOvers
		r.AdmitHandOvers = func(s policy.DecisionState, h domain.HandOvers) (policy.Verdict, error) {
			if h.Fence == "" {
				return policy.Verdict{}, nil
			}
			return admit(s, h)
		}
		return r
	}, "passed", "I5", 2, ""},
	{"F-ARE-05", "a hand-over that is refused is written nevertheless", handedOver(func(h handOver, rule handOverRule) (policy.Change, error) {
		c, err := rule(h)
		if err != nil && h.order != nil {
			h.by.DepotID = h.one.From
			h.areas = []domain.Area{{Depots: []domain.Depot{{ID: h.one.From}}}, {Depots: []domain.Depot{{ID: h.one.To}}}}
			c, _ = rule(h)
		}
		return c, err
	}), "passed", "AREA", 2, ""},
	{"F-ARE-05", "a hand-over that is refused counts as done", handedOver(func(h handOver, rule handOverRule) (policy.Change, error) {
		c, _ := rule(h)
		return c, nil
	}), "passed", "AREA", 2, ""},
	{"F-DEC-05", "a failed mission owes no revocation", told(func(_, _ *policy.Binding, c *policy.Change) {
		for i := range c.Missions {
			c.Missions[i].RevokePending = false
		}
	}), "faults", "", 0, "F-TEL-10: a ghost gets its revocation when it reports"},
}

// explore searches for the shortest history that the removal breaks.
func (r removal) explore(limit int) Result {
	w, _ := WorldOf(r.world)
	l := limitsOf(w)
	return Explore(w, r.remove(Contract(l), l), limit)
}

// Without any one rule of the contract's sections 3 to 5 and their amendments, some
// history breaks an invariant. Rules that no invariant needs say why.
func TestExplore_NoticesEveryRemovedRule(t *testing.T) {
	for _, r := range removals {
		t.Run(r.rule+" "+r.without, func(t *testing.T) {
			t.Parallel()
			limit := 300_000
			switch {
			case r.why != "":
				limit = 3_000
			case r.steps > 5:
				longtest.Only(t, "searches every history of up to "+strconv.Itoa(r.steps)+" steps")
			}
			got := r.explore(limit)
			switch {
			case r.why != "":
				if got.Violation != nil {
					t.Errorf("removing %s breaks an invariant after %d steps, want none: %s\n%s", r.rule, got.Depth, got.Violation, got.Story)
				}
			case got.Violation == nil:
				t.Errorf("no invariant is violated: %s", got)
			case got.Violation.Invariant != r.caughtBy || got.Depth != r.steps:
				t.Errorf("%s after %d steps, want %s after %d\n%s", got.Violation, got.Depth, r.caughtBy, r.steps, got.Story)
			}
		})
	}
}
