package faultsim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/fleethistory"
	"github.com/dronefleet/dronefleet/sim/invariant"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// atOnce lets the drones of stories be at their stops at once.
var atOnce = policy.Limits{TopSpeedKmh: 1e9}

// story is a day of a small fleet, played step by step against a real server, with
// every duplicate, delay and error that messages can have. The product may have a
// mistake injected; what the checker reads is never changed.
type story struct {
	t        *testing.T
	product  *firestoretx.Store
	store    *firestoretx.Store // on a connection without faults
	reliable *connections
	faults   *faultInjector
	op       string // what the product is doing now
	clock    *simclock.Clock
	skew     time.Duration // of the product's clock

	confirmed    []invariant.Message
	observations []invariant.Observation
	readings     []invariant.Reading
	complaints   []string // "requirement: what is wrong"
}

func newStory(t *testing.T, mistake func(*story)) *story {
	clock := simclock.Real()
	server, err := firestoreemu.Start(firestoreemu.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &story{t: t, faults: &faultInjector{}, clock: clock}
	mistake(s)
	hosts := connect.Config{Project: connect.EmulatorProject, FirestoreHost: server.Addr(), PubSubHost: "127.0.0.1:1"}
	open := func(c *connections, err error) *connections {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.close(); err != nil {
				t.Error(err)
			}
		})
		return c
	}
	product := open(dial(t.Context(), hosts, productOwner, s.faults.dialOptions()...))
	s.reliable = open(dial(t.Context(), hosts, "checker"))
	s.product = firestoretx.New(product.Firestore, firestoretx.Config{PlanUnregistered: true, Limits: atOnce, Now: func() time.Time { return s.now().Add(s.skew) }})
	s.store = firestoretx.New(s.reliable.Firestore, firestoretx.Config{PlanUnregistered: true, Limits: atOnce, Now: s.now})
	emutest.IssueFences(t, s.reliable.Firestore, "999", "", west.ID, east.ID) // the drones have no home
	if err := s.store.Setup(t.Context(), []domain.Depot{west, east}, nil, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *story) now() time.Time       { return s.clock.Now().UTC().Truncate(time.Microsecond) }
func (s *story) pass(d time.Duration) { s.clock.NotBefore(s.clock.Now().Add(d)) }

// snapshot is a time at which a plan could have been made, with a little time
// on either side of it.
func (s *story) snapshot() time.Time {
	s.pass(time.Second)
	defer s.pass(time.Second)
	return s.now()
}

func (s *story) complain(requirement, format string, args ...any) {
	s.complaints = append(s.complaints, requirement+" "+fmt.Sprintf(format, args...))
}

var home = domain.Position{Lat: 48.85, Lon: 2.35}

// Each depot is an area of its own. The western one is nearest to all orders.
var (
	west = domain.Depot{ID: "WEST", Position: home}
	east = domain.Depot{ID: "EAST", Position: domain.Position{Lat: home.Lat, Lon: home.Lon + 1}}
)

// pickup and delivery of an order, kilometres apart from all others.
func pickup(id domain.OrderID) domain.Position {
	return domain.Position{Lat: 48.86, Lon: 2.30 + float64(id[1]-'0')/50}
}

func delivery(id domain.OrderID) domain.Position {
	return domain.Position{Lat: 48.90, Lon: 2.30 + float64(id[1]-'0')/50}
}

// report has the product apply a report that the drone measures now. Each report
// gets an applier with an empty cache, as after a restart.
func (s *story) report(id domain.DroneID, status domain.DroneStatus, mission domain.MissionID, at domain.Position) domain.Telemetry {
	s.pass(time.Second)
	t := domain.Telemetry{DroneID: id, Timestamp: s.now(), Position: at, Battery: 90, Status: status, MissionID: mission}
	if err := s.apply(t); err != nil {
		s.complain("F-TEL-01", "drone %s: %v", id, err)
	}
	s.confirmed = append(s.confirmed, invariant.Message{ID: "t", DroneID: id, Timestamp: t.Timestamp})
	return t
}

// late gives the product the reports of a drone that picked an order up and delivered
// it, when newer reports of that drone have been applied.
func (s *story) late(drone domain.DroneID, mission domain.MissionID, id domain.OrderID, at time.Time) {
	s.op = "late"
	route := []domain.Waypoint{
		{Type: domain.WaypointWarehousePickup, Position: pickup(id), OrderID: id},
		{Type: domain.WaypointHospitalDelivery, Position: delivery(id), OrderID: id},
	}
	for i, stop := range route {
		t := domain.Telemetry{
			DroneID: drone, Timestamp: at.Add(time.Duration(i) * time.Millisecond), Position: stop.Position,
			Battery: 90, Status: domain.DroneMoving, MissionID: mission,
		}
		if err := s.product.NewTelemetryApplier().Apply(s.t.Context(), []domain.Telemetry{t})[0]; err != nil {
			s.complain("F-TEL-11", "drone %s: its late report from the stop of order %s was answered %v", drone, id, err)
		}
		s.confirmed = append(s.confirmed, invariant.Message{
			ID: "t", DroneID: drone, Timestamp: t.Timestamp, Stop: &invariant.StopReport{MissionID: mission, Route: route[:i+1]},
		})
	}
}

// again has the product apply a report that is a duplicate or out of date.
func (s *story) again(t domain.Telemetry) {
	err := s.apply(t)
	if reason, _ := policy.ReasonOf(err); reason != policy.ReasonStaleTelemetry {
		s.complain("F-TEL-02", "drone %s: the redelivery of its report of %s was answered %v", t.DroneID, t.Timestamp, err)
	}
}

func (s *story) apply(t domain.Telemetry) error {
	s.op = "telemetry"
	err := s.product.NewTelemetryApplier().Apply(s.t.Context(), []domain.Telemetry{t})[0]
	drones, readErr := s.store.Drones(s.t.Context(), "", firestoretx.Page{})
	if readErr != nil {
		s.t.Fatal(readErr)
	}
	for _, d := range drones {
		s.observations = append(s.observations, invariant.Observation{DroneID: d.ID, LastUpdate: d.LastUpdate})
	}
	return err
}

// ask gives the product an order or its cancellation.
func (s *story) ask(id domain.OrderID, cancel bool) { s.order("order", id, cancel, 1, s.now()) }

// changeMind gives the product new content for an order, and then a change that
// was published before it.
func (s *story) changeMind(id domain.OrderID) {
	s.pass(time.Second)
	before := s.now()
	s.pass(time.Second)
	s.order("change", id, false, 2, s.now())
	s.order("change", id, false, 3, before)
}

func (s *story) order(op string, id domain.OrderID, cancel bool, weight float64, published time.Time) {
	s.op = op
	from, created := pickup(id), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	req := domain.OrderRequest{
		ID: id, Cancel: cancel, CreatedAt: created, Deadline: created.AddDate(50, 0, 0),
		OrderContent: domain.OrderContent{ProductType: "BLOOD", Priority: domain.PriorityHigh, Pickup: &from, Delivery: delivery(id), WeightKg: weight},
	}
	err := s.product.IngestOrder(s.t.Context(), req, published)
	if _, rejected := policy.ReasonOf(err); err != nil && !rejected {
		s.complain("F-ORD-01", "order %s: %v", id, err)
	}
	s.confirmed = append(s.confirmed, invariant.Message{ID: "o", OrderID: id, Cancel: cancel, ContentHash: req.Hash(), SentAt: published})
}

// decide gives the product a decision; want is the reason for which it must be
// rejected, empty if it must be applied.
func (s *story) decide(id domain.DecisionID, drone domain.DroneID, fence string, seen time.Time, want policy.Reason, orders ...domain.OrderID) domain.MissionID {
	s.op = "decision"
	d := domain.Decision{
		ID: id, CycleID: "C", Fence: fence, SnapshotTime: seen, DroneID: drone, OrderIDs: orders,
		EstimatedBatteryConsumption: 10, EstimatedDurationMinutes: 60, PayloadHash: string(id),
	}
	for _, o := range orders {
		d.Route = append(d.Route, domain.Waypoint{Type: domain.WaypointWarehousePickup, Position: pickup(o), OrderID: o},
			domain.Waypoint{Type: domain.WaypointHospitalDelivery, Position: delivery(o), OrderID: o})
	}
	entry, err := s.product.AssignMission(s.t.Context(), d, policy.Delivery{MessageID: "m" + string(id), PublishedAt: s.now(), ReceivedAt: s.now()})
	if err != nil || entry.Reason != string(want) {
		s.complain("F-DEC-02", "decision %s: want %q, got %s %q (%s), %v", id, want, entry.Outcome, entry.Reason, entry.Detail, err)
	}
	s.confirmed = append(s.confirmed, invariant.Message{ID: "d", DecisionID: id})
	return domain.MissionIDFor(id)
}

// handOver has a cycle hand an order over to another area; want is the reason for which that
// must be refused, empty if it must be done.
func (s *story) handOver(from, to domain.DepotID, fence string, want policy.Reason, id domain.OrderID) {
	s.op = "hand-over"
	refusals, err := s.product.HandOver(s.t.Context(), domain.HandOvers{
		CycleID: "C", DepotID: from, Fence: fence, List: []domain.HandOver{{OrderID: id, From: from, To: to, Reason: "no drone is free"}},
	})
	if err == nil {
		err = refusals[0]
	}
	if reason, _ := policy.ReasonOf(err); reason != want || (err != nil) != (want != "") {
		s.complain("F-ARE-05", "order %s from %s to %s with fence %s: want %q, got %v", id, from, to, fence, want, err)
	}
	s.readAreas()
}

// readAreas takes a sample of what the areas' cycles read.
func (s *story) readAreas() {
	s.op = "cycle"
	reading, err := readAreas(s.t.Context(), s.store, s.product, []domain.Depot{west, east}, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.readings = append(s.readings, reading)
}

// mission complains unless the mission has the status and the failure.
func (s *story) mission(requirement string, id domain.MissionID, status domain.MissionStatus, failure domain.FailureReason) {
	m, err := s.store.Mission(s.t.Context(), id)
	if err != nil || m.Status != status || m.FailureReason != failure {
		s.complain(requirement, "mission %s is %q %s, want %q %s; %v", id, m.Status, m.FailureReason, status, failure, err)
	}
}

func (s *story) sweep() {
	s.op = "sweep"
	if _, err := s.product.NewSweeper().Due(s.t.Context(), nil, nil); err != nil {
		s.complain("F-TEL-09", "%v", err)
	}
}

// play plays the day.
func (s *story) play() {
	idle := func(ids ...domain.DroneID) {
		for _, id := range ids {
			s.report(id, domain.DroneIdle, "", home)
		}
	}
	for range 2 {
		idle("D1", "D2", "D3", "D4", "D5")
	}
	for _, id := range []domain.OrderID{"O1", "O2", "O3", "O4", "O5", "O6", "O7"} {
		s.ask(id, false)
	}
	morning := s.snapshot()

	// Somebody forges a fence. F-DEC-07
	s.decide("A0", "D2", "999999999999999", morning, policy.ReasonFenceUnknown, "O3")

	// Cycles overlap and messages are redelivered.
	m1 := s.decide("A1", "D1", "005", morning, "", "O1", "O2")
	s.ask("O1", false)
	s.decide("A2", "D2", "005", s.snapshot(), policy.ReasonOrderNotPending, "O1")
	s.decide("A3", "D1", "005", morning, policy.ReasonDroneNotIdle, "O3")
	s.decide("A4", "D2", "004", morning, policy.ReasonStaleFence, "O3")
	s.decide("A1", "D1", "005", morning, "", "O1", "O2")

	// The drone does not know its mission yet, then flies it; one order is
	// cancelled on the way.
	unaware := s.report("D1", domain.DroneIdle, "", home)
	s.again(unaware)
	s.mission("F-TEL-06", m1, domain.MissionActive, "")
	s.report("D1", domain.DroneMoving, m1, home)
	s.report("D1", domain.DroneMoving, m1, pickup("O1"))
	unaware.Timestamp = unaware.Timestamp.Add(time.Millisecond)
	s.again(unaware)
	s.ask("O2", true)
	s.report("D1", domain.DroneDelivering, m1, delivery("O1"))
	s.mission("F-ORD-03", m1, domain.MissionCompleted, "")
	idle("D1")
	s.decide("A5", "D1", "005", morning, policy.ReasonDroneChanged, "O3")

	// A drone passes the delivery before the pickup, picks up and breaks.
	idle("D2")
	m2 := s.decide("B1", "D2", "006", s.snapshot(), "", "O4")
	s.report("D2", domain.DroneMoving, m2, home)
	s.report("D2", domain.DroneMoving, m2, delivery("O4"))
	s.mission("F-TEL-07", m2, domain.MissionActive, "")
	s.report("D2", domain.DroneMoving, m2, pickup("O4"))
	s.report("D2", domain.DroneMaintenance, m2, pickup("O4"))
	idle("D3")
	before := s.snapshot()
	s.decide("B2", "D3", "006", before, policy.ReasonOrderHeld, "O4")

	// Another breaks before its pickup; a plan from before that is too old.
	m3 := s.decide("B3", "D3", "006", before, "", "O5")
	s.report("D3", domain.DroneMoving, m3, home)
	flying := s.snapshot()
	s.report("D3", domain.DroneMaintenance, m3, home)
	idle("D4")
	s.decide("B4", "D4", "006", before, policy.ReasonOrderChanged, "O5")

	// Its reports from the stops arrive after that: it had delivered.
	s.late("D3", m3, "O5", flying)

	// A whole mission is cancelled; a cancellation overtakes its order.
	m5 := s.decide("B5", "D4", "006", s.snapshot(), "", "O6")
	s.ask("O6", true)
	s.mission("F-ORD-03", m5, domain.MissionFailed, domain.FailureWithdrawn)
	s.ask("O9", true)
	s.ask("O9", false)

	// A hospital changes an order, and an older change arrives late.
	s.ask("O8", false)
	s.changeMind("O8")

	// Areas hand orders over; a cycle that lost its lock, one that is late and one that
	// would have an order back do not.
	s.readAreas()
	s.handOver("WEST", "EAST", "005", "", "O8")
	s.handOver("WEST", "EAST", "005", policy.ReasonPlannedElsewhere, "O8")
	s.handOver("EAST", "WEST", "001", policy.ReasonHandedOverBefore, "O8")
	s.handOver("WEST", "EAST", "004", policy.ReasonStaleFence, "O3")
	s.handOver("WEST", "EAST", "999999999999999", policy.ReasonFenceUnknown, "O3")
	s.handOver("WEST", "EAST", "005", policy.ReasonNotPending, "O1")
	s.handOver("WEST", "EAST", "005", policy.ReasonOrderHeld, "O4")

	// A drone falls silent for good.
	idle("D5")
	s.decide("B6", "D5", "007", s.snapshot(), "", "O7")
	s.pass(3 * time.Minute)
	s.sweep()
}

// findings lists everything wrong at the end of the day; each begins with the
// invariant or requirement that it breaks.
func (s *story) findings() []string {
	h, err := fleethistory.Documents(s.t.Context(), s.store)
	if err != nil {
		s.t.Fatal(err)
	}
	h.Confirmed, h.Observations, h.Readings = s.confirmed, s.observations, s.readings
	found := slices.Clone(s.complaints)
	h.PlansUnregistered = true
	for _, v := range invariant.Check(h).Violations {
		found = append(found, v.String())
	}
	return found
}
