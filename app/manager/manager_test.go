package manager_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/shutdown"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/fleethistory"
	"github.com/dronefleet/dronefleet/sim/invariant"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// system is a fleet of one depot with managers running on it.
type system struct {
	t       *testing.T
	hosts   connect.Config
	outside *connect.Clients // of the senders of messages
	publish *pubsubio.Publisher
	store   *firestoretx.Store
}

var (
	home     = domain.Position{Lat: 48.8566, Lon: 2.3522}
	hospital = domain.Position{Lat: 48.86, Lon: 2.36}
)

// patient are limits for a machine that is so busy that drones seem to be silent and commands expire.
var patient = policy.Limits{MaxSilence: 10 * time.Minute, IdleSilence: 10 * time.Minute, CommandLifetime: 10 * time.Minute}

func newSystem(t *testing.T) *system { return newSystemOn(t, emutest.Hosts(t)) }

func newSystemOn(t *testing.T, hosts connect.Config) *system {
	s := &system{t: t, hosts: hosts}
	s.outside = emutest.Connect(t, s.hosts)
	if err := pubsubio.Ensure(t.Context(), s.outside.PubSub); err != nil {
		t.Fatal(err)
	}
	s.publish = pubsubio.NewPublisher(s.outside.PubSub)
	t.Cleanup(s.publish.Stop)
	s.store = firestoretx.New(s.outside.Firestore, firestoretx.Config{PlanUnregistered: true, Limits: patient})
	emutest.IssueFences(t, s.outside.Firestore, "1", "") // the drones have no home
	depot := domain.Depot{ID: "DEPOT-1", Name: "Main", Position: home}
	if err := s.store.Setup(t.Context(), []domain.Depot{depot}, nil, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// startManager runs one more State Manager until the test ends or stop is
// called.
func (s *system) startManager() (clients *connect.Clients, stop func()) {
	s.t.Helper()
	clients = emutest.Connect(s.t, s.hosts)
	return clients, s.runManager(clients, manager.Config{PlanUnregistered: true})
}

// runManager runs a State Manager on the given connections.
func (s *system) runManager(clients *connect.Clients, cfg manager.Config) (stop func()) {
	s.t.Helper()
	return s.runManagerBy(simclock.Real(), clients, cfg)
}

// runManagerBy is runManager with the given clock. Without limits of its own it is patient.
func (s *system) runManagerBy(clock *simclock.Clock, clients *connect.Clients, cfg manager.Config) (stop func()) {
	s.t.Helper()
	cfg.SweepInterval = 200 * time.Millisecond
	if cfg.Limits == (policy.Limits{}) {
		cfg.Limits = patient
	}
	m, err := manager.New(clients, clock, cfg, emutest.Log(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("manager: %v", err)
		}
	}
	s.t.Cleanup(stop)
	return stop
}

// send publishes and waits for the server's answer.
func (s *system) send(topic string, data []byte, attrs map[string]string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.publish.Publish(s.t.Context(), topic, data, attrs, "").Wait(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *system) report(id domain.DroneID, at time.Time, status domain.DroneStatus, mission domain.MissionID, pos domain.Position) {
	s.t.Helper()
	data, attrs, err := wire.EncodeTelemetry(domain.Telemetry{
		DroneID: id, Timestamp: at, Position: pos, Battery: 90, Status: status, MissionID: mission,
	}, wire.Protobuf)
	s.send(pubsubio.TopicTelemetry, data, attrs, err)
}

func orderRequest(id domain.OrderID) domain.OrderRequest {
	return domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{
		Priority: domain.PriorityCritical, ProductType: "BLOOD", Pickup: &home, Delivery: hospital,
	}}
}

func (s *system) order(id domain.OrderID) {
	s.t.Helper()
	data, attrs, err := wire.EncodeOrder(orderRequest(id), wire.JSON)
	s.send(pubsubio.TopicOrders, data, attrs, err)
}

func (s *system) decide(id domain.DecisionID, drone domain.DroneID, order domain.OrderID) {
	s.t.Helper()
	data, attrs, err := wire.EncodeDecision(domain.Decision{
		ID: id, CycleID: "C", Fence: "1", SnapshotTime: time.Now().Add(time.Minute), DroneID: drone, OrderIDs: []domain.OrderID{order},
		Route: []domain.Waypoint{
			{Type: domain.WaypointDepotStart, Position: home},
			{Type: domain.WaypointWarehousePickup, OrderID: order, Position: home},
			{Type: domain.WaypointHospitalDelivery, OrderID: order, Position: hospital},
			{Type: domain.WaypointDepotReturn, Position: home},
		},
		EstimatedBatteryConsumption: 5, EstimatedDurationMinutes: 3,
	}, wire.Protobuf)
	s.send(pubsubio.TopicDecisions, data, attrs, err)
}

func (s *system) awaitDrone(id domain.DroneID, what string, ok func(domain.Drone) bool) domain.Drone {
	s.t.Helper()
	var d domain.Drone
	emutest.Eventually(s.t, what, func() (err error) {
		if d, err = s.store.Drone(s.t.Context(), id); err == nil && !ok(d) {
			err = fmt.Errorf("drone is %+v", d)
		}
		return err
	})
	return d
}

func (s *system) awaitOrder(id domain.OrderID, want domain.OrderStatus) domain.Order {
	s.t.Helper()
	var o domain.Order
	emutest.Eventually(s.t, fmt.Sprintf("order %s %s", id, want), func() (err error) {
		if o, err = s.store.Order(s.t.Context(), id); err == nil && o.Status != want {
			err = fmt.Errorf("order is %+v", o)
		}
		return err
	})
	return o
}

// commands collects the commands sent to drones.
func (s *system) commands() <-chan domain.Command {
	s.t.Helper()
	const name = "missions-test"
	if err := pubsubio.EnsureSubscription(s.t.Context(), s.outside.PubSub, name, pubsubio.TopicMissions, true); err != nil {
		s.t.Fatal(err)
	}
	commands := make(chan domain.Command, 100)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- s.outside.PubSub.Subscriber(name).Receive(ctx, func(_ context.Context, msg *pubsub.Message) {
			c, err := wire.DecodeCommand(msg.Data, msg.Attributes)
			if err != nil {
				s.t.Errorf("command: %v", err)
			}
			commands <- c
			msg.Ack()
		})
	}()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("commands: %v", err)
		}
	})
	return commands
}

func next(t *testing.T, commands <-chan domain.Command) domain.Command {
	t.Helper()
	select {
	case c := <-commands:
		return c
	case <-time.After(time.Minute):
		t.Fatal("no command within a minute")
		return domain.Command{}
	}
}

// F-DEC-05: from order to delivery, over Pub/Sub alone.
func TestManager_DeliversOverPubSub(t *testing.T) {
	s := newSystem(t)
	commands := s.commands()
	s.startManager()
	s.startManager() // they share the work
	now := time.Now()
	s.report("D1", now.Add(-4*time.Second), domain.DroneIdle, "", home)
	s.awaitDrone("D1", "the drone registers", func(d domain.Drone) bool { return d.Status == domain.DroneIdle })
	s.order("O1")
	s.awaitOrder("O1", domain.OrderPending)
	s.decide("DEC-1", "D1", "O1")
	c := next(t, commands)
	if c.Mission.DroneID != "D1" || c.Revoke || c.ExpiresAt.IsZero() || len(c.Mission.Route) != 4 {
		t.Fatalf("command %+v", c)
	}
	s.report("D1", now.Add(-3*time.Second), domain.DroneMoving, c.Mission.ID, home)
	s.awaitOrder("O1", domain.OrderInDelivery)
	s.report("D1", now.Add(-2*time.Second), domain.DroneDelivering, c.Mission.ID, domain.Position{Lat: 48.86, Lon: 2.36})
	s.awaitOrder("O1", domain.OrderDelivered)
	s.report("D1", now.Add(-time.Second), domain.DroneIdle, "", home)
	s.awaitDrone("D1", "the drone is free", func(d domain.Drone) bool { return d.Status == domain.DroneIdle && !d.Bound() })
	s.checkInvariants()
}

// F-ACK-01, F-DEC-02: messages delivered many times to several managers have one effect.
func TestManager_RedeliveryChangesNothing(t *testing.T) {
	s := newSystem(t)
	for range 3 {
		s.startManager()
	}
	at := time.Now().Add(-5 * time.Second)
	for range 5 {
		s.report("D1", at, domain.DroneIdle, "", home)
		s.order("O1")
	}
	s.awaitDrone("D1", "the drone registers", func(d domain.Drone) bool { return d.Status == domain.DroneIdle })
	s.awaitOrder("O1", domain.OrderPending)
	for range 5 {
		s.decide("DEC-1", "D1", "O1")
		s.order("O1")
	}
	s.awaitOrder("O1", domain.OrderAssigned)
	for range 5 {
		s.order("O1")
	}
	s.awaitQuiet()
	if o := s.awaitOrder("O1", domain.OrderAssigned); o.Revision != 2 {
		t.Errorf("the order changed %d times, want 2", o.Revision)
	}
	s.checkInvariants()
}

// awaitQuiet sends further messages a few times and waits for their effect: by then all
// earlier ones have had theirs.
func (s *system) awaitQuiet() {
	s.t.Helper()
	for i := range 3 {
		id := "MARK-" + strconv.Itoa(i)
		s.order(domain.OrderID(id))
		s.awaitOrder(domain.OrderID(id), domain.OrderPending)
		s.report(domain.DroneID(id), time.Now(), domain.DroneCharging, "", home)
		s.awaitDrone(domain.DroneID(id), "marker", func(domain.Drone) bool { return true })
	}
}

// F-DLQ-01: poison is kept with its reason and delays nothing else.
func TestManager_PoisonBecomesADeadLetter(t *testing.T) {
	s := newSystem(t)
	s.startManager()
	s.send(pubsubio.TopicTelemetry, []byte("{not json"), nil, nil)
	s.send(pubsubio.TopicOrders, []byte(`{"id":"a/b","deliveryLocation":{"lat":99,"lon":0},"productType":"BLOOD"}`), nil, nil)
	s.report("D1", time.Now().Add(time.Hour), domain.DroneIdle, "", home)
	s.report("D2", time.Now(), domain.DroneIdle, "", home)
	s.awaitDrone("D2", "good messages pass", func(d domain.Drone) bool { return d.Status == domain.DroneIdle })
	poison := map[string]bool{
		pubsubio.TopicTelemetry + " " + wire.ReasonUndecodable:               true,
		pubsubio.TopicTelemetry + " " + string(policy.ReasonFutureTimestamp): true,
		pubsubio.TopicOrders + " " + wire.ReasonInvalid:                      true,
	}
	missing := maps.Clone(poison)
	emutest.Eventually(t, "dead letters", func() error {
		for _, topic := range pubsubio.InboundTopics {
			review, err := pubsubio.OpenReview(t.Context(), s.outside.PubSub, topic, 0, 0)
			if err != nil {
				return err
			}
			for _, l := range review.Letters {
				key := l.Topic + " " + l.Reason
				if !poison[key] || len(l.Data) == 0 || l.MessageID == "" || l.Error == "" {
					t.Errorf("dead letter %+v", l)
				}
				delete(missing, key)
			}
			if err := review.Close(t.Context()); err != nil {
				return err
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("still missing %v", missing)
		}
		return nil
	})
}

// intercept makes a client call Pub/Sub through f.
func intercept(t *testing.T, clients *connect.Clients, f grpc.UnaryClientInterceptor) {
	t.Helper()
	conn, err := grpc.NewClient(clients.Config.PubSubHost, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUnaryInterceptor(f))
	if err != nil {
		t.Fatal(err)
	}
	intercepted, err := pubsub.NewClient(t.Context(), clients.Config.Project, option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	if err := clients.PubSub.Close(); err != nil {
		t.Fatal(err)
	}
	clients.PubSub = intercepted // closed with the others
}

// countAcks makes a client count the messages it acknowledges to the server.
func countAcks(t *testing.T, clients *connect.Clients) *atomic.Int64 {
	t.Helper()
	var acked atomic.Int64
	intercept(t, clients, func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if ack, ok := req.(*pubsubpb.AcknowledgeRequest); ok && err == nil {
			acked.Add(int64(len(ack.GetAckIds())))
		}
		return err
	})
	return &acked
}

// stallPublishing leaves a client's publishes to topic unanswered and counts them.
func stallPublishing(t *testing.T, clients *connect.Clients, topic string) *atomic.Int64 {
	t.Helper()
	var stalled atomic.Int64
	intercept(t, clients, func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if r, ok := req.(*pubsubpb.PublishRequest); ok && path.Base(r.GetTopic()) == topic {
			stalled.Add(1)
			<-ctx.Done()
			return ctx.Err()
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	})
	return &stalled
}

// brief is a worker that drains for one second, so its manager stops within six.
var brief = manager.Config{PlanUnregistered: true, Worker: pubsubio.Config{Shutdown: shutdown.StateManager(time.Second)}}

// stopsInTime stops a manager. The bound leaves a busy machine much time, and is far below
// the minute for which Google's clients retry.
func stopsInTime(t *testing.T, stop func()) {
	t.Helper()
	began := time.Now()
	stop()
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("stopping took %v", took)
	}
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	emutest.Eventually(t, what, func() error {
		if !ok() {
			return errors.New("not yet")
		}
		return nil
	})
}

// F-FLOW-01: a manager that is told to stop settles what it holds, its acks reach the
// server before it ends, and another one takes over.
func TestManager_StopsCleanlyAndAnotherTakesOver(t *testing.T) {
	s := newSystem(t)
	clients := emutest.Connect(t, s.hosts)
	acked := countAcks(t, clients)
	stop := s.runManager(clients, manager.Config{PlanUnregistered: true})
	began := time.Now().Add(-time.Minute)
	for i := range 50 {
		s.report("D1", began.Add(time.Duration(i)*time.Second), domain.DroneIdle, "", home)
	}
	s.awaitDrone("D1", "the first reports arrive", func(d domain.Drone) bool { return d.Revision > 0 })
	stop()
	var settled int64
	for key, n := range clients.Meter.Settled() {
		if key.Outcome != meter.Nacked {
			settled += n
		}
	}
	if settled == 0 || acked.Load() != settled {
		t.Errorf("%d messages settled, %d acks sent", settled, acked.Load())
	}
	last := began.Add(55 * time.Second)
	s.report("D1", last, domain.DroneIdle, "", home)
	s.startManager()
	s.awaitDrone("D1", "the last report", func(d domain.Drone) bool { return d.LastUpdate.Equal(last.Truncate(time.Microsecond)) })
}

// F-FLOW-01: a manager without Pub/Sub ends as soon as everything it holds is settled,
// long before the end of its drain: the acks cannot be delivered.
func TestManager_StopsInTimeWithoutPubSub(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{false, true} {
		t.Run(fmt.Sprintf("holding a report is %t", held), func(t *testing.T) {
			t.Parallel()
			server, err := pubsubemu.Start(pubsubemu.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = server.Close() }() // closed below, unless the test fails before
			hosts := emutest.Hosts(t)
			hosts.PubSubHost = server.Addr()
			s := newSystemOn(t, hosts)
			clients := emutest.Connect(t, s.hosts)
			// The report is held for seconds, so that a busy machine observes it.
			stop := s.runManager(clients, manager.Config{PlanUnregistered: true, Worker: pubsubio.Config{Shutdown: shutdown.StateManager(time.Minute), TelemetryCoalesce: 5 * time.Second}})
			at := time.Now().Add(-2 * time.Second)
			s.report("D1", at, domain.DroneIdle, "", home)
			s.awaitDrone("D1", "the drone registers", func(d domain.Drone) bool { return d.Revision > 0 })
			backlog := clients.Meter.Backlog(pubsubio.TopicTelemetry, time.Now)
			if held { // until the next write of its drone
				s.report("D1", at.Add(time.Second), domain.DroneIdle, "", home)
			}
			await(t, "the report is in work, or settled", func() bool { return backlog.Messages() > 0 == held })
			if err := server.Close(); err != nil {
				t.Fatal(err)
			}
			stopsInTime(t, stop)
			if n := backlog.Messages(); n != 0 {
				t.Errorf("%d messages are not settled", n)
			}
		})
	}
}

// F-FLOW-01, F-DLQ-01: a manager ends in time although its dead letters cannot be
// published. Their messages are nacked, and another manager dead-letters them.
func TestManager_StopsInTimeWithPoisonThatCannotBePublished(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	clients := emutest.Connect(t, s.hosts)
	stalled := stallPublishing(t, clients, pubsubio.DeadLetterTopic(pubsubio.TopicTelemetry))
	stop := s.runManager(clients, brief)
	const poison = 3
	for i := range poison { // one after the other, so that each waits by itself
		s.report("D1", time.Now().Add(time.Hour), domain.DroneIdle, "", home)
		await(t, "the dead letter is being published", func() bool { return stalled.Load() > int64(i) })
	}
	stopsInTime(t, stop)
	settled := clients.Meter.Settled()
	maps.DeleteFunc(settled, func(_ meter.Settlement, n int64) bool { return n == 0 })
	want := map[meter.Settlement]int64{{Kind: pubsubio.TopicTelemetry, Outcome: meter.Nacked, Reason: string(policy.ReasonFutureTimestamp)}: poison}
	if !maps.Equal(settled, want) {
		t.Errorf("settled %v, want %v", settled, want)
	}
	s.startManager()
	emutest.Eventually(t, "dead letters", func() error {
		review, err := pubsubio.OpenReview(t.Context(), s.outside.PubSub, pubsubio.TopicTelemetry, 0, 0)
		if err == nil && len(review.Letters) < poison {
			err = errors.Join(fmt.Errorf("%d letters", len(review.Letters)), review.Close(t.Context()))
		}
		return err
	})
}

// F-FLOW-01, F-DEC-05: a manager ends in time although its owed commands cannot be
// published; another one sends them.
func TestManager_StopsInTimeWithCommandsThatCannotBePublished(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	commands := s.commands()
	clients := emutest.Connect(t, s.hosts)
	stalled := stallPublishing(t, clients, pubsubio.TopicMissions)
	stop := s.runManager(clients, brief)
	s.report("D1", time.Now(), domain.DroneIdle, "", home)
	s.awaitDrone("D1", "the drone registers", func(d domain.Drone) bool { return d.Status == domain.DroneIdle })
	s.order("O1")
	s.awaitOrder("O1", domain.OrderPending)
	s.decide("DEC-1", "D1", "O1")
	s.awaitOrder("O1", domain.OrderAssigned)
	await(t, "the command is being published", func() bool { return stalled.Load() > 0 })
	stopsInTime(t, stop)
	if n := clients.Meter.CommandsPublished.Value(); n > 0 {
		t.Errorf("%d commands counted as published", n)
	}
	s.startManager()
	if c := next(t, commands); c.Mission.DroneID != "D1" {
		t.Errorf("command %+v", c)
	}
}

// stallFirestore replaces a client's Firestore with one that does not answer after stall
// is called.
func stallFirestore(t *testing.T, clients *connect.Clients) (stall func()) {
	t.Helper()
	client, stall := emutest.Stalling(t, clients.Config)
	if err := clients.Firestore.Close(); err != nil {
		t.Fatal(err)
	}
	clients.Firestore = client // closed with the others
	return stall
}

// F-FLOW-01, F-ACK-01: a manager ends in time although Firestore answers neither its
// transactions nor its sweeps and locks. What it held is nacked, and another manager
// applies it.
func TestManager_StopsInTimeWithoutFirestore(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	clients := emutest.Connect(t, s.hosts)
	stall := stallFirestore(t, clients)
	stop := s.runManager(clients, brief)
	at := time.Now().Truncate(time.Microsecond)
	s.report("D1", at, domain.DroneIdle, "", home)
	s.awaitDrone("D1", "the drone registers", func(d domain.Drone) bool { return d.Status == domain.DroneIdle })
	await(t, "the report is settled", func() bool {
		return clients.Meter.Settled()[meter.Settlement{Kind: pubsubio.TopicTelemetry, Outcome: meter.Applied}] == 1
	})
	stall()
	const drones = 50
	for i := range drones {
		s.report(domain.DroneID(fmt.Sprintf("D%d", i+2)), at, domain.DroneIdle, "", home)
	}
	s.order("O1")
	s.decide("DEC-1", "D1", "O1")
	held := 0
	emutest.Eventually(t, "all messages are held", func() error {
		held = 0
		for _, topic := range pubsubio.InboundTopics {
			held += int(clients.Meter.Backlog(topic, time.Now).Messages())
		}
		if held != drones+2 {
			return fmt.Errorf("%d are held", held)
		}
		return nil
	})
	stopsInTime(t, stop)
	nacked := int64(0)
	for key, n := range clients.Meter.Settled() {
		if key.Outcome == meter.Nacked {
			nacked += n
		}
	}
	if nacked != drones+2 {
		t.Errorf("%d messages nacked, %d were held", nacked, held)
	}
	s.startManager()
	for i := range drones + 1 {
		s.awaitDrone(domain.DroneID(fmt.Sprintf("D%d", i+1)), "the drone registers", func(d domain.Drone) bool { return d.LastUpdate.Equal(at) })
	}
	emutest.Eventually(t, "the order", func() error { _, err := s.store.Order(t.Context(), "O1"); return err })
}

// F-FLOW-01, F-TEL-09: a manager that is told to stop during a sweep ends the sweep and
// releases the lock.
func TestManager_ShutdownEndsASweep(t *testing.T) {
	faults, sweeping := fault.New(1), fault.NewGate()
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	t.Cleanup(sweeping.Open)
	s := newSystem(t)
	faults.Add(fault.Rule{RPC: "RunQuery", NamePrefix: "missions", Times: 1, Do: fault.Pause(sweeping)})
	stop := s.runManager(emutest.Connect(t, s.hosts), brief)
	if err := sweeping.Arrived(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if stop(); t.Failed() { // it was not over in time
		t.FailNow()
	}
	clients, _ := s.startManager()
	await(t, "a sweep", func() bool { return clients.Meter.Sweeps.Value() > 0 })
}

// F-TEL-09: a query that is never answered ends its sweep, not all sweeps.
func TestManager_SweepsAgainAfterAnUnansweredQuery(t *testing.T) {
	faults, silent := fault.New(1), fault.NewGate()
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	t.Cleanup(silent.Open)
	s := newSystem(t)
	faults.Add(fault.Rule{RPC: "RunQuery", NamePrefix: "missions", Times: 1, Do: fault.Pause(silent)})
	clients := emutest.Connect(t, s.hosts)
	s.runManager(clients, manager.Config{PlanUnregistered: true, SweepLimit: 2 * time.Second})
	if err := silent.Arrived(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	await(t, "a sweep", func() bool { return clients.Meter.Sweeps.Value() > 0 })
}

// F-TEL-09: the sweeper finds a silent drone, which is then not available.
func TestManager_SweepsSilentDrones(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	// Old, but just young enough to be accepted; then silence.
	old := time.Now().Add(-14 * time.Second)
	stop := s.runManager(emutest.Connect(t, s.hosts), manager.Config{PlanUnregistered: true, Limits: policy.DefaultLimits()})
	s.report("D1", old, domain.DroneIdle, "", home)
	s.awaitDrone("D1", "the drone registers", func(d domain.Drone) bool { return d.Revision > 0 })
	s.awaitDrone("D1", "the sweeper notices", func(d domain.Drone) bool { return d.Status == domain.DroneUnknown })
	stop()
	s.checkInvariants()
}

// F-TEL-09: if the clock could not be measured at startup, the next sweep measures it.
func TestManager_SweepsBeforeTheFirstClockMeasurement(t *testing.T) {
	faults := fault.New(1)
	faults.Add(fault.Rule{NamePrefix: "locks/clock-check", Times: 1, Do: fault.Fail(codes.PermissionDenied)})
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	s := newSystem(t)
	began := time.Now()
	clients, _ := s.startManager()
	await(t, "a sweep", func() bool { return clients.Meter.Sweeps.Value() > 0 })
	if took := time.Since(began); took > 45*time.Second { // far above 200 ms, below the minute of WatchClock
		t.Errorf("the first sweep took %v", took)
	}
}

// F-OBS-01, F-TEL-09: failed sweeps are not counted, so that an alert can detect repeated
// failures.
func TestManager_DoesNotCountFailedSweeps(t *testing.T) {
	faults := fault.New(1)
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	s := newSystem(t)
	failing := faults.Add(fault.Rule{RPC: "RunQuery", NamePrefix: "missions", Do: fault.Fail(codes.PermissionDenied)})
	clients, _ := s.startManager()
	lock := clients.Meter.Lock(meter.LockSweeper)
	await(t, "sweeps that fail", func() bool { return lock.Wait.Count() >= 3 }) // each gives the lock up
	if n := clients.Meter.Sweeps.Value(); n > 0 {
		t.Errorf("%d failed sweeps are counted", n)
	}
	failing.Remove()
	await(t, "a sweep", func() bool { return clients.Meter.Sweeps.Value() > 0 })
}

// F-TEL-09, F-SWP-02: of two managers one is the sweeper until it stops. It corrects what an earlier
// version wrote without dueAt.
func TestManager_IsTheSweeperUntilItStops(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	if _, err := s.outside.Firestore.Doc("drones/D1").Set(t.Context(), map[string]any{"status": "IDLE", "seenAt": time.Now()}); err != nil {
		t.Fatal(err)
	}
	first, stop := s.startManager()
	await(t, "a sweep", func() bool { return first.Meter.Sweeps.Value() > 0 })
	second, _ := s.startManager()
	tries := second.Meter.Lock(meter.LockSweeper)
	await(t, "tries of the other manager", func() bool { return tries.Wait.Count() >= 3 })
	await(t, "dueAt", func() bool { return first.Meter.DueCorrected.Value() == 1 })
	if n := second.Meter.Sweeps.Value(); n > 0 || first.Meter.Lock(meter.LockSweeper).Wait.Count() != 1 {
		t.Errorf("the other manager has swept %d times", n)
	}
	stop()
	await(t, "a sweep of the other manager", func() bool { return second.Meter.Sweeps.Value() > 0 })
}

// assign creates a mission whose command is not sent.
func (s *system) assign(now time.Time) domain.MissionID {
	s.t.Helper()
	report := domain.Telemetry{DroneID: "D1", Timestamp: now, Position: home, Battery: 90, Status: domain.DroneIdle}
	if err := s.store.NewTelemetryApplier().Apply(s.t.Context(), []domain.Telemetry{report})[0]; err != nil {
		s.t.Fatal(err)
	}
	if err := s.store.IngestOrder(s.t.Context(), orderRequest("O1"), now); err != nil {
		s.t.Fatal(err)
	}
	entry, err := s.store.AssignMission(s.t.Context(), domain.Decision{
		ID: "DEC-1", Fence: "1", DroneID: "D1", OrderIDs: []domain.OrderID{"O1"}, SnapshotTime: now.Add(time.Hour), EstimatedBatteryConsumption: 5, EstimatedDurationMinutes: 3,
		Route: []domain.Waypoint{{Type: domain.WaypointWarehousePickup, OrderID: "O1", Position: home}, {Type: domain.WaypointHospitalDelivery, OrderID: "O1", Position: hospital}},
	}, policy.Delivery{MessageID: "m"})
	if err != nil || entry.Outcome != domain.OutcomeApplied {
		s.t.Fatal(entry, err)
	}
	return entry.MissionID
}

// F-DEC-05: the sweeper sends commands that another manager committed but crashed before
// sending.
func TestManager_SendsCommandsLeftByACrash(t *testing.T) {
	s := newSystem(t)
	mission := s.assign(time.Now())
	if err := s.store.CancelOrder(firestoretx.By(t.Context(), "ann"), "O1", "obsolete"); err != nil {
		t.Fatal(err)
	}
	commands := s.commands()
	s.startManager()
	if c := next(t, commands); c.Mission.ID != mission || !c.Revoke {
		t.Errorf("command %+v, want the revocation of %s", c, mission)
	}
}

// F-TEL-09: to a clock that is minutes fast, every drone is silent. Its manager leaves the
// sweeps to others, but still sends owed commands (F-DEC-05), which depend on no clock.
func TestManager_DoesNotSweepWithAWrongClock(t *testing.T) {
	slow, err := simclock.New(simclock.Rate{Epoch: time.Now(), Speed: 1, Ahead: -5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	emutest.ServeFirestore(t, firestoreemu.Options{Clock: slow})
	s := newSystem(t)
	s.store = firestoretx.New(s.outside.Firestore, firestoretx.Config{PlanUnregistered: true, Limits: patient, Now: slow.Now}) // of a manager whose clock is right
	mission := s.assign(slow.Now())
	commands := s.commands()
	clients, stop := s.startManager()
	if c := next(t, commands); c.Mission.ID != mission {
		t.Errorf("command %+v", c)
	}
	emutest.Eventually(t, "sweeps skipped", func() error {
		if n := clients.Meter.SweepsSkipped.Value() + clients.Meter.Sweeps.Value(); n < 3 {
			return fmt.Errorf("%d sweeps", n)
		}
		return nil
	})
	// F-OBS-01: an alert needs no probe to see it.
	await(t, "the offset is measured", func() bool {
		offset, measured := clients.Meter.ClockOffset.Last()
		return measured && offset < -4*time.Minute
	})
	stop()
	if n := clients.Meter.Sweeps.Value(); n > 0 {
		t.Errorf("it swept %d times", n)
	}
	if m, err := s.store.Mission(t.Context(), mission); err != nil || m.Status != domain.MissionActive {
		t.Errorf("the mission is %s %s (%v)", m.Status, m.FailureReason, err)
	}
}

// F-TEL-09: a manager does not sweep with a clock that was set forward after its
// measurement.
func TestManager_DoesNotSweepWithAClockThatWasSet(t *testing.T) {
	clock, err := simclock.New(simclock.Rate{Epoch: time.Now(), Speed: 1, Ahead: time.Millisecond}) // can be set
	if err != nil {
		t.Fatal(err)
	}
	s := newSystem(t)
	clients := emutest.Connect(t, s.hosts)
	stop := s.runManagerBy(clock, clients, manager.Config{PlanUnregistered: true})
	await(t, "a sweep", func() bool { return clients.Meter.Sweeps.Value() > 0 })
	mission := s.assign(time.Now())
	clock.NotBefore(time.Now().Add(5 * time.Minute))
	await(t, "sweeps skipped", func() bool { return clients.Meter.SweepsSkipped.Value() >= 3 })
	stop()
	if m, err := s.store.Mission(t.Context(), mission); err != nil || m.Status != domain.MissionActive {
		t.Errorf("the mission is %s %s (%v)", m.Status, m.FailureReason, err)
	}
}

// checkInvariants checks the invariants on everything in the store.
func (s *system) checkInvariants() {
	s.t.Helper()
	h, err := fleethistory.Documents(s.t.Context(), s.store)
	if err != nil {
		s.t.Fatal(err)
	}
	h.PlansUnregistered = true
	for _, v := range invariant.Check(h).Violations {
		s.t.Errorf("invariant broken: %s", v)
	}
}

// F-BAT-01: many drones share commits, however slow the machine. A transaction per message
// would cost three calls each.
func TestManager_TelemetryIsGroupCommitted(t *testing.T) {
	s := newSystem(t)
	clients, stop := s.startManager()
	const drones, reports = 100, 20
	began := time.Now().Add(-reports * time.Second)
	var sent []pubsubio.Published
	for r := range reports {
		for d := range drones {
			data, attrs, err := wire.EncodeTelemetry(domain.Telemetry{
				DroneID: domain.DroneID(fmt.Sprintf("D%03d", d)), Timestamp: began.Add(time.Duration(r) * time.Second),
				Position: home, Battery: 90, Status: domain.DroneMoving,
			}, wire.Protobuf)
			if err != nil {
				t.Fatal(err)
			}
			sent = append(sent, s.publish.Publish(t.Context(), pubsubio.TopicTelemetry, data, attrs, ""))
		}
	}
	for _, p := range sent {
		if _, err := p.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	last := began.Add((reports - 1) * time.Second).Truncate(time.Microsecond)
	for d := range drones {
		s.awaitDrone(domain.DroneID(fmt.Sprintf("D%03d", d)), "last report", func(x domain.Drone) bool { return x.LastUpdate.Equal(last) })
	}
	stop()
	cost := clients.Meter.FirestoreByOperation()[pubsubio.TopicTelemetry]
	if cost.RPCs > drones*reports/4 {
		t.Errorf("%d messages took %d RPCs", drones*reports, cost.RPCs)
	}
	settled := clients.Meter.Settled()
	if n := settled[meter.Settlement{Kind: pubsubio.TopicTelemetry, Outcome: meter.Nacked}]; n > 0 {
		t.Errorf("%d messages were nacked", n)
	}
}
