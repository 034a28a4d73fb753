package operator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// Audit prints the history of one entity: its current state, its route, and each change in order,
// with its time, cause and reason.
func (d *Desk) Audit(ctx context.Context, subject Subject, id string) error {
	s, err := d.tell(ctx, subject, id)
	if err != nil {
		return err
	}
	if d.JSON {
		return d.printJSON(s.json())
	}
	s.printNow(d)
	if s.mission != nil && len(s.mission.Route) > 0 {
		if err := s.printRoute(d); err != nil {
			return err
		}
	}
	if s.cycle != nil && len(s.cycle.Unserved) > 0 {
		if err := s.printUnserved(d); err != nil {
			return err
		}
	}
	if len(s.users) > 0 {
		s.printUsers(d)
	}
	if err := s.printLines(d); err != nil {
		return err
	}
	d.footer("", "", s.malformed)
	return nil
}

// StoryJSON is the history of one entity: its current state, and every event and decision
// that names it.
type StoryJSON struct {
	Subject   Subject              `json:"subject"`
	ID        string               `json:"id"`
	Drone     *entity.Drone        `json:"drone,omitempty"`
	Order     *entity.WaitingOrder `json:"order,omitempty"`
	Mission   *entity.Mission      `json:"mission,omitempty"`
	Cycle     *entity.Cycle        `json:"cycle,omitempty"`
	Depot     *entity.Depot        `json:"depot,omitempty"`
	Warehouse *entity.Warehouse    `json:"warehouse,omitempty"`
	Changes   []entity.PlaceChange `json:"changes,omitempty" doc:"What changed a depot, a warehouse or a drone's registration, by whom and why."`
	NeededBy  []string             `json:"neededBy,omitempty" doc:"The first drones that are based at a depot, or the active missions that visit a warehouse."`
	Events    []entity.Event       `json:"events"`
	Decisions []entity.Decision    `json:"decisions"`
	Steps     []StepJSON           `json:"steps" doc:"Events and decisions in words."`
	Malformed []string             `json:"malformed,omitempty" doc:"Documents that cannot be decoded and are left out."`
}

// StepJSON is a step of a story in words, as audit prints it.
type StepJSON struct {
	At      time.Time `json:"at"`
	Cause   string    `json:"cause"`
	What    string    `json:"what"`
	Related string    `json:"related"`
	By      string    `json:"by,omitempty" doc:"Who did it, where steps are of several people."`
}

// Story is the history of one entity. The error wraps firestoretx.ErrNotFound if nothing is
// recorded.
//
// Cost: see tell.
func (c Commands) Story(ctx context.Context, subject Subject, id string) (StoryJSON, error) {
	s, err := c.tell(ctx, subject, id)
	if err != nil {
		return StoryJSON{}, err
	}
	return s.json(), nil
}

// json is the story as JSON.
func (s story) json() StoryJSON {
	out := StoryJSON{
		Subject: s.subject, ID: s.id,
		Events: entity.OrEmpty(entity.Each(s.events, entity.OfEvent)), Decisions: entity.OrEmpty(entity.Each(s.ledger, entity.OfDecision)),
		Malformed: entity.Each(s.malformed, error.Error), Steps: []StepJSON{},
	}
	for _, l := range s.lines() {
		out.Steps = append(out.Steps, StepJSON{At: l.at.UTC(), Cause: l.cause, What: l.what, Related: l.related})
	}
	out.Changes, out.NeededBy = entity.Each(s.changes, entity.OfPlaceChange), s.users
	out.Depot, out.Warehouse = formOf(s.depot, entity.OfDepot), formOf(s.warehouse, entity.OfWarehouse)
	out.Drone, out.Mission, out.Cycle = formOf(s.drone, entity.OfDrone), formOf(s.mission, entity.OfMission), formOf(s.cycle, entity.OfCycle)
	out.Order = formOf(s.order, func(o domain.Order) entity.WaitingOrder { return entity.OfWaitingOrder(o, s.waits) })
	return out
}

// formOf is the JSON form of an entity, nil if there is none.
func formOf[D, J any](v *D, form func(D) J) *J {
	if v == nil {
		return nil
	}
	return new(form(*v))
}

// sayFunc prints one formatted line.
type sayFunc func(format string, args ...any)

// printNow prints the entity's current state in a few lines.
func (s story) printNow(d *Desk) {
	switch {
	case s.subject == SubjectDrone && s.drone != nil:
		sayDrone(d.say, *s.drone, d.Now())
	case s.subject == SubjectOrder && s.order != nil:
		if sayOrder(d.say, *s.order) {
			d.sayWaits(s.waits)
		}
	case s.subject == SubjectMission && s.mission != nil:
		sayMission(d.say, *s.mission)
	case s.subject == SubjectDecision && s.decision != nil:
		sayDecision(d.say, *s.decision)
		if s.mission != nil {
			sayMission(d.say, *s.mission)
		}
	case s.subject == SubjectCycle && s.cycle != nil:
		sayCycle(d.say, *s.cycle)
	case s.depot != nil:
		sayDepot(d.say, *s.depot)
	case s.warehouse != nil:
		sayWarehouse(d.say, *s.warehouse)
	case len(s.malformed) > 0:
		d.say("%s %s has a malformed document; this is what is recorded:", s.subject, s.id)
	default:
		d.say("%s %s no longer has a document; this is what is recorded:", s.subject, s.id)
	}
}

func sayDrone(say sayFunc, x domain.Drone, now time.Time) {
	if x.Heard() {
		w := x.WhereaboutsAt(now)
		say("Drone %s: %s, battery %.0f %%, at %s within %.0f m, seen %s UTC", x.ID, x.Status, x.Battery, degrees(w.Position), w.ErrorMetres, cmp.Or(stamp(x.SeenAt), "never"))
	} else {
		say("Drone %s: %s, never heard of", x.ID, x.Status)
	}
	if !x.Legacy() {
		say("  %s", standing(x))
	}
	if x.Bound() {
		acknowledged := "not acknowledged yet"
		if x.MissionAcked {
			acknowledged = "acknowledged"
		}
		say("  on mission %s, %s", x.CurrentMissionID, acknowledged)
	}
	if x.EmergencyLatched {
		say("  its emergency waits for an operator: drones clear %s --reason ...", x.ID)
	}
	if x.Grounded {
		say("  grounded: %s", x.GroundedReason)
	}
	if x.GhostMissionID != "" {
		say("  still flies mission %s, which failed", x.GhostMissionID)
	}
	if x.Implausible != "" {
		say("  %s UTC: %s", stamp(x.ImplausibleAt), x.Implausible)
	}
}

// sayOrder returns false for an order that was cancelled before it arrived: its document
// has no position and no time.
func sayOrder(say sayFunc, o domain.Order) bool {
	if o.CreatedAt.IsZero() && o.Status == domain.OrderCancelled {
		say("Order %s: %s before it arrived; its content is unknown", o.ID, o.Status)
		return false
	}
	say("Order %s: %s, %s %s to %s, created %s, due %s UTC", o.ID, o.Status, priority(o), o.ProductType, degrees(o.Delivery), stamp(o.CreatedAt), stamp(o.Deadline))
	if o.AssignedMissionID != "" {
		releasing := ""
		if o.Releasing {
			releasing = ", which releases it when the drone names the new revision"
		}
		say("  drone %s, mission %s%s", o.AssignedDroneID, o.AssignedMissionID, releasing)
	}
	if !o.DeliveredAt.IsZero() {
		say("  delivered %s UTC", stamp(o.DeliveredAt))
	}
	if o.Held {
		say("  held: %s", o.HeldReason)
	}
	if o.PinnedDroneID != "" || len(o.ForbiddenDroneIDs) > 0 {
		say("  for %s", allowed(o))
	}
	if o.Late {
		say("  late")
	}
	if o.PlanningDepotID != "" {
		say("  planned by depot %s%s", o.PlanningDepotID, handedOverBy(o))
	}
	return true
}

func sayDecision(say sayFunc, e domain.LedgerEntry) {
	say("Decision %s: %s%s", e.ID, e.Outcome, because(e))
	say("  drone %s, orders %s, cycle %s, fence %s", e.DroneID, joined(e.OrderIDs), cmp.Or(string(e.CycleID), "-"), cmp.Or(e.Fence, "-"))
	if e.AmendsMissionID != "" {
		say("  amends mission %s, planned on revision %d%s", e.AmendsMissionID, e.AmendsRevision, amended(e))
	}
	say("  snapshot %s, published %s, received %s, judged %s UTC", stamp(e.SnapshotTime), stamp(e.PublishedAt), stamp(e.ReceivedAt), stamp(e.AppliedAt))
	say("  message %s", cmp.Or(e.MessageID, "-"))
}

func sayCycle(say sayFunc, c domain.Cycle) {
	say("Cycle %s of depot %s: %s%s", c.ID, c.DepotID, c.Outcome, prefixed(": ", c.Detail))
	say("  by %s, fence %s, started %s UTC, %s", cmp.Or(c.Holder, "-"), cmp.Or(c.Fence, "-"), stamp(c.StartedAt), cmp.Or(prefixed("ended ", stamp(c.EndedAt)), "not ended"))
	say("  saw %d drones and %d orders at %s UTC; %d missions%s for %d orders%s; %s", c.Drones, c.Orders, stamp(c.SnapshotTime), c.Missions, alsoChanged(c), c.Assigned, alsoHandedOver(c.HandedOver), cmp.Or(c.Objective, "no plan"))
	if c.WithoutOrders > 0 {
		say("  the latest of %d cycles without orders, which have one record for each area", c.WithoutOrders)
	}
	say("  read %s, solve %s, publish %s", c.ReadTook, c.SolveTook, c.PublishTook)
	for _, what := range c.LeftOut {
		say("  left out: %s", what)
	}
}

func sayDepot(say sayFunc, x domain.Depot) {
	slots := "one for every drone"
	if x.ChargingSlots > 0 {
		slots = fmt.Sprint(x.ChargingSlots)
	}
	say("Depot %s%s: at %s, capacity %d, charging slots: %s", x.ID, prefixed(" ", x.Name), degrees(x.Position), x.Capacity, slots)
	if x.Group != "" {
		say("  planned only with depots of group %s", x.Group)
	}
}

func sayWarehouse(say sayFunc, x domain.Warehouse) {
	cold := "no"
	if x.ColdStorage {
		cold = "yes"
	}
	say("Warehouse %s%s: at %s, products %s, cold storage %s", x.ID, prefixed(" ", x.Name), degrees(x.Position),
		cmp.Or(strings.Join(x.ProductTypes, " "), "none"), cold)
}

// handedOverBy names the depots that planned an order before, "" if there are none.
func handedOverBy(o domain.Order) string {
	if len(o.HandedOverBy) == 0 {
		return ""
	}
	return fmt.Sprintf(" since %s UTC, handed over by %s", stamp(o.PlanningSince), joined(o.HandedOverBy))
}

// alsoHandedOver names the orders that a cycle handed over, "" if there are none.
func alsoHandedOver(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d handed over to other depots", n)
}

// alsoChanged describes the missions that a cycle amended, how many orders it took from them, and
// those without orders; "" if there are none.
func alsoChanged(c domain.Cycle) (also string) {
	switch {
	case c.Exchanged > 0:
		also = fmt.Sprintf(" and %d amended ones, which give up %d orders,", c.Amended, c.Exchanged)
	case c.Amended > 0:
		also = fmt.Sprintf(" and %d amended ones", c.Amended)
	}
	if c.Standby > 0 {
		also += fmt.Sprintf(" (and %d without orders)", c.Standby)
	}
	return also
}

func sayMission(say sayFunc, m domain.Mission) {
	say("Mission %s: %s%s, drone %s, orders %s", m.ID, m.Status, prefixed(" ", string(m.FailureReason)), m.DroneID, cmp.Or(joined(m.OrderIDs), "none"))
	say("  decision %s, cycle %s, started %s UTC, %s, planned %.1f min and %.1f %% of battery",
		cmp.Or(string(m.DecisionID), "-"), cmp.Or(string(m.CycleID), "-"), stamp(m.StartTime), cmp.Or(prefixed("ended ", stamp(m.EndTime)), "not ended"), m.EstimatedDurationMinutes, m.EstimatedBatteryConsumption)
	if m.RouteRevision > 1 {
		say("  flies revision %d, amended %s UTC", m.RouteRevision, stamp(m.AmendedAt))
	}
	if a := m.Amendment; a != nil {
		say("  the drone has not named revision %d of decision %s, which adds %s, takes away %s", a.Revision, a.DecisionID,
			cmp.Or(joined(a.AddedIDs), "nothing"), cmp.Or(joined(a.ReleasedIDs), "nothing"))
	}
	if !m.RecalledAt.IsZero() {
		say("  recalled %s UTC: %s", stamp(m.RecalledAt), m.RecallReason)
	}
	if m.CommandPublishedAt.IsZero() {
		say("  command not sent yet")
		return
	}
	say("  command sent %s%s UTC", stamp(m.CommandPublishedAt), prefixed(" UTC, revoked ", stamp(m.RevokePublishedAt)))
}

// amended says what came of an applied amendment.
func amended(e domain.LedgerEntry) string {
	if e.Revision == 0 {
		return ""
	}
	return fmt.Sprintf("; revision %d adds %s, takes away %s", e.Revision, cmp.Or(joined(e.AddedIDs), "nothing"), cmp.Or(joined(e.ReleasedIDs), "nothing"))
}

func (s story) printRoute(d *Desk) error {
	fmt.Fprintln(d.Out, "\nRoute:")
	t := d.table("STOP", "TYPE", "ORDER", "WAREHOUSE", "POSITION", "ETA (UTC)", "REACHED")
	for i, w := range s.mission.Route {
		reached := ""
		if i < s.mission.ReachedStops {
			reached = "yes"
		}
		t.row(fmt.Sprint(i+1), stopText(w), string(w.OrderID), string(w.WarehouseID), degrees(w.Position), stamp(w.ETA), reached)
	}
	return t.flush()
}

// stopText is what a drone does at a stop.
func stopText(w domain.Waypoint) string {
	switch w.Type {
	case domain.WaypointCharge:
		return fmt.Sprintf("%s to %g %%", w.Type, math.Round(10*w.ChargeToPercent)/10)
	case domain.WaypointWait:
		return fmt.Sprintf("%s until %s", w.Type, stamp(w.WaitUntil))
	case domain.WaypointDepotStart, domain.WaypointWarehousePickup, domain.WaypointHospitalDelivery, domain.WaypointDepotReturn:
	}
	return string(w.Type)
}

func (s story) printUnserved(d *Desk) error {
	fmt.Fprintln(d.Out, "\nNot assigned:")
	t := d.table("ORDER", "REASON", "DRONES")
	for _, u := range s.cycle.Unserved {
		t.row(string(u.OrderID), u.Reason, u.Obstacles.String())
	}
	return t.flush()
}

// printUsers prints the users of a place, as many as a refusal to delete it names.
func (s story) printUsers(d *Desk) {
	for i, user := range s.users {
		if i == policy.MaxUsersNamed {
			d.say("  needed by more")
			return
		}
		d.say("  needed by %s", user)
	}
}

// line is one step of a story: what happened, and the related entities.
type line struct {
	at            time.Time
	cause         string
	what, related string
}

// printLines prints the steps in order. Related entities have their own line, because ids are long.
func (s story) printLines(d *Desk) error {
	lines := s.lines()
	fmt.Fprintln(d.Out)
	if len(lines) == 0 {
		fmt.Fprintln(d.Out, "No changes are recorded; old events may have been deleted.")
		return nil
	}
	t := d.table("TIME (UTC)", "CAUSE", "WHAT HAPPENED")
	for _, l := range lines {
		t.row(stamp(l.at), l.cause, l.what)
		if l.related != "" {
			t.continued(2, l.related)
		}
	}
	return t.flush()
}

// lines merges decisions into the events. A decision comes before its effects, and one without
// effects comes at its own time.
func (s story) lines() []line {
	var lines []line
	ledger := slices.Clone(s.ledger)
	effective := map[domain.DecisionID]bool{}
	for _, e := range s.events {
		effective[e.DecisionID] = true
	}
	states := map[string]map[string]any{} // the last known state of each entity
	for _, e := range s.events {
		ledger = slices.DeleteFunc(ledger, func(l domain.LedgerEntry) bool {
			due := l.ID == e.DecisionID || !effective[l.ID] && !l.AppliedAt.After(e.Time)
			if due {
				lines = append(lines, ledgerLine(l))
			}
			return due
		})
		entity := string(e.Entity) + " " + e.ID
		lines = append(lines, line{
			at: e.Time, cause: string(e.Cause), what: entity + ": " + change(e, states[entity]) + prefixed(" because ", e.Reason),
			related: s.related(e),
		})
		if e.Revision > 0 {
			states[entity] = e.State
		}
	}
	for _, entry := range ledger {
		lines = append(lines, ledgerLine(entry))
	}
	for _, c := range s.changes {
		at := slices.IndexFunc(lines, func(l line) bool { return l.at.After(c.ChangedAt) })
		if at < 0 {
			at = len(lines)
		}
		lines = slices.Insert(lines, at, changeLine(c))
	}
	return lines
}

func changeLine(c domain.PlaceChange) line {
	did := strings.ToLower(string(c.Action))
	if retired(c) {
		did = "retired"
	}
	return line{
		at: c.ChangedAt, cause: string(domain.CauseOperator), related: strings.Join(c.Fields, "; "),
		what: fmt.Sprintf("%s %s: %s because %s (by %s)", c.Kind, c.ID, did, oneLine(c.Why), c.ChangedBy),
	}
}

func ledgerLine(e domain.LedgerEntry) line {
	related := []string{"drone " + string(e.DroneID), "orders " + joined(e.OrderIDs)}
	if e.MissionID != "" {
		related = append(related, "mission "+string(e.MissionID))
	}
	if e.CycleID != "" {
		related = append(related, "cycle "+string(e.CycleID))
	}
	if e.Fence != "" {
		related = append(related, "fence "+e.Fence)
	}
	return line{
		at: e.AppliedAt, cause: string(domain.CauseDecision), what: "decision " + string(e.ID) + ": " + string(e.Outcome) + because(e),
		related: strings.Join(related, ", "),
	}
}

// because returns a rejection's reason and detail.
func because(e domain.LedgerEntry) string {
	if e.Reason == "" {
		return ""
	}
	return " because " + e.Reason + prefixed(": ", e.Detail)
}

// change says what an event changed: the status, and the fields of the state that differ
// from before.
func change(e domain.Event, before map[string]any) string {
	if e.Revision == 0 {
		return "refused; stays " + e.To
	}
	var parts []string
	switch {
	case e.From == "":
		parts = append(parts, "new: "+e.To)
	case e.From != e.To:
		parts = append(parts, e.From+" -> "+e.To)
	default:
		parts = append(parts, "stays "+e.To)
	}
	state, before := domain.WithDeadline(e.State), domain.WithDeadline(before)
	for _, name := range slices.Sorted(maps.Keys(state)) {
		if name == "deadlineAt" {
			continue // the same as deadline
		}
		is, was := state[name], before[name]
		differs := !reflect.DeepEqual(is, was) // a newer version may record lists and maps
		if name == "contentHash" {
			if before != nil && differs {
				parts = append(parts, "content changed")
			}
			continue
		}
		if before == nil && (name == "priority" || name == "deadline") {
			continue // the state now is printed above the story
		}
		if !isZero(is) && (is == string(e.MissionID) || is == string(e.DroneID)) {
			continue // printed as a related entity
		}
		if differs && (before != nil || !isZero(is)) {
			part := fmt.Sprintf("%s=%v", name, shown(is))
			if e.Cause == domain.CauseOperator && !isZero(was) && was != true {
				part += fmt.Sprintf(" (was %v)", was)
			}
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

func isZero(v any) bool { return v == nil || v == "" || v == false || v == int64(0) }

func shown(v any) any {
	if v == nil || v == "" {
		return "none"
	}
	return v
}

// related names the entities that an event belongs to. It leaves out the subject of the story, the
// event's own entity, and decisions with a line of their own.
func (s story) related(e domain.Event) string {
	var parts []string
	name := func(kind Subject, id string) {
		if id != "" && (kind != s.subject || id != s.id) && (string(kind) != string(e.Entity) || id != e.ID) {
			parts = append(parts, string(kind)+" "+id)
		}
	}
	name(SubjectDrone, string(e.DroneID))
	name(SubjectOrder, string(e.OrderID))
	name(SubjectMission, string(e.MissionID))
	if !slices.ContainsFunc(s.ledger, func(l domain.LedgerEntry) bool { return l.ID == e.DecisionID }) {
		name(SubjectDecision, string(e.DecisionID))
		name(SubjectCycle, string(e.CycleID))
	}
	return strings.Join(parts, ", ")
}

// prefixed returns prefix and text; empty if text is.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func joined[T ~string](ids []T) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = string(id)
	}
	return cmp.Or(strings.Join(texts, " "), "none")
}
