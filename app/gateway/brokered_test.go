package gateway_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/gateway"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// brokered starts a gateway for the drones of a broker; stop ends it.
func (b *bench) brokered() (g *gateway.Brokered, stop func()) {
	b.t.Helper()
	g = gateway.NewBrokered(b.core())
	ctx, cancel := context.WithCancel(b.t.Context())
	var running sync.WaitGroup
	running.Go(func() { g.Follow(ctx, b.clients.PubSub, uuid.NewString(), time.Minute) })
	stop = func() { cancel(); running.Wait() }
	b.t.Cleanup(stop)
	return g, stop
}

// linked has the broker say something of a drone's connection, at the clock's time.
func (b *bench) linked(g *gateway.Brokered, id domain.DroneID, session string, status domain.LinkStatus) {
	b.clock.Advance(time.Millisecond)
	g.Linked(domain.LinkState{DroneID: id, Session: session, Status: status, At: b.clock.Now()})
}

// stopped waits until a gateway has stopped, and calls meanwhile now and then.
func (b *bench) stopped(stop, meanwhile func()) {
	b.t.Helper()
	done := make(chan struct{})
	go func() { stop(); close(done) }()
	emutest.Eventually(b.t, "stopped", func() error {
		meanwhile()
		select {
		case <-done:
			return nil
		default:
			return errors.New("it waits")
		}
	})
}

// F-GW-05, F-GW-06: a drone behind a broker is lost five seconds after the broker says that its
// connection is gone, unless it has connected again. Its connections may all have one session.
func TestBrokered_SaysWhichDronesAreLost(t *testing.T) {
	t.Parallel()
	const opened, lost = domain.LinkOpened, domain.LinkLost
	b := newBench(t)
	g, _ := b.brokered()
	for _, id := range []domain.DroneID{"RETURNS", "LOST", "SWAPPED"} {
		b.linked(g, id, "1", opened)
		b.await(id, opened)
	}
	b.linked(g, "SWAPPED", "2", opened) // the will of the connection before comes late
	for _, id := range []domain.DroneID{"RETURNS", "LOST", "SWAPPED"} {
		b.linked(g, id, "1", lost)
	}
	b.linked(g, "RETURNS", "1", opened)
	b.await("RETURNS", opened, opened)
	b.clock.Advance(4 * time.Second)
	b.await("LOST", opened)
	b.clock.Advance(time.Second)
	b.await("LOST", opened, lost)
	b.await("RETURNS", opened, opened)
	b.await("SWAPPED", opened, opened)
}

// F-GW-05: a drone that is back at another gateway is not lost, and one that was lost is restored
// by a gateway that has heard of it. A gateway that stops waits for its lost drones.
func TestBrokered_HearsOtherGateways(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	there, _ := b.brokered()
	here, stop := b.brokered()
	b.linked(here, "ROAMS", "1", domain.LinkLost)
	b.stopped(stop, func() { b.linked(there, "ROAMS", "1", domain.LinkOpened) }) // by far not 5 s
	here, stop = b.brokered()
	b.linked(here, "LOST", "1", domain.LinkLost)
	b.stopped(stop, func() { b.clock.Advance(time.Second) })
	b.await("LOST", domain.LinkLost)
	emutest.Eventually(t, "there has heard it", func() error {
		b.linked(there, "LOST", "2", domain.LinkOpened)
		b.mu.Lock()
		defer b.mu.Unlock()
		if !slices.ContainsFunc(b.said, func(s domain.LinkState) bool { return s.DroneID == "LOST" && s.Status == domain.LinkRestored }) {
			return errors.New("not restored")
		}
		if slices.ContainsFunc(b.said, func(s domain.LinkState) bool { return s.DroneID == "ROAMS" && s.Status == domain.LinkLost }) {
			t.Error("a drone that is connected counts as lost")
		}
		return nil
	})
}

// F-GW-05: a gateway that has heard nothing of a drone that was lost finds it in its document.
func TestBrokered_FindsALostDroneInItsDocument(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lost := b.clock.Now().Add(-time.Minute)
	drone := domain.Drone{ID: "D-1", Status: domain.DroneIdle, LastUpdate: lost, LinkLostAt: lost, LinkChangedAt: lost}
	if err := firestoretx.New(b.clients.Firestore, firestoretx.Config{}).Setup(t.Context(), nil, nil, []domain.Drone{drone}); err != nil {
		t.Fatal(err)
	}
	g, _ := b.brokered()
	b.linked(g, "D-1", "1", domain.LinkOpened)
	b.await("D-1", domain.LinkRestored)
}
