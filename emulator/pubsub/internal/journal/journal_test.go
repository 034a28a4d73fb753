package journal_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dronefleet/dronefleet/emulator/pubsub/internal/journal"
	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func reopen(t *testing.T, dir string, do func(*journal.Journal)) *journal.State {
	t.Helper()
	j, state, err := journal.Open(dir, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	if do != nil {
		do(j)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return state
}

func TestJournal_MessageGoesWithItsLastHold(t *testing.T) { // P-DUR-01
	dir := t.TempDir()
	reopen(t, dir, func(j *journal.Journal) {
		messages := []journal.Message{{ID: 1, Wire: []byte("a")}, {ID: 2, Stored: 7, Published: 5, Wire: []byte("b")}, {ID: 3}}
		if err := j.Publish(messages, []journal.Holds{{Holder: 10, IDs: []uint64{1, 2}}, {Holder: 11, IDs: []uint64{2}}}); err != nil {
			t.Fatal(err)
		}
		j.Settle(10, nil, nil, []uint64{1, 2})
		j.Settle(11, nil, []uint64{2}, nil)
	})
	state := reopen(t, dir, func(j *journal.Journal) { j.Settle(11, []uint64{2}, nil, nil) })
	if diff := cmp.Diff(map[uint64]journal.Message{2: {ID: 2, Stored: 7, Published: 5, Wire: []byte("b")}}, state.Messages); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[uint64][]journal.Held{11: {{ID: 2, Acked: true}}}, state.Holds); diff != "" {
		t.Error(diff)
	}
	if state.Boots != 2 {
		t.Errorf("opened %d times, want 2", state.Boots)
	}
	state = reopen(t, dir, func(j *journal.Journal) {
		if err := j.Apply(journal.Release(11)); err != nil {
			t.Error(err)
		}
	})
	if diff := cmp.Diff(map[uint64][]journal.Held{11: {{ID: 2}}}, state.Holds); diff != "" {
		t.Error(diff)
	}
	if state = reopen(t, dir, nil); len(state.Messages)+len(state.Holds) != 0 {
		t.Errorf("left over: %v", state)
	}
}

func TestJournal_ConcurrentPublishes(t *testing.T) { // P-DUR-01
	dir := t.TempDir()
	const writers, each = 16, 20
	reopen(t, dir, func(j *journal.Journal) {
		var wg sync.WaitGroup
		for w := range uint64(writers) {
			wg.Go(func() {
				for i := range uint64(each) {
					id := w*each + i + 1
					if err := j.Publish([]journal.Message{{ID: id}}, []journal.Holds{{Holder: 1, IDs: []uint64{id}}}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
	if state := reopen(t, dir, nil); len(state.Messages) != writers*each || len(state.Holds[1]) != writers*each {
		t.Errorf("%d messages, %d holds", len(state.Messages), len(state.Holds[1]))
	}
}

func TestJournal_Resources(t *testing.T) { // P-DUR-01
	dir := t.TempDir()
	reopen(t, dir, func(j *journal.Journal) {
		for _, r := range []journal.Resource{{Name: "a", Holder: 1, Config: []byte("x")}, {Name: "b", Holder: 2}, {Name: "a", Holder: 1, Config: []byte("y")}} {
			if err := j.Apply(journal.Put(journal.Topic, r)); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Apply(journal.Delete(journal.Topic, "b", 2)); err != nil {
			t.Fatal(err)
		}
	})
	state := reopen(t, dir, nil)
	want := map[journal.Kind][]journal.Resource{journal.Topic: {{Name: "a", Holder: 1, Config: []byte("y")}}}
	if diff := cmp.Diff(want, state.Resources); diff != "" || state.LastHolder != 2 {
		t.Error(diff, state.LastHolder)
	}
}

// A failed write is reported once when it happens, and again by Close, whose caller
// must not believe that everything was kept.
func TestJournal_ReportsFailedWrite(t *testing.T) { // P-DUR-01
	var told []error
	j, _, err := journal.Open(t.TempDir(), func(err error) { told = append(told, err) })
	if err != nil {
		t.Fatal(err)
	}
	unwritten := j.Apply(journal.Put(journal.Topic, journal.Resource{})) // without a name it has no key
	if len(told) != 1 || unwritten == nil || !errors.Is(told[0], unwritten) {
		t.Errorf("Put: %v, told: %v", unwritten, told)
	}
	if err := j.Apply(journal.Put(journal.Topic, journal.Resource{Name: "t"})); !errors.Is(err, unwritten) {
		t.Errorf("Put after that: %v", err)
	}
	if err := j.Close(); !errors.Is(err, unwritten) {
		t.Errorf("Close: %v", err)
	}
	if len(told) != 1 {
		t.Errorf("told %d times: %v", len(told), told)
	}
}
