package firestoretx_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jonboulle/clockwork"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/emutest"
	"github.com/dronefleet/dronefleet/internal/evidence"
	"github.com/dronefleet/dronefleet/internal/firestoreemu"
	"github.com/dronefleet/dronefleet/internal/firestoreemu/fault"
	"github.com/dronefleet/dronefleet/internal/invariant"
	"github.com/dronefleet/dronefleet/policy"
)

// randomSeeds are the first and the last seed of random runs; STORE_SEEDS=9-200
// sets others.
func randomSeeds(t *testing.T) (first, last uint64) {
	t.Helper()
	if text := os.Getenv("STORE_SEEDS"); text != "" {
		if _, err := fmt.Sscanf(text, "%d-%d", &first, &last); err != nil {
			t.Fatalf("STORE_SEEDS=%s: %v", text, err)
		}
		return first, last
	}
	if testing.Short() {
		return 1, 2
	}
	return 1, 4
}

var (
	trialDrones = []domain.DroneID{"D1", "D2", "D3"}
	trialDepots = []domain.Depot{depot, {ID: "DEPOT-2", Position: domain.Position{Lat: 48.87, Lon: 2.40}}}
	warehouse   = domain.Position{Lat: 48.858, Lon: 2.354}
	hospital    = domain.Position{Lat: 48.86, Lon: 2.36}
)

// trial is one random run: State Managers whose clocks differ share a fleet,
// whose messages come late, twice and out of order.
type trial struct {
	t        *testing.T
	random   *rand.Rand
	server   *clockwork.FakeClock
	faults   *fault.Injector
	lossy    bool // now and then a commit fails, or its answer is lost
	managers []*manager
	judge    *firestoretx.Store // reads what the managers have written
	sent     []func()           // what was published; each delivers it once more
	owed     []domain.Mission   // as the managers were told
	orders   int
	told     map[domain.MissionID]time.Time // when the latest command expires that its drone was sent
	cycles   int
	known    invariant.History // what no document tells
	steps    []string
	wrong    []string
}

// manager is a State Manager. All that it forgets when it starts anew is its
// applier.
type manager struct {
	*firestoretx.Store
	name    string
	applier *firestoretx.TelemetryApplier
}

func newTrial(t *testing.T, seed uint64) *trial {
	x := &trial{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), faults: fault.New(seed), lossy: seed%4 >= 2, told: map[domain.MissionID]time.Time{},
		server: clockwork.NewFakeClockAt(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)),
	}
	emutest.ServeFirestore(t, firestoreemu.Options{Clock: x.server, Faults: x.faults, Indexes: deploy.FirestoreIndexes})
	client := emutest.Clients(t).Firestore
	for _, name := range []string{"A", "B"} {
		var off time.Duration
		if seed%2 == 0 {
			off = x.upTo(10*time.Second) - 5*time.Second
		}
		x.note("the clock of manager %s is off by %s", name, off)
		store := firestoretx.New(client, firestoretx.Config{
			Now:  func() time.Time { return x.server.Now().Add(off) },
			Owed: func(_ context.Context, m domain.Mission) { x.owed = append(x.owed, m) },
		})
		x.managers = append(x.managers, &manager{store, name, store.NewTelemetryApplier()})
	}
	x.judge = firestoretx.New(client, firestoretx.Config{Now: x.server.Now})
	introduced := []domain.Drone{{ID: "D1", HomeDepotID: depot.ID, PayloadCapacityKg: 5}, {ID: "D2", HomeDepotID: "DEPOT-2"}} // D3 introduces itself
	if err := x.judge.Setup(t.Context(), trialDepots, nil, introduced); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *trial) note(format string, args ...any) {
	x.steps = append(x.steps, x.server.Now().Format("15:04:05.000000 ")+fmt.Sprintf(format, args...))
}

func (x *trial) expect(ok bool, format string, args ...any) {
	if !ok {
		x.wrong = append(x.wrong, fmt.Sprintf(format, args...))
	}
}

// chance is true once in n times.
func (x *trial) chance(n int) bool { return x.random.IntN(n) == 0 }

func (x *trial) upTo(most time.Duration) time.Duration {
	return time.Duration(x.random.Int64N(int64(most)))
}

func anyOf[T any](x *trial, list []T) T { return list[x.random.IntN(len(list))] }

// attempt does something until it is answered.
func (x *trial) attempt(what string, do func() error) {
	x.note("%s", what)
	if x.lossy && x.chance(4) {
		stage := anyOf(x, []fault.Stage{fault.Before, fault.After})
		defer x.faults.Add(fault.Rule{RPC: "Commit", Times: 1, At: stage, Do: fault.Fail(codes.DeadlineExceeded)}).Remove()
	}
	err := do()
	for range 3 {
		if firestoretx.Retryable(err) {
			x.note("  again after: %v", err)
			err = do()
		}
	}
	_, rejected := policy.ReasonOf(err)
	x.expect(err == nil || rejected, "%s: %v", what, err)
	x.note("  %v", err)
}

// publish has a manager handle messages now or later, and perhaps again. It owes
// their senders an effect or a reason from then on.
func (x *trial) publish(what string, messages []invariant.Message, handle func(m *manager) error) {
	send := func() {
		m := anyOf(x, x.managers)
		x.attempt(fmt.Sprintf("manager %s gets %s", m.name, what), func() error { return handle(m) })
		x.known.Journal = append(x.known.Journal, messages...)
	}
	x.sent = append(x.sent, send)
	if !x.chance(6) {
		send()
	}
}

func (x *trial) step() {
	ctx, m, drone, home := x.t.Context(), anyOf(x, x.managers), anyOf(x, trialDrones), anyOf(x, trialDepots).ID
	id := x.latest()
	switch x.random.IntN(36) {
	default:
		x.server.Advance(x.upTo(2 * time.Second))
		x.report(drone)
	case 0:
		x.server.Advance(x.upTo(2 * time.Second))
		x.report(trialDrones...)
	case 1, 2, 3:
		x.orders++
		x.order(domain.OrderID(fmt.Sprintf("O%d", x.orders)), false)
	case 4, 5:
		x.order(id, x.chance(2))
	case 6, 7, 8:
		for _, d := range trialDepots {
			x.cycle(d.ID)
		}
	case 9, 22:
		x.sweep(m)
	case 10:
		x.server.Advance(anyOf(x, []time.Duration{3 * time.Second, 16 * time.Second, 31 * time.Second, 150 * time.Second}))
		if x.chance(2) {
			x.report(trialDrones...)
			x.sweep(m)
		}
	case 11, 12:
		if n := len(x.sent); n > 0 {
			x.sent[max(0, n-1-x.random.IntN(10))]()
		}
	case 13:
		x.attempt(fmt.Sprintf("hold %s", id), func() error { return m.HoldOrder(ctx, id, "why") })
	case 14:
		x.attempt(fmt.Sprintf("release %s", id), func() error { return m.ReleaseOrder(ctx, id, "why") })
	case 15:
		x.attempt(fmt.Sprintf("cancel %s", id), func() error { return m.CancelOrder(ctx, id, "why") })
	case 16, 20, 21:
		for _, id := range trialDrones {
			x.attempt(fmt.Sprintf("clear %s", id), func() error { return m.ClearDrone(ctx, id, "why") })
		}
	case 17:
		x.attempt(fmt.Sprintf("%s moves to %s", drone, home), func() error {
			return m.Setup(ctx, nil, nil, []domain.Drone{{ID: drone, HomeDepotID: home}})
		})
	case 18:
		n := x.random.IntN(len(x.owed) + 1)
		x.pay(m, x.owed[:n])
		x.owed = x.owed[n:]
	case 19:
		owed, err := m.OwedCommands(ctx, 5*time.Second)
		x.expect(err == nil, "owed commands: %v", err)
		if x.chance(3) {
			x.step() // before they are paid
		}
		x.pay(m, owed)
	}
}

// latest is one of the latest orders, or one that nobody has ordered yet.
func (x *trial) latest() domain.OrderID {
	return domain.OrderID(fmt.Sprintf("O%d", max(1, x.orders+1-x.random.IntN(6))))
}

// pay notes that drones were told what they are owed.
func (x *trial) pay(m *manager, owed []domain.Mission) {
	for _, m := range owed {
		if m.CommandExpiresAt.After(x.told[m.ID]) {
			x.told[m.ID] = m.CommandExpiresAt
		}
	}
	x.attempt(fmt.Sprintf("manager %s has told of %d missions", m.name, len(owed)), func() error {
		return m.MarkCommandsPublished(x.t.Context(), owed)
	})
}

// report has drones say something.
func (x *trial) report(drones ...domain.DroneID) {
	var reports []domain.Telemetry
	for _, id := range drones {
		d, _ := x.judge.Drone(x.t.Context(), id)
		m, _ := x.judge.Mission(x.t.Context(), d.CurrentMissionID)
		for range 1 + x.random.IntN(3)/2 {
			reports = append(reports, x.telemetry(id, d, m))
		}
	}
	x.tell(reports)
}

// tell has a manager get reports together.
func (x *trial) tell(reports []domain.Telemetry) {
	messages := make([]invariant.Message, len(reports))
	for i, t := range reports {
		messages[i] = invariant.Message{
			Topic: "telemetry", ID: fmt.Sprintf("%s %s", t.DroneID, t.Timestamp), DroneID: t.DroneID, Timestamp: t.Timestamp.Truncate(time.Microsecond),
		}
	}
	x.publish(fmt.Sprintf("reports %+v", reports), messages, func(m *manager) (failure error) {
		if x.chance(4) {
			m.applier = m.NewTelemetryApplier()
		}
		for i, err := range m.applier.Apply(x.t.Context(), reports) {
			reason, rejected := policy.ReasonOf(err)
			switch {
			case reason == policy.ReasonFutureTimestamp:
				x.known.DeadLetters = append(x.known.DeadLetters, invariant.DeadLetter{MessageID: messages[i].ID, Reason: string(reason)})
			case err != nil && !rejected:
				failure = err
			}
			x.note("  %s: %v", reports[i].DroneID, err)
		}
		return failure
	})
}

// telemetry is mostly what a drone in its place would say, and sometimes anything.
func (x *trial) telemetry(id domain.DroneID, d domain.Drone, m domain.Mission) domain.Telemetry {
	t := domain.Telemetry{
		DroneID: id, Timestamp: x.server.Now().Add(-x.upTo(time.Second)), Battery: 80, Status: domain.DroneIdle,
		Position: anyOf(x, []domain.Position{depot.Position, warehouse, hospital}),
	}
	if d.Bound() {
		t.Status, t.MissionID = domain.DroneMoving, d.CurrentMissionID
	}
	if m.ReachedStops < len(m.Route) && x.chance(2) {
		t.Position = m.Route[m.ReachedStops].Position
	}
	switch x.random.IntN(10) {
	case 0, 1: // it knows of no mission yet, or of none any more
		t.Status, t.MissionID = domain.DroneIdle, ""
	case 2:
		t.Status = anyOf(x, domain.DroneStatuses)
	case 3:
		t.Status, t.MissionID = anyOf(x, domain.DroneStatuses), ""
	case 4:
		if len(d.FailedMissions) > 0 {
			t.Status, t.MissionID = anyOf(x, domain.DroneStatuses), anyOf(x, d.FailedMissions).ID
		}
	}
	switch x.random.IntN(14) {
	case 0:
		t.Timestamp = t.Timestamp.Add(-20 * time.Second)
	case 1:
		t.Timestamp = t.Timestamp.Add(x.upTo(8 * time.Second))
	case 2:
		t.Battery = anyOf(x, []float64{4, 20})
	case 3:
		t.Status = ""
	}
	return t
}

func (x *trial) order(id domain.OrderID, cancel bool) {
	x.server.Advance(time.Millisecond) // no two requests are published at one time
	published := x.server.Now()
	req := domain.OrderRequest{ID: id, Cancel: cancel, OrderContent: domain.OrderContent{
		Priority: anyOf(x, domain.Priorities), ProductType: "BLOOD", Pickup: &warehouse, Delivery: hospital, WeightKg: float64(1 + x.random.IntN(2)),
	}}
	if x.chance(3) {
		req.Deadline = published.Add(x.upTo(200 * time.Second))
	}
	message := invariant.Message{Topic: "orders", OrderID: id, Cancel: cancel, ContentHash: req.Hash(), SentAt: published}
	x.publish(fmt.Sprintf("order %s, cancel %t", id, cancel), []invariant.Message{message}, func(m *manager) error {
		return m.IngestOrder(x.t.Context(), req, published)
	})
}

// cycle plans for a depot by what a snapshot shows.
func (x *trial) cycle(home domain.DepotID) {
	x.cycles++
	snap, err := x.judge.Snapshot(x.t.Context(), firestoretx.SnapshotRequest{Depot: home, MinBattery: 20, MaxSilence: 15 * time.Second})
	x.expect(err == nil, "snapshot: %v", err)
	orders, published := snap.Orders, x.server.Now()
	x.random.Shuffle(len(orders), func(i, j int) { orders[i], orders[j] = orders[j], orders[i] })
	for _, drone := range snap.Drones[:min(len(snap.Drones), len(orders))] {
		id := fmt.Sprintf("%d-%s", x.cycles, drone.ID)
		d := domain.Decision{
			ID: domain.DecisionID(id), PayloadHash: id, Fence: fmt.Sprintf("%015d", x.cycles), DepotID: home, SnapshotTime: snap.ReadTime,
			DroneID: drone.ID, EstimatedBatteryConsumption: 10, EstimatedDurationMinutes: float64(x.random.IntN(4)),
		}
		for range min(1+x.random.IntN(3), len(orders)) {
			o := orders[0].ID
			d.OrderIDs, orders = append(d.OrderIDs, o), orders[1:]
			d.Route = append(d.Route,
				domain.Waypoint{Type: domain.WaypointWarehousePickup, OrderID: o, Position: warehouse},
				domain.Waypoint{Type: domain.WaypointHospitalDelivery, OrderID: o, Position: hospital})
		}
		what := fmt.Sprintf("decision %s: %s takes %s", id, drone.ID, d.OrderIDs)
		x.publish(what, []invariant.Message{{Topic: "decisions", DecisionID: d.ID}}, func(m *manager) error {
			entry, err := m.AssignMission(x.t.Context(), d, policy.Delivery{PublishedAt: published, ReceivedAt: x.server.Now()})
			x.note("  %s %s %s", entry.Outcome, entry.Reason, entry.Detail)
			return err
		})
	}
}

// sweep has a manager look for what no message tells. F-TEL-09: a bound drone that
// was heard of lately is not lost, and one that has been silent for long is.
func (x *trial) sweep(m *manager) {
	const silence, clockError, idleSilence = 120 * time.Second, 5 * time.Second, 15 * time.Second
	before := x.drones()
	x.attempt(fmt.Sprintf("manager %s sweeps", m.name), func() error {
		_, err := m.Sweep(x.t.Context())
		return err
	})
	after := x.drones()
	for i, d := range before {
		silent := x.server.Since(d.SeenAt) // when it was assigned it had not been silent for long
		if d.Bound() && !after[i].Bound() && after[i].Status == domain.DroneUnknown {
			x.expect(silent >= silence-clockError, "lost after %s: %+v", silent, d)
		}
		x.expect(!after[i].Bound() || silent < silence+idleSilence+2*clockError, "not lost after %s: %+v", silent, d)
	}
}

func (x *trial) drones() []domain.Drone {
	drones, err := x.judge.Drones(x.t.Context(), "", firestoretx.Page{})
	if err != nil {
		x.t.Fatal(err)
	}
	return drones
}

// history is all that there is to judge.
func (x *trial) history() invariant.History {
	h, err := evidence.Documents(x.t.Context(), x.judge)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, d := range h.Drones {
		x.known.Observations = append(x.known.Observations, invariant.Observation{DroneID: d.ID, LastUpdate: d.LastUpdate})
	}
	h.Journal, h.DeadLetters, h.Observations = x.known.Journal, x.known.DeadLetters, x.known.Observations
	return h
}

// check holds the invariants, and what else documents say of each other.
func (x *trial) check() {
	h := x.history()
	for _, v := range invariant.Check(h).Violations {
		x.expect(false, "%s", v)
	}
	missions := map[domain.MissionID]domain.Mission{}
	for _, m := range h.Missions {
		missions[m.ID] = m
		failed := m.Status == domain.MissionFailed
		x.expect(m.EndTime.IsZero() == (m.Status == domain.MissionActive), "the end of %+v", m)
		told := x.told[m.ID].Truncate(time.Microsecond)
		x.expect(failed || m.CommandPublishedAt.IsZero() || told.Equal(m.CommandExpiresAt), "the command that expires %s was sent, not that of %+v", told, m)
		// F-TEL-06: a command's lifetime and the clocks' errors after it was assigned, less what clocks may differ by.
		x.expect(m.FailureReason != domain.FailureNotAcked || m.EndTime.Sub(m.StartTime) > 15*time.Second, "the patience with %+v", m)
		x.expect(!(m.CommandPending && failed) && !(m.RevokePending && !failed), "what is owed of %+v", m)
	}
	for _, o := range h.Orders {
		delivered := o.Status == domain.OrderDelivered
		x.expect(o.Held == (o.HeldReason != "") && (!o.Held || o.Status == domain.OrderPending), "why %+v is held", o)
		x.expect(o.DeliveredAt.IsZero() != delivered && (!delivered || o.Late == o.DeliveredAt.After(o.Deadline)), "the delivery of %+v", o)
	}
	for _, d := range h.Drones {
		m, exists := missions[d.CurrentMissionID]
		if d.Bound() {
			x.expect(exists && m.DroneID == d.ID && m.Status != domain.MissionFailed, "the mission of %+v: %+v", d, m)
			x.expect(d.MissionAcked == d.FreeAfter.IsZero(), "when %+v is free", d)
			waits := !d.MissionAcked && m.Status == domain.MissionActive
			x.expect(!waits || d.FreeAfter.Equal(m.CommandExpiresAt.Add(5*time.Second)), "when %+v is free of %+v", d, m)
		} else {
			x.expect(!d.MissionAcked && !d.MissionMoved && d.FreeAfter.IsZero() && d.FaultSince.IsZero(), "what is left of a mission of %+v", d)
		}
		x.expect(d.Status != domain.DroneIdle || !d.IdleSince.IsZero() && d.GhostMissionID == "", "the idleness of %+v", d)
	}
	x.farewells(h.Events, missions)
	highest := map[domain.DepotID]string{}
	for _, entry := range h.Ledger {
		if entry.Outcome == domain.OutcomeApplied {
			highest[entry.DepotID] = max(highest[entry.DepotID], entry.Fence)
		}
		x.expect(entry.Reason != string(policy.ReasonStaleFence) || entry.Fence < highest[entry.DepotID], "the fence of %+v", entry)
	}
}

// farewells: the event by which a drone loses its mission names it, and why it
// failed if it did.
func (x *trial) farewells(events []domain.Event, missions map[domain.MissionID]domain.Mission) {
	slices.SortFunc(events, func(a, b domain.Event) int { return int(a.Revision - b.Revision) })
	bound := map[domain.DroneID]domain.MissionID{}
	for _, e := range events {
		if e.Entity != domain.EntityDrone {
			continue
		}
		is, _ := e.State["currentMissionId"].(string)
		was := bound[e.DroneID]
		bound[e.DroneID] = domain.MissionID(is)
		if m := missions[was]; was != "" && is == "" {
			wentHome := m.Status == domain.MissionCompleted && strings.HasPrefix(e.Reason, "silent since ")
			x.expect(e.MissionID == was && (e.Reason == string(m.FailureReason) || wentHome), "%+v ends %+v", e, m)
		}
	}
}

// rest lets drones land. Nothing is under way then, and what comes again, or only
// now, is too late for every drone and mission.
func (x *trial) rest() {
	x.note("all comes to rest")
	x.lossy = false
	ctx, m := x.t.Context(), x.managers[0]
	for range 4 { // by then all decisions have expired
		x.server.Advance(35 * time.Second)
		var landed []domain.Telemetry
		for _, id := range trialDrones {
			x.attempt(fmt.Sprintf("clear %s", id), func() error { return m.ClearDrone(ctx, id, "well") })
			landed = append(landed, domain.Telemetry{DroneID: id, Timestamp: x.server.Now(), Battery: 80, Position: depot.Position, Status: domain.DroneIdle})
		}
		x.tell(landed)
		x.sent[len(x.sent)-1]()
		x.sweep(m)
		owed, err := m.OwedCommands(ctx, 0)
		x.expect(err == nil, "owed commands: %v", err)
		x.pay(m, owed)
	}
	x.server.Advance(time.Second)
	before := x.history()
	for _, send := range x.sent {
		send()
	}
	x.check()
	after := x.history()
	changed := cmp.Diff([]any{before.Drones, before.Missions}, []any{after.Drones, after.Missions})
	x.expect(changed == "", "what came too late changed %s", changed)
	for _, d := range after.Drones {
		x.expect(d.Status == domain.DroneIdle && !d.Bound(), "at rest: %+v", d)
	}
	for _, o := range after.Orders {
		x.expect(o.Status == domain.OrderPending || o.Status.Final(), "at rest: %+v", o)
	}
	for _, m := range after.Missions {
		x.expect(m.Status != domain.MissionActive && !m.Owing(), "at rest: %+v", m)
	}
}

// Whatever comes in whatever order to State Managers whose clocks differ and whose
// commits fail or stay without an answer, the invariants hold at every moment, and
// nothing is under way for ever. Only the embedded server fails commits, and keeps
// a time of the test's.
// F-DOC-01, F-TEL-02, F-TEL-06, F-TEL-09, F-ORD-02, F-ORD-04, F-DEC-01, F-DEC-04, F-DEC-05, F-ACK-01, F-BAT-01
func TestStore_RandomOperations(t *testing.T) {
	first, last := randomSeeds(t)
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			x := newTrial(t, seed)
			for range 16 {
				for range 10 {
					x.step()
				}
				if x.check(); len(x.wrong) > 0 {
					break
				}
			}
			if len(x.wrong) == 0 {
				x.rest()
			}
			if len(x.wrong) > 0 {
				t.Errorf("%s\nafter\n%s", strings.Join(x.wrong, "\n"), strings.Join(x.steps, "\n"))
			}
		})
	}
}
