package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/gateway"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// bench is gateways with one clock, and what they say of sessions.
type bench struct {
	t       *testing.T
	clients *connect.Clients
	clock   *clockwork.FakeClock

	mu   sync.Mutex
	said []domain.LinkState
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, clients: emutest.Clients(t), clock: clockwork.NewFakeClockAt(time.Now().Truncate(time.Microsecond))}
	if err := pubsubio.Ensure(t.Context(), b.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	following := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		_ = pubsubio.FollowLinks(t.Context(), b.clients.PubSub, "test", emutest.Log(t), func() { close(following) }, func(s domain.LinkState) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.said = append(b.said, s)
		})
	})
	t.Cleanup(running.Wait)
	<-following
	return b
}

// core returns a gateway that follows nothing.
func (b *bench) core() *gateway.Gateway {
	publisher := pubsubio.NewPublisher(b.clients.PubSub)
	b.t.Cleanup(publisher.Stop)
	g := gateway.New(publisher, firestoretx.New(b.clients.Firestore, firestoretx.Config{}), b.clock, gateway.Config{}, emutest.Log(b.t))
	b.t.Cleanup(g.Rest)
	return g
}

// gateway starts a gateway.
func (b *bench) gateway() *gateway.Gateway {
	b.t.Helper()
	g := b.core()
	ready := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { g.Run(b.t.Context(), b.clients.PubSub, uuid.NewString(), func() { close(ready) }) })
	b.t.Cleanup(running.Wait)
	<-ready
	return g
}

// await waits until the last of what was said about a drone has these statuses.
func (b *bench) await(id domain.DroneID, want ...domain.LinkStatus) {
	b.t.Helper()
	emutest.Eventually(b.t, fmt.Sprintf("%v of %s", want, id), func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		var got []domain.LinkStatus
		for _, s := range b.said {
			if s.DroneID == id {
				got = append(got, s.Status)
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

// awaitAny waits until something was said about a drone.
func (b *bench) awaitAny(id domain.DroneID, what domain.LinkStatus) {
	b.t.Helper()
	emutest.Eventually(b.t, fmt.Sprintf("%s of %s", what, id), func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !slices.ContainsFunc(b.said, func(s domain.LinkState) bool { return s.DroneID == id && s.Status == what }) {
			return fmt.Errorf("%v", b.said)
		}
		return nil
	})
}

// outlet keeps what a drone is told.
type outlet struct {
	mu   sync.Mutex
	told []dronelink.Message
}

// Send implements dronelink.Outlet.
func (o *outlet) Send(m dronelink.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = append(o.told, m)
	return nil
}

// Close implements dronelink.Outlet.
func (o *outlet) Close(*dronelink.Refusal) {}

// has reports whether a message is among those told.
func (o *outlet) has(what func(dronelink.Message) bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.told, what)
}

func (b *bench) open(g *gateway.Gateway, id domain.DroneID) (dronelink.Session, *outlet) {
	b.t.Helper()
	out := &outlet{}
	s, err := g.Open(b.t.Context(), dronelink.Identity{Drone: id}, dronelink.Hello{Drone: id}, out)
	if err != nil {
		b.t.Fatal(err)
	}
	return s, out
}

// F-GW-05: a session that ends without goodbye is lost after five seconds, and restored when
// its drone is back at any gateway; a drone that says goodbye or comes back is not missed.
func TestGateway_SaysWhichDronesAreLost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	here, there := b.gateway(), b.gateway()

	leaves, _ := b.open(here, "LEAVES")
	leaves.Goodbye()
	returns, _ := b.open(here, "RETURNS")
	returns.Close(nil)
	<-returns.Ended()
	b.open(there, "RETURNS")
	lost, _ := b.open(here, "LOST")
	lost.Close(nil)
	<-lost.Ended()
	<-leaves.Ended()
	b.await("RETURNS", domain.LinkOpened, domain.LinkOpened)
	b.await("LOST", domain.LinkOpened)
	emutest.Eventually(t, "the first gateway hears of the return", func() error {
		if here.Misses("RETURNS") {
			return errors.New("it waits for the drone")
		}
		return nil
	})
	b.clock.Advance(4 * time.Second)
	b.await("LOST", domain.LinkOpened)
	b.clock.Advance(time.Second)
	b.await("LOST", domain.LinkOpened, domain.LinkLost)
	b.open(there, "LOST")
	// A gateway that has not heard of the loss says OPENED, and the one that had the session says RESTORED.
	b.awaitAny("LOST", domain.LinkRestored)
	b.await("LEAVES", domain.LinkOpened)
	b.await("RETURNS", domain.LinkOpened, domain.LinkOpened)
}

// F-GW-02: the newer session ends the older also at another gateway, which tells its drone.
func TestGateway_EndsTheOlderSessionElsewhere(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	older, told := b.open(b.gateway(), "D-1")
	b.clock.Advance(time.Millisecond)
	newer, _ := b.open(b.gateway(), "D-1")
	<-older.Ended()
	if why := older.Why(); why == nil || why.Reason != dronelink.Superseded {
		t.Errorf("ended by %v", why)
	}
	if !told.has(func(m dronelink.Message) bool { return m.Refusal != nil && m.Refusal.Reason == dronelink.Superseded }) {
		t.Error("the drone was not told")
	}
	b.clock.Advance(time.Minute)
	b.await("D-1", domain.LinkOpened, domain.LinkOpened)
	select {
	case <-newer.Ended():
		t.Error("the newer session has ended too")
	default:
	}
}

// F-GW-05: State Managers note in the drone's document that its link is lost, in whatever order
// and however often they hear of it. That makes no drone, no event and no report.
func TestManager_NotesLostLinks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m, err := manager.New(b.clients, simclock.Real(), manager.Config{}, emutest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	at := time.Now().Truncate(time.Microsecond)
	report := domain.Telemetry{DroneID: "D-1", Timestamp: at, Position: domain.Position{Lat: 48, Lon: 2}, Battery: 90, Status: domain.DroneIdle}
	data, attrs, err := wire.EncodeTelemetry(report, wire.Protobuf)
	b.publish(pubsubio.TopicTelemetry, data, attrs, err)
	var before domain.Drone
	emutest.Eventually(t, "the drone", func() (err error) { before, err = m.Store.Drone(t.Context(), "D-1"); return err })
	say := func(id domain.DroneID, status domain.LinkStatus, after time.Duration) {
		data, attrs, err := wire.EncodeLinkState(domain.LinkState{DroneID: id, Session: "s", Status: status, At: at.Add(after)}, wire.Protobuf)
		b.publish(pubsubio.TopicLinks, data, attrs, err)
	}
	await := func(want time.Time) {
		t.Helper()
		emutest.Eventually(t, "its link", func() error {
			d, err := m.Store.Drone(t.Context(), "D-1")
			if err == nil && !d.LinkLostAt.Equal(want) {
				err = fmt.Errorf("lost at %s, want %s", d.LinkLostAt, want)
			}
			return err
		})
	}
	say("NOBODY", domain.LinkLost, 0)
	say("D-1", domain.LinkLost, time.Second)
	await(at.Add(time.Second))
	say("D-1", domain.LinkRestored, 3*time.Second)
	await(time.Time{})
	say("D-1", domain.LinkLost, 2*time.Second) // late
	say("D-1", domain.LinkLost, time.Second)   // again
	say("D-1", domain.LinkLost, 4*time.Second)
	await(at.Add(4 * time.Second))
	say("D-1", domain.LinkOpened, 5*time.Second) // of no meaning here
	say("D-1", domain.LinkLost, 6*time.Second)
	await(at.Add(6 * time.Second))
	after, err := m.Store.Drone(t.Context(), "D-1")
	if err != nil || after.Revision != before.Revision || after.Status != before.Status || !after.SeenAt.Equal(before.SeenAt) {
		t.Errorf("the drone was %+v and is %+v, %v", before, after, err)
	}
	if _, err := m.Store.Drone(t.Context(), "NOBODY"); !errors.Is(err, firestoretx.ErrNotFound) {
		t.Errorf("a lost link has made a drone: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func (b *bench) publish(topic string, data []byte, attrs map[string]string, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	publisher := pubsubio.NewPublisher(b.clients.PubSub)
	defer publisher.Stop()
	if _, err := publisher.Publish(b.t.Context(), topic, data, attrs, "D-1").Wait(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}
