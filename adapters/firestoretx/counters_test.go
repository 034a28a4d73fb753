package firestoretx_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

// lockStore is the address of a running store, ready for locks.
func lockStore(t *testing.T, url string) connect.LockStore {
	t.Helper()
	store, err := connect.ParseLockStore(url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

// onEachStore runs a test with the depots' locks in Redis and in PostgreSQL.
func onEachStore(t *testing.T, test func(*testing.T, *cycles, *storeserver.Server)) {
	for name, start := range map[string]func(*testing.T) *storeserver.Server{
		"redis":    func(t *testing.T) *storeserver.Server { return storeserver.Redis(t) },
		"postgres": func(t *testing.T) *storeserver.Server { return storeserver.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			test(t, newCyclesIn(t, lockStore(t, server.URL)), server)
		})
	}
}

// F-DEC-07: with the counter outside Firestore, forged and stale fences are refused as
// with the counter in it.
func TestStore_CounterOutside_RefusesForgedAndStaleFences(t *testing.T) {
	onEachStore(t, func(t *testing.T, c *cycles, _ *storeserver.Server) { forgedFenceIsRefused(t, c) })
}

// F-DEC-07: while the store of the locks is down, a decision that needs its counter is an
// error that can be retried, and changes nothing. One whose fence was applied needs none.
func TestStore_CounterOutside_StoreDown(t *testing.T) {
	onEachStore(t, func(t *testing.T, c *cycles, server *storeserver.Server) {
		first := c.begin(t, depot.ID)
		c.expect(t, c.next(t, depot.ID, first), "")
		second := c.begin(t, depot.ID)
		forged, known, needs := c.next(t, depot.ID, "000000000000009"), c.next(t, depot.ID, first), c.next(t, depot.ID, second)
		server.Kill()
		c.expect(t, known, "")
		for _, d := range []domain.Decision{forged, needs} {
			if entry, err := c.AssignMission(t.Context(), d, policy.Delivery{}); err == nil || !firestoretx.Retryable(err) {
				t.Errorf("fence %s: %+v, %v", d.Fence, entry, err)
			}
		}
		server.Restart()
		emutest.Eventually(t, "the decision", func() error {
			_, err := c.AssignMission(t.Context(), needs, policy.Delivery{})
			return err
		})
		c.expect(t, needs, "") // its recorded outcome
		c.expect(t, forged, policy.ReasonFenceUnknown)
	})
}

// F-DEC-07: without the tables of the locks nothing is known of the fences. The decision is
// retried until an operator has made them, not refused as forged.
func TestStore_CounterOutside_WithoutTables(t *testing.T) {
	store, err := connect.ParseLockStore(storeserver.Postgres(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	c := newCyclesIn(t, store)
	d := c.next(t, depot.ID, "000000000000001")
	if entry, err := c.AssignMission(t.Context(), d, policy.Delivery{}); err == nil || !firestoretx.Retryable(err) {
		t.Errorf("without tables: %+v, %v", entry, err)
	}
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.begin(t, depot.ID)
	c.expect(t, d, "")
	c.expect(t, c.next(t, "DEPOT\x00", "000000000000001"), policy.ReasonFenceUnknown) // no lock can have this key
}

// counters is a counter that a test sets, and that can act while it is read.
type counters struct {
	mu    sync.Mutex
	value lock.Fence
	reads int
	while func()
}

func (c *counters) HighestFence(context.Context, string) (lock.Fence, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	value := c.value
	if c.while != nil {
		c.while()
	}
	return value, nil
}

// F-DEC-02, F-DEC-07: a counter that was read before the next cycle's first decision was
// applied must not make that one look forged: the former holder would pass.
func TestStore_CounterOutside_OvertakenByTheNextCycle(t *testing.T) {
	c := newCycles(t)
	late, fresh := c.next(t, depot.ID, "000000000000005"), c.next(t, depot.ID, "000000000000006")
	next := firestoretx.New(c.client, firestoretx.Config{PlanUnregistered: true, Now: func() time.Time { return c.now }, Counters: &counters{value: "000000000000006"}})
	slow := &counters{value: "000000000000005"}
	slow.while = func() { // after the read, before the transaction
		slow.while, slow.value = nil, "000000000000006"
		if entry, err := next.AssignMission(t.Context(), fresh, policy.Delivery{}); err != nil || entry.Outcome != domain.OutcomeApplied {
			t.Errorf("%+v, %v", entry, err)
		}
	}
	c.Store = firestoretx.New(c.client, firestoretx.Config{PlanUnregistered: true, Now: func() time.Time { return c.now }, Counters: slow})
	c.expect(t, late, policy.ReasonStaleFence)
	if slow.reads != 2 {
		t.Errorf("the counter was read %d times, want 2", slow.reads)
	}
	if fences, err := c.Fences(t.Context()); err != nil || fences[depot.ID] != "000000000000006" {
		t.Errorf("stored %v, %v", fences, err)
	}
}

// A decision that is overtaken each time gives up with an error that is retried.
func TestStore_CounterOutside_OvertakenForEver(t *testing.T) {
	c := newCycles(t)
	moving := &counters{value: "000000000000001"}
	applied := 10
	moving.while = func() {
		applied++
		c.set(t, "control/"+string(depot.ID), map[string]any{"fence": fmt.Sprintf("%015d", applied)})
	}
	c.Store = firestoretx.New(c.client, firestoretx.Config{PlanUnregistered: true, Now: func() time.Time { return c.now }, Counters: moving})
	if entry, err := c.AssignMission(t.Context(), c.next(t, depot.ID, "000000000000001"), policy.Delivery{}); err == nil || !firestoretx.Retryable(err) {
		t.Errorf("%+v, %v", entry, err)
	}
	if moving.reads > 10 {
		t.Errorf("the counter was read %d times", moving.reads)
	}
}

// F-DEC-07: the counter is read once for a cycle, not for each decision.
func TestStore_CounterOutside_IsReadOncePerCycle(t *testing.T) {
	c := newCycles(t)
	reader := &counters{}
	c.Store = firestoretx.New(c.client, firestoretx.Config{PlanUnregistered: true, Now: func() time.Time { return c.now }, Counters: reader})
	for cycle := 1; cycle <= 3; cycle++ {
		reader.value = lock.Fence(fmt.Sprintf("%015d", cycle))
		for range 4 {
			c.expect(t, c.next(t, depot.ID, string(reader.value)), "")
		}
		if reader.reads != cycle {
			t.Errorf("after %d cycles the counter was read %d times", cycle, reader.reads)
		}
	}
}

// I1, F-DEC-07: a store that forgets its newest fences, such as a promoted replica, hands them out
// again. The depot goes on with the next cycle. A stale holder of a repeated fence cannot be told
// apart, but cannot assign what is already assigned.
func TestStore_CounterOutside_FencesRepeatAfterAFailover(t *testing.T) {
	primary := storeserver.Redis(t)
	c := newCyclesIn(t, lockStore(t, primary.URL))
	for range 3 {
		c.begin(t, depot.ID)
	}
	lost := c.begin(t, depot.ID)
	first := c.next(t, depot.ID, lost)
	c.expect(t, first, "")
	client := redis.NewClient(&redis.Options{Addr: primary.Addr(), DisableIdentity: true})
	defer client.Close()
	if err := client.FlushAll(t.Context()).Err(); err != nil { // of four fences none is left
		t.Fatal(err)
	}

	repeated := c.begin(t, depot.ID)
	c.expect(t, c.next(t, depot.ID, repeated), "") // at once, not after as many cycles as were lost
	for range 3 {
		repeated = c.begin(t, depot.ID)
	}
	if repeated != lost {
		t.Fatalf("fence %s, want %s again", repeated, lost)
	}
	c.expect(t, c.next(t, depot.ID, repeated), "")
	again := c.next(t, depot.ID, lost) // of the holder before the failover
	again.DroneID, again.OrderIDs = first.DroneID, first.OrderIDs
	again.Route = first.Route
	c.expect(t, again, policy.ReasonDroneNotIdle)
}

// F-DEC-07: a State Manager that looks for the locks elsewhere than the optimizer refuses
// every decision, and says why.
func TestStore_CounterOutside_MistakenStore(t *testing.T) {
	redisServer := storeserver.Redis(t)
	c := newCyclesIn(t, lockStore(t, redisServer.URL))
	fence := c.begin(t, depot.ID)
	here := firestoretx.New(c.client, firestoretx.Config{PlanUnregistered: true, Now: func() time.Time { return c.now }})
	entry, err := here.AssignMission(t.Context(), c.next(t, depot.ID, fence), policy.Delivery{})
	const want = `fence 000000000000001: the lock of depot "DEPOT-1" has handed out none; give optimizers and State Managers the same lock store`
	if err != nil || entry.Reason != string(policy.ReasonFenceUnknown) || entry.Detail != want {
		t.Errorf("%+v, %v", entry, err)
	}
	// The fleet changed to Redis, and one optimizer still takes the lock in Firestore.
	moved := c.next(t, depot.ID, "000000000000412")
	c.set(t, "control/"+string(depot.ID), map[string]any{"fence": "000000000000411"})
	c.expect(t, moved, policy.ReasonFenceUnknown)
	c.expect(t, c.next(t, depot.ID, fence), "") // the stored fence is of another sequence
}
