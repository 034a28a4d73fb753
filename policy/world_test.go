package policy

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// world is a tiny serial store. It runs one policy after the other on its documents, as
// transactions would, and lists every violation of the contract.
type world struct {
	rules
	now      time.Time
	drones   map[domain.DroneID]domain.Drone
	missions map[domain.MissionID]domain.Mission
	orders   map[domain.OrderID]domain.Order
	ledger   map[domain.DecisionID]domain.LedgerEntry
	fences   Fences
	issued   Fences            // by the depots' locks, so far
	folded   map[string]folded // what the events so far make of each entity
	depots   []domain.Depot
	revokes  []domain.MissionID
	notes    int             // refusals that events record
	moves    map[string]bool // steps of lifecycles taken, "kind: from → to"
	broken   []string
}

// folded is an entity as its events tell it.
type folded struct {
	revision int64
	status   string
	state    map[string]any
}

func newWorld(r rules) *world {
	return &world{
		rules: r, now: start,
		drones: map[domain.DroneID]domain.Drone{}, missions: map[domain.MissionID]domain.Mission{},
		orders: map[domain.OrderID]domain.Order{}, ledger: map[domain.DecisionID]domain.LedgerEntry{},
		fences: Fences{}, issued: Fences{"DEPOT": "000000000000099", "DEPOT-2": firstFence, "": firstFence}, folded: map[string]folded{}, moves: map[string]bool{},
		depots: []domain.Depot{{ID: "DEPOT", Position: depotAt}},
	}
}

// with puts documents into the world as if they had come there by events.
func (w *world) with(entities ...any) *world {
	for _, e := range entities {
		switch e := e.(type) {
		case domain.Drone:
			w.drones[e.ID] = e
			w.folded[key(domain.EntityDrone, string(e.ID))] = folded{e.Revision, string(e.Status), domain.DroneState(e)}
		case domain.Order:
			w.orders[e.ID] = e
			w.folded[key(domain.EntityOrder, string(e.ID))] = folded{e.Revision, string(e.Status), domain.OrderState(e)}
		case domain.Mission:
			w.missions[e.ID] = e
			w.folded[key(domain.EntityMission, string(e.ID))] = folded{e.Revision, string(e.Status), domain.MissionState(e)}
		default:
			panic(fmt.Sprintf("a world holds no %T", e))
		}
	}
	return w
}

func key(kind domain.EntityKind, id string) string { return string(kind) + " " + id }

func (w *world) violated(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf("%s: ", w.now.Sub(start))+fmt.Sprintf(format, args...))
}

// err is everything that went wrong, nil if nothing did.
func (w *world) err() error {
	var all []error
	for _, b := range w.broken {
		all = append(all, errors.New(b))
	}
	return errors.Join(all...)
}

// binding reads a drone with the mission that holds it and that mission's
// orders.
func (w *world) binding(id domain.DroneID) Binding {
	b := Binding{Drone: w.drones[id], Orders: map[domain.OrderID]domain.Order{}}
	if m, ok := w.missions[b.Drone.CurrentMissionID]; ok {
		b.Mission = &m
		for _, o := range m.OrderIDs {
			if order, ok := w.orders[o]; ok {
				b.Orders[o] = order
			}
		}
	}
	return b
}

// report delivers telemetry.
func (w *world) report(t domain.Telemetry) error {
	before, known := w.drones[t.DroneID]
	b := w.binding(t.DroneID)
	_, change, err := pure3(w, "ApplyTelemetry", b, func(b Binding) (Binding, Change, error) { return w.telemetry(b, t, w.now) })
	w.commit(change)
	after := w.drones[t.DroneID]

	stale := known && !t.Timestamp.After(before.LastUpdate)
	future := t.Timestamp.After(w.now.Add(5 * time.Second))
	if stale && !future && err == nil { // F-TEL-11
		w.verifyLate(before, after, t)
	}
	if !future && before.CurrentMissionID != t.MissionID {
		if proved := w.proveEnded(t); proved && errors.Is(err, &Rejection{Reason: ReasonStaleTelemetry}) {
			return nil
		}
	}
	switch {
	case stale && err == nil:
	case future && !errors.Is(err, &Rejection{Reason: ReasonFutureTimestamp}): // F-TEL-03
		w.violated("a report from the future was answered with %v", err)
	case !future && stale && !errors.Is(err, &Rejection{Reason: ReasonStaleTelemetry}): // F-TEL-02
		w.violated("a stale report was answered with %v", err)
	case !future && !stale && err != nil:
		w.violated("a fresh report was refused: %v", err)
	case err != nil && !change.Empty():
		w.violated("a refused report changed something")
	case err == nil:
		w.verifyHeard(before, after, t)
	}
	if after.CurrentMissionID != "" && after.CurrentMissionID != before.CurrentMissionID { // F-TEL-06
		w.violated("telemetry bound drone %s to %s", t.DroneID, after.CurrentMissionID)
	}
	faulty := isFault(t.Status) || t.Battery < 5
	if before.Bound() && !after.Bound() && !before.MissionAcked && !faulty && !t.Timestamp.After(before.FreeAfter) { // F-TEL-06 c
		w.violated("drone %s was freed by a report measured %s before its command expired", t.DroneID, before.FreeAfter.Sub(t.Timestamp))
	}
	if after.Status == domain.DroneIdle && before.Status != domain.DroneIdle && t.Status != domain.DroneIdle {
		w.violated("drone %s became IDLE by a report of %q", t.DroneID, t.Status)
	}
	if err == nil { // F-TEL-02: a redelivery changes nothing
		if _, again, err := w.telemetry(w.binding(t.DroneID), t, w.now); err == nil || !again.Empty() {
			w.violated("a redelivered report was applied again")
		}
	}
	return err
}

// verifyLate checks that a late report moved nothing of its drone but what it proves
// about the mission that it names. F-TEL-11
func (w *world) verifyLate(before, after domain.Drone, t domain.Telemetry) {
	if t.MissionID == "" || t.MissionID != before.CurrentMissionID {
		w.violated("a late report counted for mission %q, which does not hold drone %s", t.MissionID, t.DroneID)
	}
	before.NamedRevision = max(before.NamedRevision, t.MissionRevision)
	if !before.Homebound {
		before.Homebound, before.HomeboundSince = after.Homebound, after.HomeboundSince
	}
	before.Implausible, before.ImplausibleAt = after.Implausible, after.ImplausibleAt
	before.MissionAcked, before.MissionMoved, before.FreeAfter, before.Revision = after.MissionAcked, after.MissionMoved, after.FreeAfter, after.Revision
	if !reflect.DeepEqual(before, after) {
		w.violated("a late report changed drone %s from %+v to %+v", t.DroneID, before, after)
	}
}

// proveEnded has a report prove what it does about a mission that is over, as the
// store would, and reports whether that changed anything.
func (w *world) proveEnded(t domain.Telemetry) (proved bool) {
	for range 10 {
		m, known := w.missions[t.MissionID]
		if !known || m.Status == domain.MissionActive {
			return proved
		}
		e := Ended{Mission: m, Orders: map[domain.OrderID]domain.Order{}}
		for _, id := range m.EveryOrder() {
			if o, ok := w.orders[id]; ok {
				e.Orders[id] = o
			}
		}
		if drone, taken := e.TakenOver(t); taken {
			b := w.binding(drone)
			e.Other = &b
		}
		_, change, err := pure3(w, "ProveLate", e, func(e Ended) (struct{}, Change, error) {
			c, err := w.proveLate(e, t, w.now)
			return struct{}{}, c, err
		})
		if err != nil {
			w.expectError(err, ReasonStaleTelemetry)
			return proved
		}
		w.commit(change)
		proved = true
	}
	w.violated("a late report of mission %s is news for ever", t.MissionID)
	return proved
}

// verifyHeard checks what a drone's document takes from any applied report.
func (w *world) verifyHeard(before, after domain.Drone, t domain.Telemetry) {
	if !after.LastUpdate.Equal(t.Timestamp) || after.Position != t.Position || after.Battery != t.Battery || after.SpeedKmh != t.SpeedKmh {
		w.violated("drone %s is %+v after %+v", t.DroneID, after, t)
	}
	if t.Status != "" && after.ReportedStatus != t.Status || t.Status == "" && after.ReportedStatus != before.ReportedStatus {
		w.violated("drone %s is remembered to say %q after it said %q", t.DroneID, after.ReportedStatus, t.Status)
	}
	if after.SeenAt.After(w.now) || after.SeenAt.After(t.Timestamp.Add(5*time.Second)) {
		w.violated("drone %s was seen at %s, by a report measured %s", t.DroneID, after.SeenAt, t.Timestamp)
	}
	idleSince := before.IdleSince
	if after.Status == domain.DroneIdle && before.Status != domain.DroneIdle {
		idleSince = w.now
	}
	if !after.IdleSince.Equal(idleSince) {
		w.violated("drone %s is idle since %s, not %s", t.DroneID, after.IdleSince, idleSince)
	}
}

// request delivers an order message, published when it was made.
func (w *world) request(req domain.OrderRequest) error {
	order, binding := w.orderAndBinding(req.ID, func(o *domain.Order) bool { return w.order.NeedsBinding(o, req) })
	before, known := w.orders[req.ID]
	_, change, err := pure3(w, "IngestOrder", ordered{order, binding}, func(x ordered) (struct{}, Change, error) {
		c, err := w.ingest(x.Order, x.Binding, req, w.now, w.now)
		return struct{}{}, c, err
	})
	w.commit(change)
	after := w.orders[req.ID]
	if after.Status == domain.OrderPending && after.ContentHash != before.ContentHash && !after.PendingSince.Equal(w.now) {
		w.violated("order %s has new content, and is pending since %s", req.ID, after.PendingSince)
	}
	othersTombstone := before.ContentHash == "" && before.RequesterID != req.RequesterID                                                 // F-SND-02
	if known && after.Status == domain.OrderPending && before.Status != domain.OrderPending && before.Status != "" && !othersTombstone { // F-ORD-02
		w.violated("a message made order %s PENDING that was %s", req.ID, before.Status)
	}
	if known && !before.CreatedAt.IsZero() && !after.CreatedAt.Equal(before.CreatedAt) {
		w.violated("a message changed when order %s was created", req.ID)
	}
	// A redelivery writes nothing; a refused one may be noted again.
	order, binding = w.orderAndBinding(req.ID, func(o *domain.Order) bool { return w.order.NeedsBinding(o, req) })
	if again, err := w.ingest(order, binding, req, w.now, w.now); err == nil || again.Drone != nil || len(again.Orders)+len(again.Missions) > 0 {
		w.violated("a redelivered message about order %s was applied again", req.ID)
	}
	return err
}

type ordered struct {
	Order   *domain.Order
	Binding *Binding
}

func (w *world) orderAndBinding(id domain.OrderID, needed func(*domain.Order) bool) (*domain.Order, *Binding) {
	o, ok := w.orders[id]
	if !ok {
		return nil, nil
	}
	if !needed(&o) {
		return &o, nil
	}
	b := w.binding(o.AssignedDroneID)
	return &o, &b
}

// decide delivers a decision and returns its outcome, or the reason against it.
func (w *world) decide(d domain.Decision) string {
	s := w.decisionState(d)
	via := Delivery{MessageID: "message of " + string(d.ID), PublishedAt: w.now, ReceivedAt: w.now}
	v, _, err := pure3(w, "AssignMission", s, func(s DecisionState) (Verdict, struct{}, error) {
		v, err := w.assign(s, d, via, w.now)
		return v, struct{}{}, err
	})
	entry, judged := w.ledger[d.ID]
	switch {
	case err != nil:
		if !judged || entry.PayloadHash == d.PayloadHash {
			w.violated("decision %s failed without cause: %v", d.ID, err)
		}
		reason, _ := ReasonOf(err)
		return string(reason)
	case judged: // I6
		if !v.Replay || !reflect.DeepEqual(v.Entry, entry) || !v.Change.Empty() {
			w.violated("decision %s got a second outcome, %s after %s", d.ID, v.Entry.Outcome, entry.Outcome)
		}
		return outcome(v.Entry)
	}
	w.ledger[d.ID] = v.Entry
	if v.Entry.Outcome == domain.OutcomeRejected { // F-DEC-03
		if !v.Change.Empty() || v.Fence != "" {
			w.violated("rejected decision %s changed something", d.ID)
		}
		if v.Entry.Reason == string(ReasonStaleFence) && number(d.Fence) >= number(w.fences["DEPOT"]) {
			w.violated("decision %s was refused with fence %s, though %s is the highest", d.ID, d.Fence, w.fences["DEPOT"])
		}
		if v.Entry.Reason == string(ReasonFenceUnknown) && number(d.Fence) <= number(w.issued["DEPOT"]) {
			w.violated("decision %s was refused with fence %s, though the lock has handed out %s", d.ID, d.Fence, w.issued["DEPOT"])
		}
		return outcome(v.Entry)
	}
	w.verifyApplied(s, d, v)
	if v.Fence != "" {
		w.fences[v.Depot] = v.Fence
	}
	w.commit(v.Change)
	return outcome(v.Entry)
}

func (w *world) decisionState(d domain.Decision) DecisionState {
	s := DecisionState{Fences: maps.Clone(w.fences), Orders: map[domain.OrderID]domain.Order{}, Warehouses: stocked()}
	if e, ok := w.ledger[d.ID]; ok {
		s.Ledger = &e
	}
	if drone, ok := w.drones[d.DroneID]; ok {
		s.Drone = &drone
	}
	orders := d.OrderIDs
	if m, ok := w.missions[d.AmendsMissionID]; ok {
		s.Mission, orders = &m, append(slices.Clone(orders), m.OrderIDs...)
	}
	for _, id := range orders {
		if o, ok := w.orders[id]; ok {
			s.Orders[id] = o
		}
	}
	if p := DefaultMissionAssignmentPolicy(); p.NeedsDepots(s, d, w.depots) {
		s.Depots = w.depots
	}
	if depot := s.FenceDepot(d); s.NeedsIssued(d) {
		s.Issued = Fences{depot: w.issued[depot]}
	}
	return s
}

func outcome(e domain.LedgerEntry) string {
	if e.Outcome == domain.OutcomeApplied {
		return string(e.Outcome)
	}
	return e.Reason
}

// verifyApplied holds an applied decision against what it must have found and
// must do, whatever the policy thinks.
func (w *world) verifyApplied(s DecisionState, d domain.Decision, v Verdict) {
	if d.Amends() {
		w.verifyAmended(s, d, v)
		return
	}
	ready := s.Drone != nil && (s.Drone.Status == domain.DroneIdle && !s.Drone.Bound() ||
		s.Drone.SupportsAmendments && w.missions[s.Drone.CurrentMissionID].Status == domain.MissionCompleted)
	if d.Standby() && s.Drone != nil && !(s.Drone.SupportsStandby && s.Drone.SupportsAmendments) { // F-AMD-06
		w.violated("decision %s has no orders, which drone %s does not support", d.ID, d.DroneID)
	}
	if !ready || s.Drone.Battery <= 20 && !d.Standby() || w.now.Sub(s.Drone.SeenAt) > 15*time.Second {
		w.violated("decision %s was applied to a drone that cannot fly: %+v", d.ID, s.Drone)
	}
	for _, id := range d.OrderIDs {
		if o := s.Orders[id]; o.Status != domain.OrderPending || o.Held || o.PendingSince.After(d.SnapshotTime) {
			w.violated("decision %s was applied to order %s, which is %s, held %t", d.ID, id, o.Status, o.Held)
		}
		if o := s.Orders[id]; o.PinnedDroneID != "" && o.PinnedDroneID != d.DroneID || slices.Contains(o.ForbiddenDroneIDs, d.DroneID) { // F-OPR-05
			w.violated("decision %s gives order %s to drone %s; it is pinned to %q, forbidden to %q", d.ID, id, d.DroneID, o.PinnedDroneID, o.ForbiddenDroneIDs)
		}
		if !slices.ContainsFunc(v.Change.Orders, func(o domain.Order) bool { return o.ID == id && o.AssignedMissionID == v.Entry.MissionID }) {
			w.violated("applied decision %s left order %s out", d.ID, id) // I7
		}
	}
	stored := w.fences["DEPOT"]
	if number(d.Fence) > number(w.issued["DEPOT"]) || d.Fence == "" { // F-DEC-07
		w.violated("decision %s was applied with fence %q, though the lock has handed out none above %s", d.ID, d.Fence, w.issued["DEPOT"])
	}
	if d.Fence != "" && number(d.Fence) < number(stored) { // I5
		w.violated("decision %s was applied with fence %s after %s", d.ID, d.Fence, stored)
	}
	if d.Fence != "" && number(d.Fence) > number(stored) && v.Fence != d.Fence {
		w.violated("decision %s did not raise the fence %s to %s", d.ID, stored, d.Fence)
	}
	if v.Change.Drone == nil || v.Change.Drone.CurrentMissionID != v.Entry.MissionID || len(v.Change.Missions) != 1 || v.Entry.MissionID != domain.MissionIDFor(d.ID) {
		w.violated("applied decision %s is not mission, drone and orders", d.ID)
	} else if !v.Change.Drone.LastUpdate.Equal(s.Drone.LastUpdate) || v.Change.Drone.MissionAcked || v.Change.Drone.FreeAfter.Before(w.now.Add(25*time.Second)) { // F-TEL-06 a
		w.violated("assignment %s set lastUpdate, ack or freeAfter wrongly", d.ID)
	}
}

// verifyAmended holds an applied amendment against what it must have found and must do.
// F-AMD-01 F-AMD-02
func (w *world) verifyAmended(s DecisionState, d domain.Decision, v Verdict) {
	m := s.Mission
	if m == nil || m.Status != domain.MissionActive || m.DroneID != d.DroneID || m.Amendment != nil || m.RouteRevision != d.AmendsRevision ||
		s.Drone.CurrentMissionID != m.ID || s.Drone.NamedRevision != m.RouteRevision || !s.Drone.SupportsAmendments || w.now.Sub(s.Drone.SeenAt) > 15*time.Second {
		w.violated("decision %s amends %+v of drone %+v", d.ID, m, s.Drone)
		return
	}
	for i, stop := range m.Route[:m.ReachedStops] {
		if m.Standby() {
			break // it is replaced whole
		}
		if i >= len(d.Route) || !sameStop(stop, d.Route[i]) {
			w.violated("decision %s changes stop %d, which is reached", d.ID, i)
		}
	}
	for _, id := range m.OrderIDs {
		if o := s.Orders[id]; o.Status == domain.OrderInDelivery && !slices.Contains(d.OrderIDs, id) {
			w.violated("decision %s leaves out order %s, which is aboard", d.ID, id)
		}
	}
	for _, o := range v.Change.Orders {
		if o.AssignedMissionID != m.ID || o.Status != domain.OrderAssigned {
			w.violated("decision %s makes order %s %s of %q", d.ID, o.ID, o.Status, o.AssignedMissionID)
		}
	}
	if v.Change.Drone == nil || len(v.Change.Missions) != 1 || v.Entry.MissionID != m.ID || v.Entry.Revision <= m.LatestRevision() ||
		!v.Change.Missions[0].CommandPending || !slices.Equal(v.Change.Missions[0].Route, m.Route) {
		w.violated("applied decision %s is not mission, drone and command", d.ID)
	}
}

func number(fence string) (n uint64) {
	for _, c := range fence {
		n = n*10 + uint64(c-'0')
	}
	return n
}

// sweep runs the sweeper once over everything.
func (w *world) sweep() {
	for _, id := range slices.Sorted(maps.Keys(w.drones)) {
		before := w.drones[id]
		_, change, _ := pure3(w, "SweepBinding", w.binding(id), func(b Binding) (struct{}, Change, error) { return struct{}{}, w.sweepBinding(b, w.now), nil })
		w.commit(change)
		w.commit(w.sweepIdle(w.drones[id], w.now))
		if after := w.drones[id]; after.Status == domain.DroneIdle && before.Status != domain.DroneIdle { // F-TEL-06 c
			w.violated("the sweeper made drone %s IDLE", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.orders)) {
		w.commit(w.sweepOrder(w.orders[id], w.now))
	}
}

func (w *world) holdOrder(id domain.OrderID) error {
	order, _ := w.orderAndBinding(id, func(*domain.Order) bool { return false })
	change, err := w.hold(order, id, "a question", w.now)
	w.commit(change)
	return err
}

func (w *world) releaseOrder(id domain.OrderID) error {
	order, _ := w.orderAndBinding(id, func(*domain.Order) bool { return false })
	change, err := w.release(order, id, "answered", w.now)
	w.commit(change)
	return err
}

func (w *world) operatorCancels(id domain.OrderID) error {
	order, binding := w.orderAndBinding(id, func(o *domain.Order) bool { return o.Status == domain.OrderAssigned })
	change, err := w.cancelByOperator(order, binding, id, "no longer needed", w.now)
	w.commit(change)
	return err
}

func (w *world) setPriority(id domain.OrderID, p domain.Priority) error {
	order, _ := w.orderAndBinding(id, func(*domain.Order) bool { return false })
	change, err := w.change(order, id, domain.OrderChange{Priority: &p}, "urgent", w.now)
	w.commit(change)
	return err
}

func (w *world) setDeadline(id domain.OrderID, at time.Time) error {
	order, _ := w.orderAndBinding(id, func(*domain.Order) bool { return false })
	change, err := w.change(order, id, domain.OrderChange{Deadline: &at}, "ward closes", w.now)
	w.commit(change)
	return err
}

// onDrone is an operator's command about an order and a drone.
func (w *world) onDrone(do func(*domain.Order, bool, Pin, time.Time) (Change, error), id domain.OrderID, drone domain.DroneID) error {
	order, _ := w.orderAndBinding(id, func(*domain.Order) bool { return false })
	_, known := w.drones[drone]
	change, err := do(order, known, Pin{Order: id, Drone: drone, Why: "a request"}, w.now)
	w.commit(change)
	return err
}

func (w *world) pinOrder(id domain.OrderID, drone domain.DroneID) error {
	return w.onDrone(w.pin, id, drone)
}

func (w *world) forbidDrone(id domain.OrderID, drone domain.DroneID) error {
	return w.onDrone(w.forbid, id, drone)
}

func (w *world) allowDrone(id domain.OrderID, drone domain.DroneID) error {
	allow := func(o *domain.Order, _ bool, p Pin, now time.Time) (Change, error) { return w.allow(o, p, now) }
	return w.onDrone(allow, id, drone)
}

func (w *world) unpinOrder(id domain.OrderID) error {
	unpin := func(o *domain.Order, _ bool, p Pin, now time.Time) (Change, error) { return w.unpin(o, id, p.Why, now) }
	return w.onDrone(unpin, id, "")
}

func (w *world) recallMission(id domain.MissionID) error {
	var mission *domain.Mission
	if m, ok := w.missions[id]; ok {
		mission = &m
	}
	change, err := w.recall(w.binding(w.missions[id].DroneID), mission, id, "recalled", w.now)
	w.commit(change)
	return err
}

func (w *world) clearDrone(id domain.DroneID) error   { return w.tellDrone(id, w.clear) }
func (w *world) groundDrone(id domain.DroneID) error  { return w.tellDrone(id, w.ground) }
func (w *world) releaseDrone(id domain.DroneID) error { return w.tellDrone(id, w.unground) }

func (w *world) tellDrone(id domain.DroneID, decide func(*domain.Drone, domain.DroneID, string, time.Time) (Change, error)) error {
	var drone *domain.Drone
	if d, ok := w.drones[id]; ok {
		drone = &d
	}
	change, err := decide(drone, id, "inspected", w.now)
	w.commit(change)
	return err
}

// commit writes a change, after checking that its events tell it all.
func (w *world) commit(c Change) {
	w.tell(c)
	var from string
	if c.Drone != nil {
		from = w.phase(w.drones[c.Drone.ID])
	}
	for i, m := range c.Missions {
		if slices.ContainsFunc(c.Missions[:i], func(x domain.Mission) bool { return x.ID == m.ID }) {
			w.violated("mission %s is written twice", m.ID)
		}
		if (m.EndTime.IsZero()) != (m.Status == domain.MissionActive) || (m.FailureReason != "") != (m.Status == domain.MissionFailed) {
			w.violated("mission %s is %s with end %s and failure %q", m.ID, m.Status, m.EndTime, m.FailureReason)
		}
		fails := m.Status == domain.MissionFailed && w.missions[m.ID].Status != domain.MissionFailed
		w.missions[m.ID] = m
		if d := c.Drone; fails && d != nil && m.DroneID == d.ID && !slices.ContainsFunc(c.Events, func(e domain.Event) bool {
			return e.Entity == domain.EntityDrone && e.MissionID == m.ID && e.Reason == string(m.FailureReason)
		}) {
			w.violated("no event of drone %s tells that %s failed with %s", d.ID, m.ID, m.FailureReason)
		}
	}
	for _, o := range c.Orders {
		w.orders[o.ID] = o
		if o.Status == domain.OrderPending && o.PendingSince.After(w.now) {
			w.violated("order %s is pending since %s", o.ID, o.PendingSince)
		}
	}
	if d := c.Drone; d != nil {
		if before := w.drones[d.ID]; d.LastUpdate.Before(before.LastUpdate) { // I4
			w.violated("lastUpdate of drone %s went back", d.ID)
		}
		w.drones[d.ID] = *d
		if to := w.phase(*d); from != to {
			w.moved(domain.EntityDrone, from, to)
		}
	}
	w.revokes = append(w.revokes, c.Revoke...)
	w.verify()
}

// tell folds a change's events and checks that they come to its documents. I8
func (w *world) tell(c Change) {
	for _, e := range c.Events {
		w.fold(e)
	}
	for _, m := range c.Missions {
		w.agree(domain.EntityMission, string(m.ID), string(m.Status), domain.MissionState(m), m.Revision)
	}
	for _, o := range c.Orders {
		w.agree(domain.EntityOrder, string(o.ID), string(o.Status), domain.OrderState(o), o.Revision)
	}
	if d := c.Drone; d != nil {
		w.agree(domain.EntityDrone, string(d.ID), string(d.Status), domain.DroneState(*d), d.Revision)
	}
}

// fold applies an event to what the events before it tell. F-DOC-01, I2, I8
func (w *world) fold(e domain.Event) {
	k := key(e.Entity, e.ID)
	was := w.folded[k]
	if e.From != was.status {
		w.violated("%s: an event starts from %q, but it was %q", k, e.From, was.status)
	}
	if e.Revision == 0 { // a note
		w.notes++
		if e.To != was.status || e.Reason == "" {
			w.violated("%s: a note changes it to %q", k, e.To)
		}
		return
	}
	if e.Revision != was.revision+1 {
		w.violated("%s: revision %d follows %d", k, e.Revision, was.revision)
	}
	if !legal(e.Entity, e.From, e.To) {
		w.violated("%s: %q to %q is not legal", k, e.From, e.To)
	}
	if !e.Time.Equal(w.now) || e.Cause == "" {
		w.violated("%s: an event of %s by %q", k, e.Time, e.Cause)
	}
	if e.Entity == domain.EntityOrder && e.To == string(domain.OrderPending) {
		w.verifyReturned(k, e, was)
	}
	if now := (folded{e.Revision, e.To, e.State}); e.Entity != domain.EntityDrone {
		w.moved(e.Entity, was.phase(), now.phase())
	}
	w.folded[k] = folded{e.Revision, e.To, e.State}
}

// phase is where an order or a mission stands in its lifecycle.
func (f folded) phase() string {
	if f.status == string(domain.OrderPending) && f.state["held"] == true {
		return phaseHeld
	}
	return f.status
}

func (w *world) moved(kind domain.EntityKind, from, to string) {
	w.moves[(edge{from: from, to: to}).key(kind)] = true
}

// verifyReturned checks what a failed mission makes of its order. F-ORD-04
func (w *world) verifyReturned(order string, e domain.Event, was folded) {
	attempts, held := e.State["attempts"].(int64), e.State["held"] == true
	switch domain.OrderStatus(e.From) {
	case domain.OrderInDelivery:
		if !held {
			w.violated("%s, whose parcel is aboard, is not held", order)
		}
	case domain.OrderAssigned:
		failed := int64(1)
		if slices.Contains([]string{string(domain.FailureRecalled), string(ReasonAmendmentVoid), string(ReasonReleased)}, e.Reason) {
			failed = 0
		}
		if attempts != was.state["attempts"].(int64)+failed {
			w.violated("%s has %d attempts after %d", order, attempts, was.state["attempts"])
		}
		if late := strings.HasPrefix(e.Reason, "by a late report"); held != (attempts >= 3 || late) {
			w.violated("%s failed %d times, held %t", order, attempts, held)
		}
	case domain.OrderPending, domain.OrderSolving, domain.OrderDelivered, domain.OrderCancelled:
	}
}

// agree checks that the events of an entity fold to its document. I8
func (w *world) agree(kind domain.EntityKind, id, status string, state map[string]any, revision int64) {
	if want := (folded{revision, status, state}); !reflect.DeepEqual(w.folded[key(kind, id)], want) {
		w.violated("%s %s is %+v, but its events tell %+v", kind, id, want, w.folded[key(kind, id)])
	}
}

// verify checks what must hold of the documents between any two transactions.
func (w *world) verify() {
	holds := map[domain.OrderID]domain.MissionID{}
	for _, m := range w.missions {
		d := w.drones[m.DroneID]
		if m.Status == domain.MissionFailed && d.CurrentMissionID == m.ID {
			w.violated("drone %s is bound to failed mission %s", d.ID, m.ID)
		}
		if m.Status != domain.MissionActive {
			continue
		}
		if d.CurrentMissionID != m.ID { // I1
			w.violated("mission %s is ACTIVE, but its drone is on %q", m.ID, d.CurrentMissionID)
		}
		for _, id := range m.OrderIDs {
			if other, held := holds[id]; held { // I1
				w.violated("order %s is in missions %s and %s", id, other, m.ID)
			}
			holds[id] = m.ID
		}
	}
	for _, d := range w.drones {
		if d.Bound() && d.Status == domain.DroneIdle {
			w.violated("drone %s is bound and IDLE", d.ID)
		}
		if d.EmergencyLatched && d.Status != domain.DroneEmergency { // F-TEL-08
			w.violated("drone %s has an emergency nobody cleared and is %s", d.ID, d.Status)
		}
		if d.GhostMissionID != "" && d.Status == domain.DroneIdle {
			w.violated("drone %s is a ghost and IDLE", d.ID)
		}
	}
	for _, o := range w.orders { // I3
		flying := o.Status == domain.OrderAssigned || o.Status == domain.OrderInDelivery
		if flying && (holds[o.ID] != o.AssignedMissionID || w.missions[o.AssignedMissionID].DroneID != o.AssignedDroneID) {
			w.violated("order %s is %s on %q, which does not carry it", o.ID, o.Status, o.AssignedMissionID)
		}
		if !flying && holds[o.ID] != "" && (o.Status != domain.OrderDelivered || o.AssignedMissionID != holds[o.ID]) {
			w.violated("order %s is %s while mission %s carries it", o.ID, o.Status, holds[o.ID])
		}
		if (o.Status == domain.OrderPending || o.Status == domain.OrderCancelled) && (o.AssignedMissionID != "" || o.AssignedDroneID != "") {
			w.violated("order %s is %s on mission %q of drone %q", o.ID, o.Status, o.AssignedMissionID, o.AssignedDroneID)
		}
	}
}

// legal is the table of status changes that may happen, written apart from the
// policies. I2
func legal(kind domain.EntityKind, from, to string) bool {
	switch kind {
	case domain.EntityMission:
		return slices.Contains([]string{" ACTIVE", "ACTIVE ACTIVE", "ACTIVE COMPLETED", "ACTIVE FAILED", "FAILED FAILED", "COMPLETED COMPLETED"}, from+" "+to)
	case domain.EntityOrder:
		return slices.Contains([]string{
			" PENDING", " CANCELLED",
			"PENDING PENDING", "PENDING ASSIGNED", "PENDING CANCELLED",
			"ASSIGNED ASSIGNED", "ASSIGNED IN_DELIVERY", "ASSIGNED PENDING", "ASSIGNED CANCELLED",
			"IN_DELIVERY IN_DELIVERY", "IN_DELIVERY DELIVERED", "IN_DELIVERY PENDING",
			"CANCELLED PENDING", "CANCELLED CANCELLED", // after a cancellation by another requester
			"SOLVING SOLVING", "SOLVING CANCELLED", // another tool's
			"PENDING DELIVERED", "ASSIGNED DELIVERED", "DELIVERED DELIVERED", // by late evidence
		}, from+" "+to)
	case domain.EntityDrone:
		return (to != string(domain.DroneReserved) || from == to) && (from != "" || to == string(domain.DroneUnknown))
	}
	return false
}

// pure3 runs a policy twice on one input, as a retried transaction does, and
// complains if the runs differ or the input has changed.
func pure3[In, A, B any](w *world, name string, in In, run func(In) (A, B, error)) (A, B, error) {
	untouched := deepCopy(in)
	a, b, err := run(in)
	if !reflect.DeepEqual(in, untouched) {
		w.violated("%s changed its input", name)
	}
	a2, b2, err2 := run(untouched)
	if !reflect.DeepEqual(a, a2) || !reflect.DeepEqual(b, b2) || fmt.Sprint(err) != fmt.Sprint(err2) {
		w.violated("%s answered differently when run again", name)
	}
	return a, b, err
}

// deepCopy copies plain values with everything they point to.
func deepCopy[T any](v T) T { return deepCopyValue(reflect.ValueOf(&v).Elem()).Interface().(T) }

func deepCopyValue(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*time.Location]() {
			c.Set(reflect.New(v.Type().Elem()))
			c.Elem().Set(deepCopyValue(v.Elem()))
			return c
		}
	case reflect.Struct:
		c.Set(v)
		for i := range v.NumField() {
			if c.Field(i).CanSet() {
				c.Field(i).Set(deepCopyValue(v.Field(i)))
			}
		}
		return c
	case reflect.Slice:
		if !v.IsNil() {
			c.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				c.Index(i).Set(deepCopyValue(v.Index(i)))
			}
			return c
		}
	case reflect.Map:
		if !v.IsNil() {
			c.Set(reflect.MakeMap(v.Type()))
			for it := v.MapRange(); it.Next(); {
				c.SetMapIndex(it.Key(), deepCopyValue(it.Value()))
			}
			return c
		}
	}
	c.Set(v)
	return c
}
