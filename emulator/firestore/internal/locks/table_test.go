package locks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// cells is shared state that is protected only by the lock table.
type cells struct {
	table *Table
	value [4]atomic.Int64
	busy  [4]atomic.Int32 // writers inside
}

func name(i int) string { return fmt.Sprintf("cell%d", i) }

// all is the range of a scan over every cell.
type all struct{}

func (all) Touches(Change) bool { return true }

// Random owners read, scan and write a few cells concurrently. None waits forever,
// writers are alone, and what an owner has read stays unchanged until the owner ends
// or is aborted (E-TX-08, E-TX-11).
func TestTable_IsolatesRandomOwners(t *testing.T) {
	c := &cells{table: NewTable(clockwork.NewRealClock(), Limits{})}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const workers, rounds = 12, 300
	var committed, wounded atomic.Int64
	var group sync.WaitGroup
	for id := range workers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(id)))
			for range rounds {
				age := uint64(0)
				for {
					o := NewOwner(age)
					err := c.attempt(ctx, o, random)
					age = c.table.Age(o)
					c.table.End(o)
					if err == nil {
						committed.Add(1)
						break
					}
					if !errors.Is(err, ErrWounded) {
						t.Errorf("an attempt failed: %v", err)
						return
					}
					wounded.Add(1)
				}
			}
		})
	}
	group.Wait()
	if got := committed.Load(); got != workers*rounds {
		t.Errorf("%d of %d owners committed", got, workers*rounds)
	}
	t.Logf("%d commits, %d wounds, %+v", committed.Load(), wounded.Load(), c.table.Stats())
	if n := len(c.table.entries) + len(c.table.ranges) + len(c.table.waiting) + len(c.table.committing) + len(c.table.scanQueue); n != 0 {
		t.Errorf("%d entries are left in the table", n)
	}
}

// attempt reads some cells, or all by a scan, writes some, and checks that those it
// read have not changed meanwhile.
func (c *cells) attempt(ctx context.Context, o *Owner, random *rand.Rand) error {
	read := map[int]int64{}
	if random.IntN(5) == 0 {
		if _, err := c.table.ShareRange(ctx, o, all{}); err != nil {
			return err
		}
		for i := range c.value {
			read[i] = c.value[i].Load()
		}
	}
	for range random.IntN(3) {
		i := random.IntN(len(c.value))
		if err := c.table.Share(ctx, o, []string{name(i)}); err != nil {
			return err
		}
		if _, again := read[i]; !again {
			read[i] = c.value[i].Load()
		}
	}
	var names []string
	var written []int
	for _, i := range random.Perm(len(c.value))[:random.IntN(3)] {
		written = append(written, i)
		names = append(names, name(i))
	}
	err := c.table.Exclude(ctx, o, names, func() []Change {
		changes := make([]Change, len(names))
		for i := range names {
			changes[i].Name = names[i]
		}
		return changes
	})
	if err != nil {
		return err
	}
	// The owner can no longer be wounded, so what it read must be unchanged.
	for i, seen := range read {
		if now := c.value[i].Load(); now != seen {
			return fmt.Errorf("cell %d changed from %d to %d under its reader", i, seen, now)
		}
	}
	for _, i := range written {
		if c.busy[i].Add(1) != 1 {
			return fmt.Errorf("two writers of cell %d", i)
		}
		c.value[i].Add(1)
	}
	for _, i := range written {
		c.busy[i].Add(-1)
	}
	return nil
}

// Requests that wait for the same name are granted oldest first (E-TX-08).
func TestTable_GrantsOldestFirst(t *testing.T) {
	table := NewTable(clockwork.NewRealClock(), Limits{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	holder := NewOwner(0)
	if err := table.Share(ctx, holder, []string{"d"}); err != nil {
		t.Fatal(err)
	}
	const waiters = 20
	order := make(chan uint64, waiters)
	owners := make([]*Owner, waiters)
	var group sync.WaitGroup
	for i := range owners {
		owners[i] = NewOwner(uint64(2 + (i*7)%waiters)) // ages in a mixed order
		group.Go(func() {
			if err := table.Exclude(ctx, owners[i], []string{"d"}, nothing); err != nil {
				t.Errorf("owner %d: %v", i, err)
				return
			}
			order <- owners[i].age
			table.End(owners[i])
		})
	}
	if err := table.AwaitWaiting(ctx, waiters); err != nil {
		t.Fatal(err)
	}
	table.End(holder)
	group.Wait()
	close(order)
	last := uint64(0)
	for age := range order {
		if age < last {
			t.Errorf("age %d was served after age %d", age, last)
		}
		last = age
	}
}

func nothing() []Change { return nil }

// A new reader of a hot name without other locks lets the holder finish first. One
// with locks does not wait, so yielding cannot deadlock.
func TestTable_NewReaderYieldsOnHotName(t *testing.T) {
	table := NewTable(clockwork.NewRealClock(), Limits{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d := []string{"d"}
	a, b := NewOwner(0), NewOwner(0)
	for _, o := range []*Owner{a, b} {
		if err := table.Share(ctx, o, d); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Exclude(ctx, a, d, nothing); err != nil { // wounds b
		t.Fatal(err)
	}
	table.End(a)
	if err := table.Exclude(ctx, b, d, nothing); !errors.Is(err, ErrWounded) { // b has lost its upgrade: d is hot
		t.Fatalf("b: %v, want wounded", err)
	}
	holder, busy := NewOwner(0), NewOwner(0)
	if err := table.Share(ctx, holder, d); err != nil {
		t.Fatal(err)
	}
	if err := table.Share(ctx, busy, []string{"other"}); err != nil {
		t.Fatal(err)
	}
	if err := table.Share(ctx, busy, d); err != nil {
		t.Fatal(err)
	}
	waits := table.Stats().Waits
	if waits != 0 {
		t.Errorf("%d waits, want none by owners with locks", waits)
	}
	table.End(busy)
	done := make(chan error, 1)
	go func() { done <- table.Share(ctx, NewOwner(0), d) }()
	if err := table.AwaitWaiting(ctx, 1); err != nil {
		t.Fatal(err)
	}
	table.End(holder)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The time that a holder may block others counts from when the first of them had to
// wait (E-TX-12). Requests that only yield do not count.
func TestTable_YieldingIsNotBlocking(t *testing.T) {
	for _, row := range []struct {
		name              string
		yielding, writing time.Duration // how long each has waited when the limits are checked
		aborted           bool
	}{
		{"both for an instant", time.Millisecond, time.Millisecond, false},
		{"the writer for less than the limit", 30 * time.Second, 19 * time.Second, false},
		{"the writer for the limit", 30 * time.Second, 20 * time.Second, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			clock := clockwork.NewFakeClock()
			table := NewTable(clock, Limits{Wait: time.Hour, Hold: 20 * time.Second})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			d := []string{"d"}
			table.hot["d"] = time.Now().Add(time.Hour)
			holder, writer := NewOwner(1), NewOwner(2)
			if err := table.Share(ctx, holder, d); err != nil {
				t.Fatal(err)
			}
			yielding := &request{owner: NewOwner(3), names: d, mayYield: true, done: make(chan error, 1)}
			yielding.deadline = clock.Now().Add(time.Hour)
			table.mu.Lock()
			if !table.tryGrant(yielding) {
				t.Error("a new reader did not yield to the holder of a hot name")
			}
			yielding.yieldTimer.Stop() // it runs on real time
			table.enqueue(yielding)
			table.unlock()

			clock.Advance(row.yielding - row.writing)
			done := make(chan error, 1)
			go func() { done <- table.Exclude(ctx, writer, d, nothing) }()
			if err := table.AwaitWaiting(ctx, 2); err != nil {
				t.Fatal(err)
			}
			clock.Advance(row.writing)
			table.Tick()
			if err := table.Err(holder); errors.Is(err, ErrLockDeadline) != row.aborted {
				t.Errorf("the holder: %v", err)
			}
			table.End(holder)
			if err := <-done; err != nil {
				t.Error(err)
			}
			table.End(writer)
			if err := <-yielding.done; err != nil {
				t.Error(err)
			}
		})
	}
}
