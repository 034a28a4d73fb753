package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
)

// ServicePatience is how long Pub/Sub has to come up with dead letters: the
// service, unlike emulators, may have some and answer at first that it has none.
const ServicePatience = 3 * time.Second

// ServiceReviewBytes is how much of a topic's dead letters a process reviews that
// has other work. An answer holds each letter twice, as text and in base64, and
// letters may be as large as messages: without a bound one request would take the
// memory of a State Manager.
const ServiceReviewBytes = 8 << 20

// Commands changes the fleet on the word of one operator, wherever it was
// given. Each records the reason and who asked, in the events of the change or in
// a record of its own. A *policy.Rejection says that the fleet's rules refuse.
type Commands struct {
	Store  *firestoretx.Store
	Locks  lock.Store
	PubSub *pubsub.Client
	// Patience is how long to wait for dead letters that may still come; see
	// ServicePatience. 0 takes the first empty answer, as emulators allow.
	Patience time.Duration
	// ReviewBytes bounds the dead letters held at a time, of each topic; default
	// pubsubio.MaxReviewBytes. See ServiceReviewBytes.
	ReviewBytes int
	// By is who asks, in at most domain.MaxActorRunes printable characters.
	// Without it nothing is changed: the audit names somebody for each change.
	By string
}

// Changed is an entity as it is after a command.
type Changed[E any] struct {
	Now E
	// Already says that the effect was there before, so that nothing was changed
	// or recorded: who does not hear an answer may ask again.
	Already bool
}

// HoldOrder keeps a pending order from every cycle. A held one stays as it is.
//
// Cost: 4 RPCs, 2 reads, 2 writes.
func (c Commands) HoldOrder(ctx context.Context, id domain.OrderID, reason string) (Changed[domain.Order], error) {
	return command(ctx, c, "order", id, reason, c.Store.HoldOrder, c.Store.Order, func(refused policy.Reason, _ domain.Order) bool {
		return refused == policy.ReasonAlreadyHeld
	})
}

// ReleaseOrder offers a held order to the cycles again. One that is not held
// stays as it is; a cancelled one is rejected.
//
// Cost: 4 RPCs, 2 reads, 2 writes.
func (c Commands) ReleaseOrder(ctx context.Context, id domain.OrderID, reason string) (Changed[domain.Order], error) {
	return command(ctx, c, "order", id, reason, c.Store.ReleaseOrder, c.Store.Order, func(refused policy.Reason, o domain.Order) bool {
		return refused == policy.ReasonNotHeld && o.Status != domain.OrderCancelled
	})
}

// CancelOrder cancels an order that no drone carries yet; the drone of an
// assigned one is told by the State Managers. A cancelled one stays as it is. It
// is rejected if it is too late.
//
// Cost: 4 RPCs, 2 reads, 2 writes; 2 more RPCs for an assigned order.
func (c Commands) CancelOrder(ctx context.Context, id domain.OrderID, reason string) (Changed[domain.Order], error) {
	return command(ctx, c, "order", id, reason, c.Store.CancelOrder, c.Store.Order, func(refused policy.Reason, _ domain.Order) bool {
		return refused == policy.ReasonAlreadyCancelled
	})
}

// ClearDrone lifts the latch of a drone's emergency. A drone that has none stays
// as it is.
//
// Cost: 4 RPCs, 2 reads, 2 writes.
func (c Commands) ClearDrone(ctx context.Context, id domain.DroneID, reason string) (Changed[domain.Drone], error) {
	return command(ctx, c, "drone", id, reason, c.Store.ClearDrone, c.Store.Drone, func(refused policy.Reason, _ domain.Drone) bool {
		return refused == policy.ReasonNotEmergency
	})
}

// BreakLock ends the lock of a key, no matter who holds it, and describes it as it
// was; nil if it is free. The break is on record before it is made. The fence counter
// stays, so that the next holder's fence is higher and the former holder's decisions
// are refused.
//
// Cost: 4 RPCs, 1 read, 2 writes.
func (c Commands) BreakLock(ctx context.Context, key, reason string) (*lock.Info, error) {
	if err := CheckLockKey(key); err != nil {
		return nil, fmt.Errorf("lock key %w", err)
	}
	if err := CheckReason(reason); err != nil {
		return nil, fmt.Errorf("--reason %w", err)
	}
	if err := c.checkBy(); err != nil {
		return nil, err
	}
	broken, err := lock.Break(ctx, c.Locks, key, func(held lock.Info) error {
		return c.Store.RecordLockBreak(ctx, domain.LockBreak{
			Key: key, Fence: string(held.Fence), ExpiresAt: atMs(held.ExpiresAtMs), BrokenBy: c.By, Why: oneLine(reason),
		})
	})
	if err != nil {
		return nil, keyError(key, err)
	}
	return broken, nil
}

// CheckLockKey says what is wrong with the key of a lock to break.
func CheckLockKey(key string) error {
	switch {
	case key == "":
		return errors.New("is empty; \"locks list\" shows what is held")
	case len(key) > lock.MaxKeyBytes:
		return fmt.Errorf("has %d bytes; keys have at most %d", len(key), lock.MaxKeyBytes)
	case !utf8.ValidString(key):
		return errors.New("is not valid UTF-8")
	}
	return nil
}

// command does what an operator asks of one entity. done judges by a rejection and
// the entity whether the effect was there already.
func command[ID ~string, E any](ctx context.Context, c Commands, kind string, id ID, reason string,
	do func(context.Context, ID, string) error, read func(context.Context, ID) (E, error), done func(policy.Reason, E) bool) (Changed[E], error) {
	why, err := c.why(kind, string(id), reason)
	if err != nil {
		return Changed[E]{}, err
	}
	err = do(ctx, id, why)
	refused, rejected := policy.ReasonOf(err)
	if err != nil && (!rejected || refused == policy.ReasonNotFound) {
		return Changed[E]{}, about(kind, string(id), err)
	}
	now, unread := read(ctx, id)
	switch {
	case unread != nil:
		return Changed[E]{}, unread
	case rejected && !done(refused, now):
		return Changed[E]{}, about(kind, string(id), err)
	}
	return Changed[E]{Now: now, Already: rejected}, nil
}

// about says what a change that failed was about. A rejection names its subject
// itself.
func about(kind, id string, err error) error {
	if _, rejected := policy.ReasonOf(err); rejected {
		return fmt.Errorf("%s %w", kind, err)
	}
	return fmt.Errorf("%s %s: %w", kind, id, err)
}

// MaxReasonBytes bounds an operator's reason: it is stored where fields are
// indexed.
const MaxReasonBytes = 500

// CheckReason says what is wrong with an operator's reason, which the audit
// shows.
func CheckReason(reason string) error {
	switch {
	case strings.TrimSpace(reason) == "":
		return errors.New("is blank; say why, for the audit")
	case len(reason) > MaxReasonBytes:
		return fmt.Errorf("has %d bytes; give at most %d", len(reason), MaxReasonBytes)
	case !utf8.ValidString(reason):
		return errors.New("is not valid UTF-8")
	}
	return nil
}

// CheckBy says what is wrong with the operator's name, which documents, messages and
// logs show on one line.
func CheckBy(name string) error {
	unfit := func(r rune) bool { return !unicode.IsGraphic(r) }
	switch n := utf8.RuneCountInString(name); {
	case name == "":
		return errors.New("is not given, and this machine does not name its user; say who you are with --by")
	case !utf8.ValidString(name):
		return errors.New("is not valid UTF-8")
	case strings.TrimSpace(name) == "":
		return errors.New("is blank; say who asks, for the audit")
	case n > domain.MaxActorRunes:
		return fmt.Errorf("has %d characters; give at most %d", n, domain.MaxActorRunes)
	case strings.ContainsFunc(name, unfit):
		return fmt.Errorf("is %q; give a name on one line, without what cannot be printed", name)
	}
	return nil
}

func (c Commands) checkBy() error {
	if err := CheckBy(c.By); err != nil {
		return fmt.Errorf("--by %w", err)
	}
	return nil
}

// why is what the audit shows of a change: the reason, on one line, and who
// asked.
func (c Commands) why(kind, id, reason string) (string, error) {
	if err := checkID(kind, id); err != nil {
		return "", err
	}
	if err := CheckReason(reason); err != nil {
		return "", fmt.Errorf("--reason %w", err)
	}
	if err := c.checkBy(); err != nil {
		return "", err
	}
	return oneLine(reason) + " (by " + c.By + ")", nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
