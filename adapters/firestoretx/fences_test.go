package firestoretx_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// cycles is a fleet whose depots have real locks, as the optimizer takes them.
type cycles struct {
	*fleet
	clients *connect.Clients
	locks   lock.Store
	drones  int
}

func newCycles(t *testing.T) *cycles {
	t.Helper()
	return newCyclesIn(t, connect.LockStore{})
}

// newCyclesIn is newCycles with the locks in a store of their own.
func newCyclesIn(t *testing.T, store connect.LockStore) *cycles {
	t.Helper()
	clients := emutest.Clients(t)
	clients.LockStore = store
	locks, err := clients.Locks(simclock.Real(), emutest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{client: clients.Firestore, now: time.Now().UTC().Truncate(time.Microsecond)}
	cfg := firestoretx.Config{PlanUnregistered: true, Now: func() time.Time { return f.now }}
	if store.Set() {
		cfg.Counters = locks
	}
	f.Store = firestoretx.New(f.client, cfg)
	f.applier = f.NewTelemetryApplier()
	t.Cleanup(func() {
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &cycles{fleet: f, clients: clients, locks: locks}
}

// begin takes the lock of a depot's cycle and gives it back; its fence stays.
func (c *cycles) begin(t *testing.T, id domain.DepotID) string {
	t.Helper()
	h, ok, err := lock.TryAcquire(t.Context(), c.locks, domain.CycleLockKey(id))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return string(h.Fence())
}

// next is a decision about an idle drone of the depot and an order that waits, both
// new.
func (c *cycles) next(t *testing.T, id domain.DepotID, fence string) domain.Decision {
	t.Helper()
	c.drones++
	drone, order := domain.DroneID(fmt.Sprint("D", c.drones)), domain.OrderID(fmt.Sprint("O", c.drones))
	if err := c.Setup(t.Context(), nil, nil, []domain.Drone{{ID: drone, HomeDepotID: id}}); err != nil {
		t.Fatal(err)
	}
	c.mustReport(t, idle(drone, c.now))
	c.mustOrder(t, order)
	d := c.decision(domain.DecisionID(fmt.Sprint("DEC-", c.drones)), drone, order)
	d.DepotID, d.Fence = id, fence
	return d
}

func (c *cycles) expect(t *testing.T, d domain.Decision, want policy.Reason) {
	t.Helper()
	if e := c.assign(t, d); e.Reason != string(want) || (want == "") != (e.Outcome == domain.OutcomeApplied) {
		t.Errorf("decision with fence %s: %s %s, %s; want %q", d.Fence, e.Outcome, e.Reason, e.Detail, want)
	}
}

// F-DEC-07: one forged decision must not stop a depot for ever.
func TestStore_ForgedFenceIsRefusedAndTheNextRealDecisionApplied(t *testing.T) {
	forgedFenceIsRefused(t, newCycles(t))
}

func forgedFenceIsRefused(t *testing.T, c *cycles) {
	t.Helper()
	c.expect(t, c.next(t, depot.ID, "000000000000001"), policy.ReasonFenceUnknown) // there was no cycle yet
	c.expect(t, c.next(t, depot.ID, c.begin(t, depot.ID)), "")
	c.expect(t, c.next(t, depot.ID, "999999999999999"), policy.ReasonFenceUnknown)
	c.expect(t, c.next(t, depot.ID, "9999999999999999999"), policy.ReasonFenceUnknown) // beyond the range of locks
	c.expect(t, c.next(t, depot.ID, "000000000000002"), policy.ReasonFenceUnknown)     // a guess
	second := c.begin(t, depot.ID)
	c.expect(t, c.next(t, depot.ID, second), "")
	c.expect(t, c.next(t, depot.ID, "000000000000001"), policy.ReasonStaleFence)
	c.expect(t, c.next(t, "DEPOT-2", second), policy.ReasonFenceUnknown) // another depot's
	if fences, err := c.Fences(t.Context()); err != nil || len(fences) != 1 || fences[depot.ID] != second {
		t.Errorf("stored %v, %v", fences, err)
	}
}

// F-DEC-07: the lock's counter is read once for a cycle, not for each decision.
func TestStore_ReadsTheFenceCounterOncePerCycle(t *testing.T) {
	c := newCycles(t)
	cost := func(d domain.Decision, want policy.Reason) meter.Firestore {
		t.Helper()
		before := c.clients.Meter.FirestoreTotals()
		c.expect(t, d, want)
		after := c.clients.Meter.FirestoreTotals()
		return meter.Firestore{RPCs: after.RPCs - before.RPCs, Reads: after.Reads - before.Reads, Writes: after.Writes - before.Writes}
	}
	for cycle := range 2 {
		fence := c.begin(t, depot.ID)
		first, second := c.next(t, depot.ID, fence), c.next(t, depot.ID, fence)
		homeless := c.next(t, depot.ID, fence)
		homeless.DepotID = "" // of its drone's home, then
		for _, tt := range []struct {
			what     string
			decision domain.Decision
			reason   policy.Reason
			want     meter.Firestore // for one order
		}{
			{"the first decision", first, "", meter.Firestore{RPCs: 4, Reads: 6, Writes: 8}},
			{"the second decision", second, "", meter.Firestore{RPCs: 3, Reads: 4, Writes: 7}},
			{"a decision that names no depot", homeless, "", meter.Firestore{RPCs: 4, Reads: 5, Writes: 7}},
			{"a decision that has its outcome", first, "", meter.Firestore{RPCs: 3, Reads: 4}},
			{"a forged decision", c.next(t, depot.ID, "77777"), policy.ReasonFenceUnknown, meter.Firestore{RPCs: 4, Reads: 6, Writes: 1}},
		} {
			if got := cost(tt.decision, tt.reason); got != tt.want {
				t.Errorf("cycle %d: %s cost %+v, want %+v", cycle, tt.what, got, tt.want)
			}
		}
	}
}

// F-DEC-07: decisions made outside any cycle pass only if that is configured.
func TestStore_TakesUnfencedDecisionsOnlyIfConfigured(t *testing.T) {
	c := newCycles(t)
	c.expect(t, c.next(t, depot.ID, ""), policy.ReasonFenceMissing)
	c.Store = firestoretx.New(c.client, firestoretx.Config{PlanUnregistered: true, Now: func() time.Time { return c.now }, AllowUnfenced: true})
	c.expect(t, c.next(t, depot.ID, ""), "")
	if control := c.control(t); len(control) != 0 {
		t.Errorf("a decision without a fence stored %v", control)
	}
}

// F-DEC-07: another tool may give a drone a home that no depot can be.
func TestStore_NoLockCanBeOfAnIllegalDepot(t *testing.T) {
	c := newCycles(t)
	for i, home := range []domain.DepotID{"a/b", "..", "__x__", "a//b"} {
		d := c.next(t, depot.ID, "000000000000001")
		d.DepotID = ""
		if err := c.Setup(t.Context(), nil, nil, []domain.Drone{{ID: d.DroneID, HomeDepotID: home}}); err != nil {
			t.Fatal(i, err)
		}
		c.expect(t, d, policy.ReasonFenceUnknown)
	}
}

// F-DEC-08: the fences that an earlier version applied count after an upgrade, and
// again after a rollback to it and another upgrade.
func TestStore_FencesOfEarlierVersionsCount(t *testing.T) {
	c := newCycles(t)
	earlier := func(fence string) {
		t.Helper()
		c.set(t, "control/decisions", map[string]any{"fences": map[string]any{string(depot.ID): fence, "_": "000000000000077"}})
	}
	var fences []string
	for range 5 {
		fences = append(fences, c.begin(t, depot.ID))
	}
	earlier(fences[2])
	c.expect(t, c.next(t, depot.ID, fences[1]), policy.ReasonStaleFence)
	c.expect(t, c.next(t, depot.ID, fences[2]), "")
	c.expect(t, c.next(t, depot.ID, fences[3]), "")
	earlier(fences[4])
	c.expect(t, c.next(t, depot.ID, fences[2]), policy.ReasonStaleFence)
	c.expect(t, c.next(t, depot.ID, c.begin(t, depot.ID)), "")
	stored, err := c.Fences(t.Context())
	if err != nil || len(stored) != 2 || stored[depot.ID] != "000000000000006" || stored[""] != "000000000000077" {
		t.Errorf("stored %v, %v", stored, err)
	}
}

// F-DEC-07: a fleet whose earlier version applied a forged fence works again with the
// first decision of the next cycle; only the newest holder may decide until then.
func TestStore_AppliedForgedFenceIsRepairedByTheNextCycle(t *testing.T) {
	c := newCycles(t)
	first, second := c.begin(t, depot.ID), c.begin(t, depot.ID)
	const forged = "9999999999999999999"
	c.set(t, "control/decisions", map[string]any{"fences": map[string]any{string(depot.ID): forged, "DEPOT-2": "000000000000005"}})
	c.expect(t, c.next(t, depot.ID, forged), policy.ReasonFenceUnknown)
	c.expect(t, c.next(t, depot.ID, first), policy.ReasonStaleFence)
	c.expect(t, c.next(t, depot.ID, second), "")
	// A version that is rolled back to finds no forged fence either.
	doc, err := c.client.Doc("control/decisions").Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]any{string(depot.ID): second, "DEPOT-2": "000000000000005"}; fmt.Sprint(doc.Data()["fences"]) != fmt.Sprint(want) {
		t.Errorf("the map holds %v, want %v", doc.Data()["fences"], want)
	}
	third, fourth := c.begin(t, depot.ID), c.begin(t, depot.ID)
	c.expect(t, c.next(t, depot.ID, third), "") // though the next cycle has begun
	c.expect(t, c.next(t, depot.ID, fourth), "")
	c.expect(t, c.next(t, depot.ID, forged), policy.ReasonFenceUnknown)
	c.expect(t, c.next(t, depot.ID, third), policy.ReasonStaleFence)
}
