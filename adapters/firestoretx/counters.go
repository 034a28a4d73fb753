package firestoretx

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
)

// fencedTxn is an attempt whose outcome depends on a fence.
type fencedTxn struct {
	*txn
	mapped  policy.Fences  // in the map of earlier versions, if it was read
	counter outsideCounter // if it was read
}

// outsideCounter is a fence counter outside Firestore, read between two attempts of a
// transaction.
type outsideCounter struct {
	read  bool
	depot domain.DepotID
	value string // the highest fence handed out, empty if none
	after string // the highest fence applied that an attempt had seen before the read
}

// needsCounter ends an attempt that needs the fence counter of a depot.
type needsCounter struct {
	depot   domain.DepotID
	applied string // the highest fence applied
}

// Error implements error.
func (n *needsCounter) Error() string {
	return fmt.Sprintf("the decision needs the fence counter of depot %q", n.depot)
}

// judge gives a decision's state the fences that the depot's lock has handed out.
//
// A counter only rises, so one that was read after the message arrived can judge its fence. It must
// also be as new as the highest fence applied. A fence applied after the read may be above the
// counter, would count as forged, and would let the lock's former holder pass. A fence applied
// before the read and still above it is forged, or the lock's store has lost it.
func (c outsideCounter) judge(state *policy.DecisionState, depot domain.DepotID) error {
	applied := state.Fences[depot]
	if !c.read || c.depot != depot || policy.FenceLess(c.value, applied) && applied != c.after {
		return &needsCounter{depot, applied}
	}
	state.Issued = policy.Fences{depot: c.value}
	return nil
}

// counterReads bounds how often a decision starts over because fences were applied meanwhile. Each
// restart means that a whole cycle has begun and decided.
const counterReads = 5

// lockable reports whether lock stores accept a key. A key that they refuse has no counter.
// Another refusal, such as of missing tables, says nothing about the counter.
func lockable(key string) bool {
	_, err := lock.NormalizeKey(key)
	return err == nil && !strings.ContainsRune(key, 0) // which PostgreSQL cannot store
}

// errCountersMoving says that newer fences kept overtaking a decision.
var errCountersMoving = errors.New("newer fences are applied faster than the lock's counter can be read; it will be retried")

// transactFenced is transact for an f that may need a fence counter outside Firestore. It reads the
// counter between attempts, so that no transaction waits for another store.
func (s *Store) transactFenced(ctx context.Context, f func(*fencedTxn) error) error {
	var known outsideCounter
	for range counterReads {
		err := s.transact(ctx, nil, func(t *txn) error { return f(&fencedTxn{txn: t, counter: known}) })
		needs, ok := errors.AsType[*needsCounter](err)
		if !ok {
			return err
		}
		key := domain.CycleLockKey(needs.depot)
		value, err := s.counters.HighestFence(ctx, key)
		switch {
		case errors.Is(err, lock.ErrInvalidArgument) && !lockable(key):
			value = ""
		case err != nil:
			return fmt.Errorf("fence counter of depot %q: %w", needs.depot, err)
		}
		known = outsideCounter{read: true, depot: needs.depot, value: string(value), after: needs.applied}
	}
	return errCountersMoving
}
