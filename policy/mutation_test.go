package policy

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// checks is everything this package holds the rules against.
var checks = map[string]func(rules) error{
	"drone table":    checkDroneTable,
	"order table":    checkOrderTable,
	"mission table":  checkMissionTable,
	"decision table": checkDecisionTable,
	"hazards": func(r rules) error {
		var all []error
		for _, h := range hazards {
			if err := tell(r, h); err != nil {
				all = append(all, fmt.Errorf("%s: %w", h.name, err))
			}
		}
		return errors.Join(all...)
	},
	"amendments": func(r rules) error {
		var all []error
		for _, h := range amendmentHazards {
			if err := tell(r, h); err != nil {
				all = append(all, fmt.Errorf("%s: %w", h.name, err))
			}
		}
		return errors.Join(all...)
	},
	"refused amendments": checkRefusedAmendments,
	"standby": func(r rules) error {
		var all []error
		for _, h := range standbyHazards {
			if err := tell(r, h); err != nil {
				all = append(all, fmt.Errorf("%s: %w", h.name, err))
			}
		}
		return errors.Join(all...)
	},
	"refused standby": checkRefusedStandby,
	"scenarios": func(r rules) error {
		for seed := range 400 {
			if err := scenarioGenerator.Example(seed).run(r); err != nil {
				return err
			}
		}
		return nil
	},
	"batches": func(r rules) error {
		for seed := range 400 {
			if err := checkBatch(r, batchGenerator.Example(seed)); err != nil {
				return err
			}
		}
		return nil
	},
}

// A mutant is the rules with one mistake in them, and the checks that must
// notice.
type mutant struct {
	name     string
	mistake  func(rules) rules
	caughtBy []string
}

// TestMutants proves that the checks can fail: each finds the mistakes it is
// there for, and none in the rules as they are.
func TestMutants(t *testing.T) {
	longtest.Only(t, "checks hundreds of broken rules")
	for name, check := range checks {
		if err := check(contract()); err != nil {
			t.Errorf("%s: the rules themselves: %v", name, err)
		}
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			if len(m.caughtBy) == 0 {
				t.Error("nothing is to catch it")
			}
			for _, name := range m.caughtBy {
				if checks[name](m.mistake(contract())) == nil {
					t.Errorf("the %s did not notice", name)
				}
			}
		})
	}
}

var mutants = []mutant{
	// Missions without orders.
	{"a mission without orders does not give way", func(r rules) rules { // F-AMD-06
		assign := r.assign
		r.assign = func(s DecisionState, d domain.Decision, via Delivery, now time.Time) (Verdict, error) {
			if s.Mission != nil && s.Mission.Standby() && s.Ledger == nil {
				s.Mission = nil
			}
			return assign(s, d, via, now)
		}
		return r
	}, []string{"standby"}},
	{"what a drone without orders has done stays in its route", func(r rules) rules {
		assign := r.assign
		r.assign = func(s DecisionState, d domain.Decision, via Delivery, now time.Time) (Verdict, error) {
			if m := s.Mission; m != nil && sharedStops(m.Route, d.Route) < m.ReachedStops {
				s.Mission = nil
			}
			return assign(s, d, via, now)
		}
		return r
	}, []string{"standby"}},
	{"any drone takes a mission without orders", judgedBy(func(s *DecisionState, _ *domain.Decision, _ *Delivery) {
		if s.Drone != nil {
			s.Drone.SupportsStandby, s.Drone.SupportsAmendments = true, true
		}
	}), []string{"refused standby"}},
	{"a drone that waits is free for another mission", judgedBy(func(s *DecisionState, d *domain.Decision, _ *Delivery) {
		if s.Drone != nil && !d.Amends() && s.Drone.SupportsStandby && s.Drone.Bound() {
			s.Drone.Status, s.Drone.CurrentMissionID = domain.DroneIdle, ""
		}
	}), []string{"standby"}},
	{"being near is having waited", heard(func(b *Binding, t *domain.Telemetry, _ time.Time) {
		if m := b.Mission; m != nil && m.Standby() && t.CompletedStops != nil && t.Position.DistanceMetres(m.Route[0].Position) < 75 {
			*t = counted(*t, max(1, *t.CompletedStops))
		}
	}), []string{"standby"}},
	{"drones charge anywhere", judgedBy(func(s *DecisionState, d *domain.Decision, _ *Delivery) {
		for _, stop := range d.Route {
			s.Depots = append(s.Depots, domain.Depot{Position: stop.Position})
		}
	}), []string{"refused standby"}},
	{"drones wait for as long as they are told", func(rules) rules {
		a := DefaultMissionAssignmentPolicy()
		a.MaxWait = 24 * time.Hour
		return configured(DefaultDronePolicy(), DefaultOrderPolicy(), a)
	}, []string{"refused standby"}},
	{"waiting for a slot is a stall", limits(func(d *DronePolicy) { d.QueueLimit = 0 }), []string{"standby"}},
	{"a drone may wait for a slot for ever", limits(func(d *DronePolicy) { d.QueueLimit = 24 * time.Hour }), []string{"standby"}},
	{"a drone far from its slot waits for it", limits(func(d *DronePolicy) { d.StopRadiusMetres = 100 }), []string{"standby"}},
	// Telemetry.
	{"equal timestamps are applied", heard(func(b *Binding, _ *domain.Telemetry, _ time.Time) {
		b.Drone.LastUpdate = b.Drone.LastUpdate.Add(-1)
	}), []string{"hazards", "scenarios", "drone table"}},
	{"older timestamps are applied", heard(func(b *Binding, _ *domain.Telemetry, _ time.Time) {
		b.Drone.LastUpdate = time.Time{}
	}), []string{"hazards", "scenarios", "batches"}},
	{"the future is believed", limits(func(d *DronePolicy) { d.MaxFuture = time.Hour }), []string{"hazards", "scenarios"}},
	{"a new drone is what it says", heard(func(b *Binding, _ *domain.Telemetry, now time.Time) {
		if b.Drone.IdleSince.IsZero() {
			b.Drone.IdleSince = now
		}
	}), []string{"drone table", "hazards"}},
	{"CHARGING is ignored", heard(func(_ *Binding, t *domain.Telemetry, _ time.Time) {
		if t.Status == domain.DroneCharging {
			t.Status = ""
		}
	}), []string{"drone table", "mission table", "hazards"}},
	{"an empty battery is no emergency", limits(func(d *DronePolicy) { d.EmergencyBattery = 0 }), []string{"drone table", "mission table", "hazards"}},
	{"any IDLE frees an unacked drone", heard(func(b *Binding, _ *domain.Telemetry, _ time.Time) {
		b.Drone.FreeAfter = time.Time{}
	}), []string{"drone table", "mission table", "hazards", "scenarios"}},
	{"the command lifetime leaves no room for clock errors", func(rules) rules {
		a := DefaultMissionAssignmentPolicy()
		a.ClockError = 0
		return configured(DefaultDronePolicy(), DefaultOrderPolicy(), a)
	}, []string{"hazards", "scenarios", "mission table"}},
	{"late reports prove nothing", func(r rules) rules { // F-TEL-11
		telemetry := r.telemetry
		r.telemetry = func(b Binding, t domain.Telemetry, now time.Time) (Binding, Change, error) {
			if b.Drone.ID != "" && !t.Timestamp.After(b.Drone.LastUpdate) {
				return b, Change{}, &Rejection{Reason: ReasonStaleTelemetry}
			}
			return telemetry(b, t, now)
		}
		return r
	}, []string{"hazards", "mission table"}},
	{"late reports prove nothing about a mission that is over", func(r rules) rules { // F-TEL-11, I10
		r.proveLate = func(Ended, domain.Telemetry, time.Time) (Change, error) {
			return Change{}, &Rejection{Reason: ReasonStaleTelemetry}
		}
		return r
	}, []string{"hazards", "mission table"}},
	{"a parked drone's mission ends at once", limits(func(d *DronePolicy) { d.LateGrace = 0 }), []string{"drone table", "mission table", "hazards"}},
	{"completed stops are ignored", heard(func(_ *Binding, t *domain.Telemetry, _ time.Time) { // F-TEL-12
		t.CompletedStops = nil
	}), []string{"hazards"}},
	{"nothing ever frees an unacked drone", heard(func(b *Binding, t *domain.Telemetry, _ time.Time) {
		b.Drone.FreeAfter = t.Timestamp
	}), []string{"drone table", "mission table", "hazards"}},
	{"a timer frees an unacked drone", func(r rules) rules {
		sweep := r.sweepBinding
		r.sweepBinding = func(b Binding, now time.Time) Change {
			if !b.Drone.Bound() || b.Drone.MissionAcked || !now.After(b.Drone.FreeAfter) {
				return sweep(b, now)
			}
			b = b.clone()
			rec, before := &recorder{now: now, cause: domain.CauseSweeper}, b.Drone
			rec.failMission(&b, domain.FailureNotAcked)
			unbind(&b, now)
			b.Drone.Status = domain.DroneIdle
			rec.drone(&before, &b.Drone, "", "")
			return rec.change
		}
		return r
	}, []string{"hazards", "mission table"}},
	{"telemetry binds a drone", heard(func(b *Binding, t *domain.Telemetry, _ time.Time) {
		if isFlying(t.Status) {
			b.Drone.CurrentMissionID = t.MissionID
		}
	}), []string{"drone table", "scenarios"}},
	{"naming the mission is no acknowledgement", heard(func(b *Binding, t *domain.Telemetry, _ time.Time) {
		if !b.Drone.MissionAcked {
			t.MissionID = ""
		}
	}), []string{"drone table", "mission table", "hazards"}},
	{"a drone need not know its mission", heard(func(b *Binding, _ *domain.Telemetry, _ time.Time) {
		b.Drone.MissionAcked = b.Drone.Bound()
	}), []string{"drone table", "mission table", "hazards", "scenarios"}},
	{"idle while naming the mission ends it", heard(func(_ *Binding, t *domain.Telemetry, _ time.Time) {
		if t.Status == domain.DroneIdle {
			t.MissionID = ""
		}
	}), []string{"drone table", "mission table", "hazards"}},
	{"a done mission ends though the drone never moved", heard(func(b *Binding, _ *domain.Telemetry, _ time.Time) {
		b.Drone.MissionMoved = b.Drone.MissionAcked
	}), []string{"drone table", "hazards"}},
	{"an aborted mission counts as completed", heard(func(b *Binding, t *domain.Telemetry, _ time.Time) {
		if isParked(t.Status) && b.Mission != nil && t.MissionID != b.Mission.ID {
			b.Mission.ReachedStops = len(b.Mission.Route)
		}
	}), []string{"drone table", "mission table", "hazards"}},
	{"stops are reached in any order", heard(func(b *Binding, t *domain.Telemetry, _ time.Time) {
		if b.Mission == nil {
			return
		}
		for i, stop := range b.Mission.Route {
			if i > b.Mission.ReachedStops && t.Position.DistanceMetres(stop.Position) < 75 {
				b.Mission.ReachedStops = i
			}
		}
	}), []string{"mission table", "hazards"}},
	{"a stop a kilometre away is reached", limits(func(d *DronePolicy) { d.StopRadiusMetres = 3000 }), []string{"mission table", "hazards"}},
	{"a fault fails an acked drone at once", limits(func(d *DronePolicy) { d.FaultGrace = 0 }), []string{"drone table", "mission table", "hazards"}},
	{"a fault is forgiven for ever", limits(func(d *DronePolicy) { d.FaultGrace = time.Hour }), []string{"drone table", "mission table", "hazards"}},
	{"maintenance is a problem like others", heard(func(_ *Binding, t *domain.Telemetry, _ time.Time) {
		if t.Status == domain.DroneMaintenance {
			t.Status = domain.DroneProblem
		}
	}), []string{"drone table", "mission table", "order table"}},
	{"an emergency is over when the drone says so", heard(func(_ *Binding, t *domain.Telemetry, _ time.Time) {
		if t.Status == domain.DroneEmergency {
			t.Status, t.Battery = "", 1
		}
	}), []string{"drone table", "hazards"}},
	{"ghosts are believed", heard(func(b *Binding, _ *domain.Telemetry, _ time.Time) {
		b.Drone.FailedMissions = nil
	}), []string{"drone table", "hazards"}},
	{"ghosts are not told", told(func(_, _ *Binding, c *Change, _ time.Time) { c.Revoke = nil }), []string{"drone table", "hazards"}},
	{"ghosts are told with every report", limits(func(d *DronePolicy) { d.GhostRevokeEvery = 0 }), []string{"hazards"}},
	{"old news of IDLE offers a drone", limits(func(d *DronePolicy) { d.IdleSilence = time.Hour }), []string{"drone table", "hazards"}},
	{"a report is a sign of life whenever it was measured", told(func(_, after *Binding, c *Change, now time.Time) {
		after.Drone.SeenAt, c.Drone.SeenAt = now, now
	}), []string{"hazards"}},
	{"a bound drone may be IDLE", told(func(_, after *Binding, c *Change, _ time.Time) {
		if after.Drone.Bound() && after.Drone.ReportedStatus == domain.DroneIdle {
			after.Drone.Status, c.Drone.Status = domain.DroneIdle, domain.DroneIdle
		}
	}), []string{"drone table", "mission table", "hazards", "scenarios"}},
	{"a state changes without an event", told(func(_, _ *Binding, c *Change, _ time.Time) {
		c.Events = c.Events[:max(0, len(c.Events)-1)]
	}), []string{"drone table", "scenarios", "batches"}},
	{"a policy changes its input", func(r rules) rules {
		apply := r.telemetry
		r.telemetry = func(b Binding, t domain.Telemetry, now time.Time) (Binding, Change, error) {
			if b.Mission != nil {
				b.Mission.RevokePending = true
			}
			return apply(b, t, now)
		}
		return r
	}, []string{"drone table", "scenarios", "hazards"}},

	// The sweeper.
	{"an order is taken away before the drone knows", func(r rules) rules { // F-AMD-04
		assign := r.assign
		r.assign = func(s DecisionState, d domain.Decision, via Delivery, now time.Time) (Verdict, error) {
			v, err := assign(s, d, via, now)
			for i := range v.Change.Orders {
				if o := &v.Change.Orders[i]; o.Releasing {
					o.Status, o.AssignedMissionID, o.AssignedDroneID, o.Releasing = domain.OrderPending, "", "", false
				}
			}
			return v, err
		}
		return r
	}, []string{"amendments"}},
	{"naming the mission puts its amendment in force", heard(func(b *Binding, t *domain.Telemetry, _ time.Time) { // F-AMD-03
		if b.Mission != nil && b.Mission.Amendment != nil && t.MissionID == b.Mission.ID {
			t.MissionRevision = b.Mission.Amendment.Revision
		}
	}), []string{"amendments"}},
	{"an amendment never expires", heard(func(b *Binding, _ *domain.Telemetry, _ time.Time) { // F-AMD-03
		if b.Mission != nil {
			b.Mission.CommandExpiresAt = b.Mission.CommandExpiresAt.Add(time.Hour)
		}
	}), []string{"amendments"}},
	{"an amendment expires before its command", heard(func(b *Binding, _ *domain.Telemetry, _ time.Time) { // F-AMD-03
		if b.Mission != nil {
			b.Mission.CommandExpiresAt = b.Mission.StartTime
		}
	}), []string{"amendments"}},
	{"a stop almost reached can be changed", func(rules) rules { // F-AMD-02, of the table of refusals
		a := DefaultMissionAssignmentPolicy()
		a.TurnTime = -time.Hour
		return configured(DefaultDronePolicy(), DefaultOrderPolicy(), a)
	}, []string{"refused amendments"}},
	{"a silent drone keeps its mission", limits(func(d *DronePolicy) { d.BoundSilence = time.Hour }), []string{"mission table", "order table", "hazards"}},
	{"a stalled mission goes on", limits(func(d *DronePolicy) { d.StallFactor = 3 }), []string{"mission table", "hazards"}},
	{"a short mission may take ten minutes", limitsOf(func(d *DronePolicy, m *domain.Mission) {
		d.StallFactor, m.EstimatedDurationMinutes = 1, max(2*m.EstimatedDurationMinutes, 10)
	}), []string{"hazards"}},
	{"a silent idle drone stays on offer", func(r rules) rules {
		r.sweepIdle = func(domain.Drone, time.Time) Change { return Change{} }
		return r
	}, []string{"hazards"}},
	{"late orders are not marked", func(r rules) rules {
		r.sweepOrder = func(domain.Order, time.Time) Change { return Change{} }
		return r
	}, []string{"order table", "hazards"}},
	{"a late order waits anew", func(r rules) rules {
		r.sweepOrder = func(o domain.Order, now time.Time) Change {
			c := SweepOrder(o, now)
			for i := range c.Orders {
				c.Orders[i].PendingSince = now
			}
			return c
		}
		return r
	}, []string{"hazards"}},

	// Failed missions and their orders.
	{"an order aboard goes back to the pool", returned(func(before domain.Order, o *domain.Order) {
		if before.Status == domain.OrderInDelivery {
			o.Held = false
		}
	}), []string{"order table", "hazards", "scenarios"}},
	{"failed attempts are not counted", returned(func(before domain.Order, o *domain.Order) {
		o.Attempts = before.Attempts
	}), []string{"order table", "hazards", "scenarios"}},
	{"an order is tried for ever", returned(func(before domain.Order, o *domain.Order) {
		if before.Status == domain.OrderAssigned {
			o.Held = false
		}
	}), []string{"order table", "hazards"}},
	{"a failed mission keeps its orders", told(func(before, after *Binding, c *Change, _ time.Time) {
		c.Events = slices.DeleteFunc(c.Events, func(e domain.Event) bool {
			return e.Entity == domain.EntityOrder && e.To == string(domain.OrderPending)
		})
		c.Orders = slices.DeleteFunc(c.Orders, func(o domain.Order) bool { return o.Status == domain.OrderPending })
	}), []string{"order table", "hazards", "scenarios"}},

	// Orders.
	{"a redelivered order starts over", asked(func(o **domain.Order, _ **Binding, _ *domain.OrderRequest) {
		if *o != nil && (*o).Status != domain.OrderCancelled {
			(*o).ContentHash, (*o).Status = "", domain.OrderPending
		}
	}), []string{"order table", "hazards", "scenarios"}},
	{"the same content is written again", asked(func(o **domain.Order, _ **Binding, _ *domain.OrderRequest) {
		if *o != nil && (*o).Status == domain.OrderPending {
			(*o).ContentHash = ""
		}
	}), []string{"order table", "scenarios"}},
	{"other content of an assigned order is taken", asked(func(o **domain.Order, _ **Binding, req *domain.OrderRequest) {
		if *o != nil && (*o).Status == domain.OrderAssigned && !req.Cancel {
			(*o).Status = domain.OrderPending
		}
	}), []string{"order table", "hazards", "scenarios"}},
	{"a change forgets when the order was created", asked(func(o **domain.Order, _ **Binding, _ *domain.OrderRequest) {
		if *o != nil {
			(*o).CreatedAt = time.Time{}
		}
	}), []string{"hazards", "scenarios"}},
	{"a cancellation that overtakes its order is forgotten", func(r rules) rules {
		ingest := r.ingest
		r.ingest = func(o *domain.Order, b *Binding, req domain.OrderRequest, published, now time.Time) (Change, error) {
			if o == nil && req.Cancel {
				return Change{}, nil
			}
			return ingest(o, b, req, published, now)
		}
		return r
	}, []string{"order table", "hazards"}},
	{"a parcel aboard can be cancelled", asked(func(o **domain.Order, _ **Binding, _ *domain.OrderRequest) {
		if *o != nil && (*o).Status == domain.OrderInDelivery {
			(*o).Status = domain.OrderAssigned
		}
	}), []string{"order table", "hazards", "scenarios"}},
	{"a cancelled order stays in its mission", asked(func(_ **domain.Order, b **Binding, _ *domain.OrderRequest) { *b = nil }), []string{"mission table", "hazards", "scenarios"}},
	{"every order has an hour", func(r rules) rules {
		ingest := r.ingest
		r.ingest = func(o *domain.Order, b *Binding, req domain.OrderRequest, published, now time.Time) (Change, error) {
			c, err := ingest(o, b, req, published, now)
			for i := range c.Orders {
				if req.Deadline.IsZero() {
					c.Orders[i].Deadline = c.Orders[i].CreatedAt.Add(time.Hour)
				}
			}
			return c, err
		}
		return r
	}, []string{"hazards"}},
	{"a released order fits plans made while it was held", func(r rules) rules {
		release := r.release
		r.release = func(o *domain.Order, id domain.OrderID, why string, now time.Time) (Change, error) {
			c, err := release(o, id, why, now)
			for i := range c.Orders {
				c.Orders[i].PendingSince = o.PendingSince
			}
			return c, err
		}
		return r
	}, []string{"hazards"}},

	// Decisions.
	{"the ledger is not read", judgedBy(func(s *DecisionState, _ *domain.Decision, _ *Delivery) { s.Ledger = nil }), []string{"decision table", "hazards", "scenarios"}},
	{"another payload takes the id", judgedBy(func(s *DecisionState, d *domain.Decision, _ *Delivery) {
		if s.Ledger != nil {
			d.PayloadHash = s.Ledger.PayloadHash
		}
	}), []string{"decision table", "hazards"}},
	{"fences are not compared", judgedBy(func(s *DecisionState, d *domain.Decision, _ *Delivery) {
		s.Fences, s.Issued = nil, Fences{s.FenceDepot(*d): "900000000000000"}
	}), []string{"decision table", "hazards", "scenarios"}},
	{"fences are compared as text", judgedBy(func(s *DecisionState, d *domain.Decision, _ *Delivery) {
		s.Fences = Fences{"DEPOT": map[bool]string{true: "9999999999999999999", false: ""}[d.Fence != "" && d.Fence < s.Fences["DEPOT"]]}
		s.Issued = Fences{"DEPOT": "9999999999999999999"}
	}), []string{"hazards", "scenarios"}},
	{"an equal fence is refused", judgedBy(func(s *DecisionState, _ *domain.Decision, _ *Delivery) {
		if stored := s.Fences["DEPOT"]; stored != "" {
			s.Fences["DEPOT"] = fmt.Sprint(number(stored) + 1)
		}
	}), []string{"decision table", "hazards"}},
	{"a fence that the lock never handed out is applied", judgedBy(func(s *DecisionState, d *domain.Decision, _ *Delivery) { // F-DEC-07
		if depot := s.FenceDepot(*d); FenceLess(s.Issued[depot], d.Fence) {
			s.Issued = Fences{depot: d.Fence}
		}
	}), []string{"decision table", "hazards", "scenarios"}},
	{"a forged fence that was applied blocks the depot", judgedBy(func(s *DecisionState, d *domain.Decision, _ *Delivery) { // F-DEC-07
		if depot := s.FenceDepot(*d); FenceLess(s.Issued[depot], s.Fences[depot]) {
			s.Issued = nil
		}
	}), []string{"decision table", "hazards"}},
	{"a decision needs no fence", rulesOf(func(a *MissionAssignmentPolicy) { a.AllowUnfenced = true }), []string{"decision table", "hazards", "scenarios"}}, // F-DEC-07
	{"a higher fence is not stored", decided(func(v *Verdict, _ domain.Decision, _ time.Time) { v.Fence = "" }), []string{"hazards", "scenarios"}},
	{"all depots share one fence", judgedBy(func(s *DecisionState, _ *domain.Decision, _ *Delivery) {
		highest := ""
		for _, f := range s.Fences {
			if FenceLess(highest, f) {
				highest = f
			}
		}
		s.Fences, s.Issued = Fences{"DEPOT": highest, "DEPOT-2": highest}, nil
	}), []string{"decision table", "hazards"}},
	{"a fence is of the drone's home", judgedBy(func(_ *DecisionState, d *domain.Decision, _ *Delivery) { d.DepotID = "" }), []string{"hazards"}},
	{"a decision never expires", rulesOf(func(a *MissionAssignmentPolicy) { a.MaxAge = time.Hour }), []string{"decision table", "hazards"}},
	{"a snapshot from the future is believed", judgedBy(func(_ *DecisionState, _ *domain.Decision, via *Delivery) { via.PublishedAt = time.Time{} }), []string{"hazards"}},
	{"a drone is assigned whatever it does", judgedBy(func(s *DecisionState, _ *domain.Decision, _ *Delivery) {
		if s.Drone != nil {
			s.Drone.Status, s.Drone.CurrentMissionID = domain.DroneIdle, ""
		}
	}), []string{"decision table", "hazards", "scenarios"}},
	{"a silent drone is assigned", rulesOf(func(a *MissionAssignmentPolicy) { a.MaxSilence = time.Hour }), []string{"decision table", "hazards", "scenarios"}},
	{"a drone lands on an empty battery", judgedBy(func(_ *DecisionState, d *domain.Decision, _ *Delivery) { d.EstimatedBatteryConsumption = 0 }), []string{"decision table"}},
	{"a drone that was away is taken for the one the plan saw", judgedBy(func(s *DecisionState, _ *domain.Decision, _ *Delivery) {
		if s.Drone != nil {
			s.Drone.IdleSince = time.Time{}
		}
	}), []string{"decision table", "hazards"}},
	{"an order that changed is taken for the one the plan saw", everyOrder(func(o *domain.Order) { o.PendingSince = time.Time{} }), []string{"decision table", "hazards", "scenarios"}},
	{"an order written after the snapshot is taken for the one the plan saw", judgedBy(func(s *DecisionState, _ *domain.Decision, _ *Delivery) { s.OrdersWritten = nil }), []string{"decision table"}},
	{"a held order is assigned", everyOrder(func(o *domain.Order) { o.Held = false }), []string{"decision table", "order table", "hazards", "scenarios"}},
	{"an order pinned to another drone is assigned", everyOrder(func(o *domain.Order) { o.PinnedDroneID = "" }), []string{"decision table"}},
	{"an order is assigned to a forbidden drone", everyOrder(func(o *domain.Order) { o.ForbiddenDroneIDs = nil }), []string{"decision table", "scenarios"}},
	{"an order is assigned whatever its status", everyOrder(func(o *domain.Order) { o.Status = domain.OrderPending }), []string{"decision table", "order table", "hazards", "scenarios"}},
	{"the good orders of a bad decision are assigned", judgedBy(func(s *DecisionState, d *domain.Decision, _ *Delivery) {
		good := slices.DeleteFunc(slices.Clone(d.OrderIDs), func(id domain.OrderID) bool { return s.Orders[id].Status != domain.OrderPending })
		if len(good) > 0 {
			d.OrderIDs = good
			d.Route = plan(d.ID, d.DroneID, good...).Route
		}
	}), []string{"decision table", "hazards", "scenarios"}},
	{"routes are not looked at", judgedBy(func(_ *DecisionState, d *domain.Decision, _ *Delivery) {
		d.Route = plan(d.ID, d.DroneID, d.OrderIDs...).Route
	}), []string{"decision table"}},
	{"loads are not looked at", judgedBy(func(s *DecisionState, _ *domain.Decision, _ *Delivery) {
		if s.Drone != nil {
			s.Drone.PayloadCapacityKg = 0
		}
	}), []string{"decision table"}},
	{"a low battery counts before silence", judgedBy(func(s *DecisionState, _ *domain.Decision, via *Delivery) {
		if s.Drone != nil && s.Drone.Battery <= 20 {
			s.Drone.SeenAt = via.ReceivedAt
		}
	}), []string{"decision table"}},
	{"an assignment sets lastUpdate", decided(func(v *Verdict, _ domain.Decision, now time.Time) {
		if v.Change.Drone != nil {
			v.Change.Drone.LastUpdate = now.Add(time.Second)
		}
	}), []string{"scenarios", "hazards"}},
	{"an assignment forgets an order", decided(func(v *Verdict, _ domain.Decision, _ time.Time) {
		if n := len(v.Change.Orders); n > 1 {
			lost := v.Change.Orders[n-1].ID
			v.Change.Orders = v.Change.Orders[:n-1]
			v.Change.Events = slices.DeleteFunc(v.Change.Events, func(e domain.Event) bool { return e.OrderID == lost })
		}
	}), []string{"scenarios", "hazards", "mission table"}},
}

// The places where mistakes are made. Each hands a copy of what comes in, or
// what goes out, to the mistake.

func limits(change func(*DronePolicy)) func(rules) rules {
	return func(rules) rules {
		d := DefaultDronePolicy()
		change(&d)
		return configured(d, DefaultOrderPolicy(), DefaultMissionAssignmentPolicy())
	}
}

func rulesOf(change func(*MissionAssignmentPolicy)) func(rules) rules {
	return func(rules) rules {
		a := DefaultMissionAssignmentPolicy()
		change(&a)
		return configured(DefaultDronePolicy(), DefaultOrderPolicy(), a)
	}
}

// limitsOf changes what the sweeper goes by.
func limitsOf(change func(*DronePolicy, *domain.Mission)) func(rules) rules {
	return func(r rules) rules {
		r.sweepBinding = func(b Binding, now time.Time) Change {
			d, b := DefaultDronePolicy(), b.clone()
			if b.Mission != nil {
				change(&d, b.Mission)
			}
			return d.SweepBinding(b, now)
		}
		return r
	}
}

// heard changes what telemetry meets, the input itself excepted.
func heard(change func(*Binding, *domain.Telemetry, time.Time)) func(rules) rules {
	return func(r rules) rules {
		apply := r.telemetry
		r.telemetry = func(b Binding, t domain.Telemetry, now time.Time) (Binding, Change, error) {
			b = b.clone()
			change(&b, &t, now)
			return apply(b, t, now)
		}
		return r
	}
}

// told changes what telemetry comes to.
func told(change func(before, after *Binding, c *Change, now time.Time)) func(rules) rules {
	return func(r rules) rules {
		apply := r.telemetry
		r.telemetry = func(b Binding, t domain.Telemetry, now time.Time) (Binding, Change, error) {
			after, c, err := apply(b, t, now)
			if err == nil {
				change(&b, &after, &c, now)
			}
			return after, c, err
		}
		return r
	}
}

// returned changes the orders that a failed mission gives back, and makes
// their events tell the same lie.
func returned(change func(before domain.Order, o *domain.Order)) func(rules) rules {
	return told(func(before, after *Binding, c *Change, _ time.Time) {
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

// asked changes what an order message meets.
func asked(change func(**domain.Order, **Binding, *domain.OrderRequest)) func(rules) rules {
	return func(r rules) rules {
		ingest := r.ingest
		r.ingest = func(o *domain.Order, b *Binding, req domain.OrderRequest, published, now time.Time) (Change, error) {
			o = deepCopy(o)
			change(&o, &b, &req)
			return ingest(o, b, req, published, now)
		}
		return r
	}
}

// judgedBy changes what a decision is judged by.
func judgedBy(change func(*DecisionState, *domain.Decision, *Delivery)) func(rules) rules {
	return func(r rules) rules {
		assign := r.assign
		r.assign = func(s DecisionState, d domain.Decision, via Delivery, now time.Time) (Verdict, error) {
			s = deepCopy(s)
			change(&s, &d, &via)
			return assign(s, d, via, now)
		}
		return r
	}
}

func everyOrder(change func(*domain.Order)) func(rules) rules {
	return judgedBy(func(s *DecisionState, _ *domain.Decision, _ *Delivery) {
		for id, o := range s.Orders {
			change(&o)
			s.Orders[id] = o
		}
	})
}

// decided changes what an applied decision comes to.
func decided(change func(*Verdict, domain.Decision, time.Time)) func(rules) rules {
	return func(r rules) rules {
		assign := r.assign
		r.assign = func(s DecisionState, d domain.Decision, via Delivery, now time.Time) (Verdict, error) {
			v, err := assign(s, d, via, now)
			if err == nil && !v.Replay && v.Entry.Outcome == domain.OutcomeApplied {
				change(&v, d, now)
			}
			return v, err
		}
		return r
	}
}
