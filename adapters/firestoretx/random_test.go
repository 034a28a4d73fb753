package firestoretx_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jonboulle/clockwork"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/invariant"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/longtest"
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
	return 1, longtest.Size(t, "seeds", uint64(1), 4)
}

var (
	trialDrones = []domain.DroneID{"D1", "D2", "D3"}
	trialDepots = []domain.Depot{depot, {ID: "DEPOT-2", Position: domain.Position{Lat: 48.87, Lon: 2.40}}}
	warehouses  = []domain.Position{{Lat: 48.858, Lon: 2.354}, {Lat: 48.88, Lon: 2.33}, {Lat: 48.83, Lon: 2.35}}
	hospitals   = []domain.Position{{Lat: 48.86, Lon: 2.36}, {Lat: 48.84, Lon: 2.31}, {Lat: 48.89, Lon: 2.38}}
	places      = slices.Concat([]domain.Position{depot.Position}, warehouses, hospitals)
)

// trial is one random run: State Managers with different clocks share a fleet whose
// messages are delivered late, twice and out of order. random_judge_test.go checks
// what must hold after every step.
type trial struct {
	t        *testing.T
	random   *rand.Rand
	server   *clockwork.FakeClock
	faults   *fault.Injector
	lossy    bool // some commits fail, or their answers are lost
	skewed   bool // the managers' clocks are wrong
	managers []*manager
	client   *firestore.Client
	judge    *firestoretx.Store // reads what the managers have written
	sent     []func()           // each delivers a published message once more
	owed     []domain.Mission   // offered by Config.Owed
	orders   int
	wishes   map[domain.OrderID]domain.OrderRequest // the latest
	cycles   int
	steps    []string

	flights   map[domain.DepotID]*firestoretx.FlightCache // of each depot's snapshots
	resting   bool                                        // attempts are judged together at the end, not one by one
	docs      documents                                   // after the last attempt
	predicted *documents                                  // what the current attempt must lead to; nil if not predicted
	told      map[domain.MissionID]told
	asked     map[string][]time.Time // when each content was published, by its hash
	known     invariant.History      // what documents do not record
	wrong     []string
}

// manager is a State Manager. The applier is the only state that it loses when it
// restarts.
type manager struct {
	*firestoretx.Store
	name    string
	off     time.Duration // error of its clock
	applier *firestoretx.TelemetryApplier
}

func newTrial(t *testing.T, seed uint64) *trial {
	x := &trial{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), faults: fault.New(seed), lossy: seed%4 >= 2, skewed: seed%2 == 0,
		wishes: map[domain.OrderID]domain.OrderRequest{}, told: map[domain.MissionID]told{}, asked: map[string][]time.Time{},
		flights: map[domain.DepotID]*firestoretx.FlightCache{depot.ID: {}, "DEPOT-2": {}},
		server:  clockwork.NewFakeClockAt(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)),
	}
	emutest.ServeFirestore(t, firestoreemu.Options{Clock: x.server, Faults: x.faults, Indexes: deploy.FirestoreIndexes})
	client := emutest.Clients(t).Firestore
	for _, name := range []string{"A", "B"} {
		m := &manager{name: name}
		m.Store = firestoretx.New(client, firestoretx.Config{
			PlanUnregistered: true,
			Now:              func() time.Time { return x.server.Now().Add(m.off) },
			Owed:             func(_ context.Context, owing domain.Mission) { x.owed = append(x.owed, owing) },
		})
		x.restart(m)
		x.managers = append(x.managers, m)
	}
	x.client = client
	x.judge = firestoretx.New(client, firestoretx.Config{PlanUnregistered: true, Now: x.server.Now})
	introduced := []domain.Drone{{ID: "D1", HomeDepotID: depot.ID, PayloadCapacityKg: 5}, {ID: "D2", HomeDepotID: "DEPOT-2"}} // D3 introduces itself
	if err := x.judge.Setup(t.Context(), trialDepots, nil, introduced); err != nil {
		t.Fatal(err)
	}
	x.docs = x.documents()
	return x
}

// restart restarts a manager, with a clock error within the allowed limit. Clocks
// change only at restarts: a real process measures durations by a monotonic clock,
// which these fake clocks lack.
func (x *trial) restart(m *manager) {
	if x.skewed {
		m.off = x.upTo(10*time.Second) - 5*time.Second
	}
	x.note("manager %s starts, its clock off by %s", m.name, m.off)
	m.applier = m.NewTelemetryApplier()
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

// attempt calls do, retries transient errors, and judges the effect.
func (x *trial) attempt(what string, do func() error) {
	x.note("%s", what)
	x.predicted = nil
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
	if !x.resting {
		x.judgeDeed()
	}
}

// publish has a manager handle messages now or later, and perhaps again. From then on
// each message must have an effect or a recorded reason.
func (x *trial) publish(what string, messages []invariant.Message, handle func(m *manager) error) {
	send := func() {
		m := anyOf(x, x.managers)
		if x.chance(6) {
			x.restart(m)
		}
		x.attempt(fmt.Sprintf("manager %s gets %s", m.name, what), func() error { return handle(m) })
		x.known.Confirmed = append(x.known.Confirmed, messages...)
	}
	x.sent = append(x.sent, send)
	if !x.chance(6) {
		send()
	}
}

func (x *trial) step() {
	ctx, m, drone := x.t.Context(), anyOf(x, x.managers), anyOf(x, trialDrones)
	id := x.latest()
	switch x.random.IntN(36) {
	default:
		x.server.Advance(x.upTo(2 * time.Second))
		x.report(drone)
	case 0:
		x.server.Advance(x.upTo(2 * time.Second))
		x.report(trialDrones...)
	case 1, 2, 3:
		for range 1 + x.random.IntN(3) {
			x.orders++
			x.order(domain.OrderID(fmt.Sprintf("O%d", x.orders)), false)
		}
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
		x.attempt(fmt.Sprintf("hold %s", id), func() error { return m.HoldOrder(firestoretx.By(ctx, "ann"), id, "why") })
	case 14:
		x.attempt(fmt.Sprintf("release %s", id), func() error { return m.ReleaseOrder(firestoretx.By(ctx, "ann"), id, "why") })
	case 15:
		x.attempt(fmt.Sprintf("%s is CRITICAL", id), func() error {
			critical := domain.PriorityCritical
			return m.ChangeOrder(firestoretx.By(ctx, "ann"), id, domain.OrderChange{Priority: &critical}, "why")
		})
		x.attempt(fmt.Sprintf("%s gets a minute", id), func() error {
			soon := x.server.Now().Add(time.Minute)
			return m.ChangeOrder(firestoretx.By(ctx, "ann"), id, domain.OrderChange{Deadline: &soon}, "why")
		})
		x.cancel(m, id)
	case 23, 24, 25:
		x.withdraw(m, slices.Collect(maps.Values(x.docs.Missions)))
	case 16, 20, 21:
		for _, id := range trialDrones {
			x.attempt(fmt.Sprintf("clear %s", id), func() error { return m.ClearDrone(firestoretx.By(ctx, "ann"), id, "why") })
			if mission := x.docs.Drones[id].CurrentMissionID; mission != "" && x.random.IntN(4) == 0 {
				x.attempt(fmt.Sprintf("recall %s", mission), func() error { return m.RecallMission(firestoretx.By(ctx, "ann"), mission, "why") })
			}
			if x.random.IntN(3) == 0 {
				x.attempt(fmt.Sprintf("ground %s", id), func() error { return m.GroundDrone(firestoretx.By(ctx, "ann"), id, "why") })
			} else {
				x.attempt(fmt.Sprintf("release %s", id), func() error { return m.ReleaseDrone(firestoretx.By(ctx, "ann"), id, "why") })
			}
		}
	case 17:
		x.move(drone)
	case 18:
		n := x.random.IntN(len(x.owed) + 1)
		owed := x.owed[:n]
		x.owed = x.owed[n:]
		x.meanwhile(m, owed)
		x.pay(m, owed)
	case 19:
		owed, err := m.OwedCommands(ctx, 5*time.Second)
		x.expect(err == nil, "owed commands: %v", err)
		x.meanwhile(m, owed)
		x.pay(m, owed)
	}
}

// meanwhile is what may happen while owed commands are being sent.
func (x *trial) meanwhile(m *manager, owed []domain.Mission) {
	switch x.random.IntN(4) {
	case 0:
		x.step()
	case 1:
		x.withdraw(m, owed)
	}
}

// withdraw cancels the order at the next stop of one of the missions. Afterwards its
// drone may report from the stop that is next now.
func (x *trial) withdraw(m *manager, missions []domain.Mission) {
	missions = slices.DeleteFunc(slices.Clone(missions), func(m domain.Mission) bool { return x.docs.Missions[m.ID].Status != domain.MissionActive })
	slices.SortFunc(missions, func(a, b domain.Mission) int { return strings.Compare(string(a.ID), string(b.ID)) })
	if len(missions) == 0 {
		return
	}
	mission := x.docs.Missions[anyOf(x, missions).ID]
	x.cancel(m, mission.Route[mission.ReachedStops].OrderID)
	if x.chance(2) {
		x.report(mission.DroneID)
	}
}

func (x *trial) cancel(m *manager, id domain.OrderID) {
	x.attempt(fmt.Sprintf("cancel %s", id), func() error { return m.CancelOrder(firestoretx.By(x.t.Context(), "ann"), id, "why") })
}

// move assigns a drone to a depot, perhaps the one it already has.
func (x *trial) move(drone domain.DroneID) {
	home := anyOf(x, trialDepots).ID
	x.attempt(fmt.Sprintf("%s moves to %s", drone, home), func() error {
		return anyOf(x, x.managers).Setup(x.t.Context(), nil, nil, []domain.Drone{{ID: drone, HomeDepotID: home}})
	})
}

// latest returns the id of a recent order, or of one that does not exist yet.
func (x *trial) latest() domain.OrderID {
	return domain.OrderID(fmt.Sprintf("O%d", max(1, x.orders+1-x.random.IntN(6))))
}

// pay records that owed commands were sent.
func (x *trial) pay(m *manager, owed []domain.Mission) {
	for _, m := range owed {
		x.told[m.ID] = x.told[m.ID].and(m.Command())
	}
	x.attempt(fmt.Sprintf("manager %s has told of %d missions", m.name, len(owed)), func() error {
		return m.MarkCommandsPublished(x.t.Context(), owed)
	})
}

// report has each drone send one or two reports.
func (x *trial) report(drones ...domain.DroneID) {
	var reports []domain.Telemetry
	for _, id := range drones {
		d := x.docs.Drones[id]
		m := x.docs.Missions[d.CurrentMissionID]
		for range 1 + x.random.IntN(3)/2 {
			reports = append(reports, x.telemetry(id, d, m))
		}
	}
	x.tell(reports)
}

// tell publishes reports as one batch.
func (x *trial) tell(reports []domain.Telemetry) {
	messages := make([]invariant.Message, len(reports))
	for i, t := range reports {
		messages[i] = invariant.Message{
			Topic: "telemetry", ID: fmt.Sprintf("%s %s", t.DroneID, t.Timestamp), DroneID: t.DroneID, Timestamp: t.Timestamp.Truncate(time.Microsecond),
		}
	}
	x.publish(fmt.Sprintf("reports %+v", reports), messages, func(m *manager) (failure error) {
		x.predicted = x.predict(m, reports)
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

// telemetry returns a report that is usually plausible for the drone's state, and
// sometimes arbitrary.
func (x *trial) telemetry(id domain.DroneID, d domain.Drone, m domain.Mission) domain.Telemetry {
	t := domain.Telemetry{
		DroneID: id, Timestamp: x.server.Now().Add(-x.upTo(time.Second)), Battery: 80, Status: domain.DroneIdle,
		Position: anyOf(x, places),
	}
	if d.Bound() {
		t.Status, t.MissionID = domain.DroneMoving, d.CurrentMissionID
	}
	if m.ReachedStops < len(m.Route) && !x.chance(3) {
		t.Position = m.Route[m.ReachedStops].Position
	}
	if id != "D3" { // which cannot amend
		t.SupportsAmendments, t.MissionRevision = true, m.RouteRevision
	}
	switch x.random.IntN(10) {
	case 0, 1: // it does not know its mission yet, or has ended it
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
	x.server.Advance(time.Millisecond) // each request has its own publish time
	published := x.server.Now()
	req, known := x.wishes[id]
	if !known || !x.chance(4) { // contents differ, so that replaced content does not return
		pickup := anyOf(x, warehouses)
		req = domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{
			Priority: anyOf(x, domain.Priorities[:]), ProductType: "BLOOD " + published.String(), Pickup: &pickup, Delivery: anyOf(x, hospitals),
			WeightKg: float64(1 + x.random.IntN(2)),
		}}
		if x.chance(3) {
			req.Deadline = published.Add(x.upTo(200 * time.Second))
		}
	}
	if req.Cancel = cancel; !cancel {
		x.wishes[id] = req
		x.asked[req.Hash()] = append(x.asked[req.Hash()], published.Truncate(time.Microsecond))
	}
	message := invariant.Message{Topic: "orders", OrderID: id, Cancel: cancel, ContentHash: req.Hash(), SentAt: published}
	x.publish(fmt.Sprintf("order %s, cancel %t", id, cancel), []invariant.Message{message}, func(m *manager) error {
		err := m.IngestOrder(x.t.Context(), req, published)
		if !cancel && !x.resting && !firestoretx.Retryable(err) {
			x.judgeAnswer(req, err)
		}
		return err
	})
}

// cycle plans for a depot from a snapshot.
func (x *trial) cycle(home domain.DepotID) {
	x.cycles++
	emutest.IssueFences(x.t, x.client, fmt.Sprintf("%015d", x.cycles), home)
	snap, err := x.judge.Snapshot(x.t.Context(), firestoretx.SnapshotRequest{Depot: home})
	x.expect(err == nil, "snapshot: %v", err)
	orders, published := snap.Orders, x.server.Now()
	if len(snap.Drones) > 0 && x.chance(4) {
		x.move(anyOf(x, snap.Drones).ID)
	}
	x.random.Shuffle(len(orders), func(i, j int) { orders[i], orders[j] = orders[j], orders[i] })
	for _, drone := range snap.Drones {
		if len(orders) == 0 {
			break
		}
		id := fmt.Sprintf("%d-%s", x.cycles, drone.ID)
		d := domain.Decision{
			ID: domain.DecisionID(id), PayloadHash: id, Fence: fmt.Sprintf("%015d", x.cycles), DepotID: home, SnapshotTime: snap.ReadTime,
			DroneID: drone.ID, EstimatedBatteryConsumption: 10, EstimatedDurationMinutes: float64(x.random.IntN(4)),
		}
		var pickups, deliveries []domain.Waypoint
		for range min(1+x.random.IntN(3), len(orders)) {
			o := orders[0]
			d.OrderIDs, orders = append(d.OrderIDs, o.ID), orders[1:]
			pickups = append(pickups, domain.Waypoint{Type: domain.WaypointWarehousePickup, OrderID: o.ID, Position: *o.Pickup})
			deliveries = append(deliveries, domain.Waypoint{Type: domain.WaypointHospitalDelivery, OrderID: o.ID, Position: o.Delivery})
		}
		d.Route = slices.Concat(pickups, deliveries)
		what := fmt.Sprintf("decision %s: %s takes %s", id, drone.ID, d.OrderIDs)
		x.publish(what, []invariant.Message{{Topic: "decisions", DecisionID: d.ID}}, func(m *manager) error {
			entry, err := m.AssignMission(x.t.Context(), d, policy.Delivery{PublishedAt: published, ReceivedAt: x.server.Now()})
			x.note("  %s %s %s", entry.Outcome, entry.Reason, entry.Detail)
			return err
		})
	}
}

// sweep runs a manager's sweeper. F-TEL-09: it marks a bound drone as lost if it has
// been silent too long, and only then.
func (x *trial) sweep(m *manager) {
	const silence, clockError, idleSilence = 120 * time.Second, 5 * time.Second, 15 * time.Second
	before := x.docs.Drones
	x.attempt(fmt.Sprintf("manager %s sweeps", m.name), func() error {
		_, err := m.NewSweeper().Due(x.t.Context(), nil, nil)
		return err
	})
	for id, d := range before {
		after := x.docs.Drones[id]
		silent := x.server.Since(d.SeenAt) // at its assignment at most idleSilence
		if d.Bound() && !after.Bound() && after.Status == domain.DroneUnknown {
			x.expect(silent >= silence-clockError, "lost after %s: %+v", silent, d)
		}
		x.expect(!after.Bound() || silent < silence+idleSilence+2*clockError, "not lost after %s: %+v", silent, d)
	}
}

// rest lets all drones land and every decision expire. Messages that are delivered
// after that, for the first time or again, are too late to affect drones and missions.
func (x *trial) rest() {
	x.note("the fleet comes to rest")
	x.lossy = false
	ctx, m := x.t.Context(), x.managers[0]
	for range 4 { // by then all decisions have expired
		x.server.Advance(35 * time.Second)
		var landed []domain.Telemetry
		for _, id := range trialDrones {
			x.attempt(fmt.Sprintf("clear %s", id), func() error { return m.ClearDrone(firestoretx.By(ctx, "ann"), id, "well") })
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
	x.resting = true
	for _, send := range x.sent {
		send()
	}
	x.check()
	after := x.history()
	// A late report may only prove what a mission did. F-TEL-11
	changed := cmp.Diff([]any{before.Drones, before.Missions}, []any{after.Drones, after.Missions},
		cmpopts.IgnoreFields(domain.Mission{}, "ReachedStops", "Sightings", "Revision"))
	x.expect(changed == "", "messages delivered too late changed %s", changed)
	x.random.Shuffle(len(x.sent), func(i, j int) { x.sent[i], x.sent[j] = x.sent[j], x.sent[i] })
	for _, send := range x.sent {
		send()
	}
	changed = cmp.Diff(effects(after), effects(x.history()))
	x.expect(changed == "", "redelivered messages changed %s", changed)
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

// Whatever messages State Managers receive, with different clocks, failed commits and lost answers,
// the invariants hold after every step and everything ends. It needs the embedded server, which
// injects faults and uses a fake clock. F-DOC-01, F-TEL-02, F-TEL-06, F-TEL-09, F-ORD-02, F-ORD-04,
// F-DEC-01, F-DEC-04, F-DEC-05, F-ACK-01, F-BAT-01, F-CYC-01
func TestStore_RandomOperations(t *testing.T) {
	first, last := randomSeeds(t)
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			x := newTrial(t, seed)
			for range 14 {
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
				t.Errorf("%s\nafter these steps:\n%s", strings.Join(x.wrong, "\n"), strings.Join(x.steps, "\n"))
			}
		})
	}
}
