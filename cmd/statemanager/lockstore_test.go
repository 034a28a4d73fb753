package main_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/clitest"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/longtest"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

const optimizer = clitest.Program("optimizer")

// fenced is a fleet of the real binaries whose locks are in a store of their own.
type fenced struct {
	t      *testing.T
	hosts  connect.Config
	server *storeserver.Server
	store  *firestoretx.Store
	locks  lock.Store
	send   *pubsubio.Publisher
	drones int
}

var (
	north = domain.Depot{ID: "NORTH", Name: "North", Position: domain.Position{Lat: 5.6, Lon: -0.2}}
	near  = domain.Position{Lat: 5.61, Lon: -0.2}
)

func newFenced(t *testing.T, server *storeserver.Server) *fenced {
	t.Helper()
	f := &fenced{t: t, hosts: emutest.Hosts(t), server: server}
	clients := emutest.Connect(t, f.hosts)
	f.store = firestoretx.New(clients.Firestore, firestoretx.Config{})
	f.send = pubsubio.NewPublisher(clients.PubSub)
	t.Cleanup(f.send.Stop)
	address, err := connect.ParseLockStore(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, err = address.Migrate(t.Context())
	warehouse := domain.Warehouse{ID: "W1", Position: north.Position, ProductTypes: []string{"BLOOD"}, ColdStorage: true}
	err = errors.Join(err, pubsubio.Ensure(t.Context(), clients.PubSub),
		f.store.Setup(t.Context(), []domain.Depot{north}, []domain.Warehouse{warehouse}, nil))
	if err != nil {
		t.Fatal(err)
	}
	locks, stop, err := address.Open(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	f.locks = locks
	t.Cleanup(func() {
		if err := errors.Join(locks.Close(context.Background()), stop()); err != nil {
			t.Error(err)
		}
	})
	return f
}

// begin takes the lock of a cycle and gives it back; its fence stays.
func (f *fenced) begin() lock.Fence {
	f.t.Helper()
	h, free, err := lock.TryAcquire(f.t.Context(), f.locks, domain.CycleLockKey(north.ID))
	if err != nil || !free {
		f.t.Fatal(free, err)
	}
	if err := h.Close(); err != nil {
		f.t.Fatal(err)
	}
	return h.Fence()
}

// waits adds an idle drone and an order that waits.
func (f *fenced) waits() (domain.DroneID, domain.OrderID) {
	f.t.Helper()
	f.drones++
	drone, order := domain.DroneID(fmt.Sprint("D", f.drones)), domain.OrderID(fmt.Sprint("O", f.drones))
	ctx := f.t.Context()
	err := errors.Join(
		f.store.Setup(ctx, nil, nil, []domain.Drone{{ID: drone, HomeDepotID: north.ID, ConsumptionPerKm: 1}}),
		f.store.NewTelemetryApplier().Apply(ctx, []domain.Telemetry{{DroneID: drone, Timestamp: time.Now(), Position: north.Position, Battery: 90, Status: domain.DroneIdle}})[0],
		f.store.IngestOrder(ctx, domain.OrderRequest{ID: order, OrderContent: domain.OrderContent{
			Priority: domain.PriorityHigh, ProductType: "BLOOD", Pickup: &north.Position, Delivery: near,
		}}, time.Now()))
	if err != nil {
		f.t.Fatal(err)
	}
	return drone, order
}

// decides publishes a decision of its own and returns its id.
func (f *fenced) decides(fence lock.Fence) domain.DecisionID {
	f.t.Helper()
	drone, order := f.waits()
	d := domain.Decision{
		ID: domain.DecisionID("DEC-" + string(order)), CycleID: "C", DepotID: north.ID, Fence: string(fence), SnapshotTime: time.Now().Add(time.Minute),
		DroneID: drone, OrderIDs: []domain.OrderID{order}, EstimatedBatteryConsumption: 5, EstimatedDurationMinutes: 3,
		Route: []domain.Waypoint{
			{Type: domain.WaypointDepotStart, Position: north.Position},
			{Type: domain.WaypointWarehousePickup, OrderID: order, Position: north.Position},
			{Type: domain.WaypointHospitalDelivery, OrderID: order, Position: near},
			{Type: domain.WaypointDepotReturn, Position: north.Position},
		},
	}
	data, attrs, err := wire.EncodeDecision(d, wire.Protobuf)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.send.Publish(f.t.Context(), pubsubio.TopicDecisions, data, attrs, string(drone)).Wait(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	return d.ID
}

// judged waits until a decision is in the ledger, applied or refused for a reason.
func (f *fenced) judged(id domain.DecisionID, want policy.Reason) {
	f.t.Helper()
	var entry domain.LedgerEntry
	emutest.Eventually(f.t, "decision "+string(id), func() (err error) {
		entry, err = f.store.LedgerEntry(f.t.Context(), id)
		return err
	})
	if entry.Reason != string(want) || (want == "") != (entry.Outcome == domain.OutcomeApplied) {
		f.t.Errorf("decision %s with fence %s: %s %s, %s; want %q", id, entry.Fence, entry.Outcome, entry.Reason, entry.Detail, want)
	}
}

// onEachStore runs a test with the locks in Redis and in PostgreSQL, at the same time.
func onEachStore(t *testing.T, test func(*testing.T, *storeserver.Server)) {
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, storeserver.Redis(t))
	})
	t.Run("postgres", func(t *testing.T) {
		longtest.Only(t, "starts PostgreSQL")
		t.Parallel()
		test(t, storeserver.Postgres(t))
	})
}

// F-DEC-02, F-DEC-07, F-OPT-01: optimizer and State Manager share locks in Redis or PostgreSQL.
// Decisions are applied, stale and forged fences are refused, and decisions that come while the
// store is down are applied when it is back.
func TestLockStore_FencesDecisions(t *testing.T) {
	onEachStore(t, func(t *testing.T, server *storeserver.Server) {
		optimizer.Path(t) // a build takes longer than a drone may be silent
		f := newFenced(t, server)
		p := statemanager.Start(t, f.hosts, "serve", "--http-addr=127.0.0.1:0", "--lock="+f.server.URL)
		p.Find(p.Stderr, `"url":"`)

		stale := f.begin()
		_, order := f.waits()
		out, errs := optimizer.Run(t, f.hosts, 0, "once", "--lock="+f.server.URL, "--solve-limit=100ms")
		t.Logf("the optimizer printed %s%s", out, errs)
		emutest.Eventually(t, "the optimizer's decision", func() error {
			o, err := f.store.Order(t.Context(), order)
			if err == nil && o.Status != domain.OrderAssigned {
				err = fmt.Errorf("order is %+v", o)
			}
			return err
		})
		f.judged(f.decides(stale), policy.ReasonStaleFence)
		f.judged(f.decides("000000000000009"), policy.ReasonFenceUnknown)

		next := f.begin()
		f.server.Kill()
		waiting := f.decides(next)
		time.Sleep(500 * time.Millisecond) // while it is tried in vain
		if entry, err := f.store.LedgerEntry(t.Context(), waiting); err == nil {
			t.Errorf("without the store it was judged: %+v", entry)
		}
		f.server.Restart()
		f.judged(waiting, "")
		p.Interrupt()
	})
}

// L-END-03: the operators' commands show and break the locks of such a fleet; the break is
// on record. Without the store they fail in one line.
func TestLocks_ListShowBreakOnEachStore(t *testing.T) {
	onEachStore(t, func(t *testing.T, server *storeserver.Server) {
		f := newFenced(t, server)
		key := domain.CycleLockKey(north.ID)
		at := "--lock=" + f.server.URL
		says := func(want string, args ...string) {
			t.Helper()
			if out, _ := statemanager.Run(t, f.hosts, 0, append(args, at)...); !strings.Contains(out, want) {
				t.Errorf("%q printed %q, want %q", args, out, want)
			}
		}
		says("No lock is held.", "locks", "list")
		held, err := f.locks.Acquire(t.Context(), lock.AcquireRequest{Key: key, TTL: time.Hour})
		if err != nil || !held.OK {
			t.Fatal(held, err)
		}
		says(key, "locks", "list")
		says(string(held.Fence), "locks", "show", key)
		says("Broke "+key+": fence "+string(held.Fence), "locks", "break", key, "--reason=its holder hangs", "--by=ann")
		says("Nobody holds "+key, "locks", "show", key)
		if next := f.begin(); next <= held.Fence {
			t.Errorf("fence %s after %s", next, held.Fence)
		}
		breaks, err := f.store.LockBreaks(t.Context())
		if err != nil || len(breaks) != 1 || breaks[0].Key != key || breaks[0].BrokenBy != "ann" || breaks[0].Why != "its holder hangs" {
			t.Errorf("on record: %+v, %v", breaks, err)
		}
		f.server.Kill()
		statemanager.Refuses(t, f.hosts, 1, []string{"ServiceUnavailable"}, "locks", "list", at)
	})
}
