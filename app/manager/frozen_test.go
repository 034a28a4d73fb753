package manager_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/sim/fleethistory"
	"github.com/dronefleet/dronefleet/sim/invariant"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// frozenFor is how long TestManager_FrozenReplicaHoldsNothingForLong freezes a State
// Manager.
var frozenFor = flag.Duration("frozen", 20*time.Second, "how long a State Manager is frozen")

// A message must be committed within 25 s although a State Manager is frozen. A
// loaded machine gets more: without what bounds it, most messages take minutes.
const frozenPatience = time.Minute

// These variables turn the test binary into a State Manager.
const (
	childProject   = "MANAGER_CHILD_PROJECT"
	childFirestore = "MANAGER_CHILD_FIRESTORE"
	childPubSub    = "MANAGER_CHILD_PUBSUB"
)

func TestMain(m *testing.M) {
	if os.Getenv(childProject) == "" {
		flag.Parse()
		if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == "2" {
			_ = parallel.Value.Set("4") // most tests wait for a clock and need no processor
		}
		os.Exit(m.Run())
	}
	if err := child(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child runs a State Manager until its parent ends.
func child() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // returns when the parent is gone
		cancel()
	}()
	c, err := connect.Open(ctx, connect.Config{
		Project: os.Getenv(childProject), FirestoreHost: os.Getenv(childFirestore), PubSubHost: os.Getenv(childPubSub),
	}, meter.New())
	if err != nil {
		return err
	}
	defer c.Close()
	m, err := manager.New(c, simclock.Real(), manager.Config{PlanUnregistered: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return m.Run(ctx)
}

// startProcess runs a State Manager in a process of its own until the test ends.
func (s *system) startProcess() *os.Process {
	s.t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childProject+"="+s.hosts.Project, childFirestore+"="+s.hosts.FirestoreHost, childPubSub+"="+s.hosts.PubSubHost)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT) // a frozen process does not see the end of its input
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("State Manager: %v", err)
		}
	})
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		s.t.Fatalf("the State Manager did not get ready: %v", err)
	}
	return cmd.Process
}

func (s *system) signal(p *os.Process, signal syscall.Signal) {
	s.t.Helper()
	if err := p.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// traffic sends orders and reports of drones, and times their commits.
type traffic struct {
	*system
	stop    context.CancelFunc
	senders sync.WaitGroup

	mu        sync.Mutex
	orders    map[domain.OrderID]time.Time // when each was accepted by Pub/Sub
	last      map[domain.DroneID]time.Time // of each drone's reports
	confirmed []invariant.Message          // by Pub/Sub
	stalest   time.Duration                // the greatest age of a drone's document
}

// drones of the traffic; every second one sets no ordering key.
const trafficDrones = 8

func (s *system) startTraffic() *traffic {
	ctx, cancel := context.WithCancel(s.t.Context())
	tr := &traffic{system: s, stop: cancel, orders: map[domain.OrderID]time.Time{}, last: map[domain.DroneID]time.Time{}}
	tr.senders.Go(func() {
		n := 0
		tr.every(ctx, 250*time.Millisecond, func() error { n++; return tr.sendOrder(domain.OrderID(fmt.Sprintf("O-%04d", n))) })
	})
	for i := range trafficDrones {
		id := domain.DroneID(fmt.Sprintf("D-%d", i))
		key := ""
		if i%2 == 0 {
			key = string(id)
		}
		tr.senders.Go(func() { tr.every(ctx, time.Second, func() error { return tr.sendReport(id, key) }) })
	}
	s.t.Cleanup(tr.end)
	return tr
}

// end stops the senders.
func (tr *traffic) end() {
	tr.stop()
	tr.senders.Wait()
}

func (tr *traffic) every(ctx context.Context, interval time.Duration, send func() error) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := send(); err != nil {
			tr.t.Error(err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (tr *traffic) sendOrder(id domain.OrderID) error {
	data, attrs, err := wire.EncodeOrder(orderRequest(id), wire.JSON)
	if err != nil {
		return err
	}
	message, err := tr.publish.Publish(context.Background(), pubsubio.TopicOrders, data, attrs, "").Wait(context.Background())
	if err != nil {
		return err
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.orders[id] = time.Now()
	tr.confirmed = append(tr.confirmed, invariant.Message{Topic: pubsubio.TopicOrders, ID: message, OrderID: id})
	return nil
}

func (tr *traffic) sendReport(id domain.DroneID, key string) error {
	now := time.Now().Truncate(time.Microsecond) // as Firestore stores it
	data, attrs, err := wire.EncodeTelemetry(domain.Telemetry{DroneID: id, Timestamp: now, Position: home, Battery: 90, Status: domain.DroneIdle}, wire.Protobuf)
	if err != nil {
		return err
	}
	message, err := tr.publish.Publish(context.Background(), pubsubio.TopicTelemetry, data, attrs, key).Wait(context.Background())
	if err != nil {
		return err
	}
	drone, err := tr.store.Drone(context.Background(), id)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.last[id] = now
	tr.confirmed = append(tr.confirmed, invariant.Message{Topic: pubsubio.TopicTelemetry, ID: message, DroneID: id, Timestamp: now})
	if err == nil { // it registers with its first report
		tr.stalest = max(tr.stalest, time.Since(drone.LastUpdate))
	}
	return nil
}

// awaitCommits waits until all that was sent is stored, and returns the longest time
// that an order took. The senders must have ended.
func (tr *traffic) awaitCommits() (slowest time.Duration) {
	tr.t.Helper()
	for id, sent := range tr.orders {
		emutest.Eventually(tr.t, "order "+string(id), func() error {
			document, err := tr.outside.Firestore.Doc("orders/" + string(id)).Get(tr.t.Context())
			if err == nil {
				slowest = max(slowest, document.CreateTime.Sub(sent))
			}
			return err
		})
	}
	for id, at := range tr.last {
		tr.awaitDrone(id, "last report", func(d domain.Drone) bool { return d.LastUpdate.Equal(at) })
	}
	return slowest
}

// F-ACK-01: a State Manager that is frozen, as by SIGSTOP or a host that hangs, keeps
// its connections and holds messages. They are committed by another one within 25 s,
// and when it thaws it does no harm. docs/operate.md has what was measured.
func TestManager_FrozenReplicaHoldsNothingForLong(t *testing.T) {
	longtest.Only(t, "a process is frozen for 20 s")
	t.Parallel()
	s := newSystem(t)
	frozen := s.startProcess()
	s.order("FIRST")
	s.awaitOrder("FIRST", domain.OrderPending)
	well, stopWell := s.startManager()
	tr := s.startTraffic()
	emutest.Eventually(t, "both State Managers work", func() error {
		settled := well.Meter.Settled()
		for _, topic := range []string{pubsubio.TopicTelemetry, pubsubio.TopicOrders} {
			if settled[meter.Settlement{Kind: topic, Outcome: meter.Applied}] == 0 {
				return fmt.Errorf("the second one has applied no message of %s", topic)
			}
		}
		return nil
	})

	s.signal(frozen, syscall.SIGSTOP)
	began := time.Now()
	thaw := time.NewTimer(*frozenFor)
	<-thaw.C
	tr.end()
	slowest := tr.awaitCommits()
	t.Logf("frozen for %s: %d orders, the slowest took %s; the oldest document of a drone was %s old",
		time.Since(began).Round(time.Second), len(tr.orders), slowest.Round(100*time.Millisecond), tr.stalest.Round(100*time.Millisecond))
	if slowest > frozenPatience || tr.stalest > frozenPatience {
		t.Errorf("the frozen State Manager delayed an order by %s, a report by %s", slowest, tr.stalest)
	}

	s.signal(frozen, syscall.SIGCONT)
	stopWell()
	s.order("THAWED") // the thawed one works alone
	s.awaitOrder("THAWED", domain.OrderPending)
	s.awaitQuiet()
	h, err := fleethistory.Documents(t.Context(), s.store)
	if err != nil {
		t.Fatal(err)
	}
	h.Confirmed = tr.confirmed
	h.PlansUnregistered = true
	for _, v := range invariant.Check(h).Violations {
		t.Error(v)
	}
}
