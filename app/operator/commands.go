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

// ServicePatience is how long to wait for dead letters. Unlike emulators, the real service may at
// first return none although there are some.
const ServicePatience = 3 * time.Second

// ServiceReviewBytes bounds the dead letters of a topic that a State Manager reviews at once. A
// response holds each letter twice, as text and in base64, so an unbounded request could exhaust
// the memory.
const ServiceReviewBytes = 8 << 20

// Commands changes the fleet for one operator, from the command line or the HTTP API. Each command
// records the reason and the person, in the events of the change or in a record of its own. It
// returns a *policy.Rejection if a policy refuses it.
//
// Cost: a change of one entity takes 4 RPCs, 2 reads and 2 writes unless its comment says
// otherwise.
type Commands struct {
	Store  *firestoretx.Store
	Locks  lock.Store
	PubSub *pubsub.Client
	// Patience is how long to wait for more dead letters; see ServicePatience. 0 accepts
	// the first empty answer, which is right for emulators.
	Patience time.Duration
	// ReviewBytes bounds the dead letters held at once per topic; default
	// pubsubio.MaxReviewBytes. See ServiceReviewBytes.
	ReviewBytes int
	// By names the person, in at most domain.MaxActorRunes printable characters. Every change
	// requires it for the audit.
	By string
}

// Changed is an entity after a command.
type Changed[E any] struct {
	Now E
	// Already says that the entity was in this state before, so nothing was changed or recorded. It
	// makes commands safe to repeat after a lost answer.
	Already bool
}

// HoldOrder keeps a pending order out of every cycle. A held one stays as it is.
func (c Commands) HoldOrder(ctx context.Context, id domain.OrderID, reason string) (Changed[domain.Order], error) {
	return command(ctx, c, "order", id, reason, c.Store.HoldOrder, c.Store.Order, already[domain.Order](policy.ReasonAlreadyHeld))
}

// ReleaseOrder offers a held order to the cycles again. One that is not held
// stays as it is; a cancelled one is rejected.
func (c Commands) ReleaseOrder(ctx context.Context, id domain.OrderID, reason string) (Changed[domain.Order], error) {
	return command(ctx, c, "order", id, reason, c.Store.ReleaseOrder, c.Store.Order, func(refused policy.Reason, o domain.Order) bool {
		return refused == policy.ReasonNotHeld && o.Status != domain.OrderCancelled
	})
}

// CancelOrder cancels an order that is not aboard a drone. State Managers revoke the mission of an
// assigned one. A cancelled order stays as it is; a late cancellation is rejected.
//
// Cost: 4 RPCs, 2 reads, 2 writes; 2 more RPCs for an assigned order.
func (c Commands) CancelOrder(ctx context.Context, id domain.OrderID, reason string) (Changed[domain.Order], error) {
	return command(ctx, c, "order", id, reason, c.Store.CancelOrder, c.Store.Order, already[domain.Order](policy.ReasonAlreadyCancelled))
}

// ChangeOrder gives an order that is neither delivered nor cancelled another priority, a deadline in
// the future or, while it is PENDING, another delivery position. One that is so already stays as it
// is. A new priority does not change the deadline.
func (c Commands) ChangeOrder(ctx context.Context, id domain.OrderID, to domain.OrderChange, reason string) (Changed[domain.Order], error) {
	change := func(ctx context.Context, id domain.OrderID, why string) error {
		return c.Store.ChangeOrder(ctx, id, to, why)
	}
	return command(ctx, c, "order", id, reason, change, c.Store.Order, already[domain.Order](policy.ReasonUnchanged))
}

// SetPriority is ChangeOrder for the priority alone.
func (c Commands) SetPriority(ctx context.Context, id domain.OrderID, p domain.Priority, reason string) (Changed[domain.Order], error) {
	return c.ChangeOrder(ctx, id, domain.OrderChange{Priority: &p}, reason)
}

// SetDeadline is ChangeOrder for the deadline alone.
func (c Commands) SetDeadline(ctx context.Context, id domain.OrderID, deadline time.Time, reason string) (Changed[domain.Order], error) {
	return c.ChangeOrder(ctx, id, domain.OrderChange{Deadline: &deadline}, reason)
}

// PinOrder lets only one drone take an open order. One pinned to it stays as it is.
//
// Cost: 4 RPCs, 3 reads, 2 writes.
func (c Commands) PinOrder(ctx context.Context, id domain.OrderID, drone domain.DroneID, reason string) (Changed[domain.Order], error) {
	return c.changePin(ctx, id, drone, reason, c.Store.PinOrder)
}

// ForbidDrone keeps a drone from taking an open order. A forbidden one stays as it is.
//
// Cost: 4 RPCs, 3 reads, 2 writes.
func (c Commands) ForbidDrone(ctx context.Context, id domain.OrderID, drone domain.DroneID, reason string) (Changed[domain.Order], error) {
	return c.changePin(ctx, id, drone, reason, c.Store.ForbidDrone)
}

// AllowDrone ends what ForbidDrone did. A drone that is not forbidden stays as it is.
func (c Commands) AllowDrone(ctx context.Context, id domain.OrderID, drone domain.DroneID, reason string) (Changed[domain.Order], error) {
	return c.changePin(ctx, id, drone, reason, c.Store.AllowDrone)
}

// UnpinOrder ends what PinOrder did. An order that is not pinned stays as it is.
func (c Commands) UnpinOrder(ctx context.Context, id domain.OrderID, reason string) (Changed[domain.Order], error) {
	return command(ctx, c, "order", id, reason, c.Store.UnpinOrder, c.Store.Order, already[domain.Order](policy.ReasonUnchanged))
}

func (c Commands) changePin(ctx context.Context, id domain.OrderID, drone domain.DroneID, reason string,
	do func(context.Context, policy.Pin) error) (Changed[domain.Order], error) {
	if err := ofField("droneId", domain.CheckID(string(drone))); err != nil {
		return Changed[domain.Order]{}, err
	}
	change := func(ctx context.Context, id domain.OrderID, why string) error {
		return do(ctx, policy.Pin{Order: id, Drone: drone, Why: why})
	}
	return command(ctx, c, "order", id, reason, change, c.Store.Order, already[domain.Order](policy.ReasonUnchanged))
}

// ClearDrone clears a drone's latched emergency. A drone without one stays as it is.
func (c Commands) ClearDrone(ctx context.Context, id domain.DroneID, reason string) (Changed[domain.Drone], error) {
	return command(ctx, c, "drone", id, reason, c.Store.ClearDrone, c.Store.Drone, already[domain.Drone](policy.ReasonNotEmergency))
}

// GroundDrone keeps a drone from new missions, whatever it reports. It finishes its current
// mission. A grounded drone stays as it is.
func (c Commands) GroundDrone(ctx context.Context, id domain.DroneID, reason string) (Changed[domain.Drone], error) {
	return command(ctx, c, "drone", id, reason, c.Store.GroundDrone, c.Store.Drone, already[domain.Drone](policy.ReasonAlreadyGrounded))
}

// ReleaseDrone lets a grounded drone take missions again. One that is not grounded
// stays as it is.
func (c Commands) ReleaseDrone(ctx context.Context, id domain.DroneID, reason string) (Changed[domain.Drone], error) {
	return command(ctx, c, "drone", id, reason, c.Store.ReleaseDrone, c.Store.Drone, already[domain.Drone](policy.ReasonNotGrounded))
}

// RecallMission makes a drone give up its mission. Parcels aboard are delivered first; then the
// drone is told to leave the mission. When it has left, the remaining orders are PENDING again. A
// mission that the same person recalled for the same reason stays as it is, and any other second recall
// is rejected: it would do nothing.
//
// Cost: 6 RPCs, 4 reads and 1 for each order, 3 writes.
func (c Commands) RecallMission(ctx context.Context, id domain.MissionID, reason string) (Changed[domain.Mission], error) {
	return command(ctx, c, "mission", id, reason, c.Store.RecallMission, c.Store.Mission, func(refused policy.Reason, m domain.Mission) bool {
		return refused == policy.ReasonAlreadyRecalled && m.RecallReason == c.why(reason)
	})
}

// BreakLock ends the lock of a key, whoever holds it, and returns it; nil if it was free. It
// records the break first. The fence counter stays, so the next holder gets a higher fence and the
// former holder's decisions are refused.
//
// Cost: 4 RPCs, 1 read, 2 writes.
func (c Commands) BreakLock(ctx context.Context, key, reason string) (*lock.Info, error) {
	if err := ofField("key", CheckLockKey(key)); err != nil {
		return nil, err
	}
	if err := c.checkAudit(reason); err != nil {
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

// already says that an entity is in the wanted state if its change is refused for the reason.
func already[E any](reason policy.Reason) func(policy.Reason, E) bool {
	return func(refused policy.Reason, _ E) bool { return refused == reason }
}

// command changes one entity. done reports, from a rejection and the entity, whether the entity was
// already in the wanted state.
func command[ID ~string, E any](ctx context.Context, c Commands, kind string, id ID, reason string,
	do func(context.Context, ID, string) error, read func(context.Context, ID) (E, error), done func(policy.Reason, E) bool) (Changed[E], error) {
	if err := checkID(kind, string(id)); err != nil {
		return Changed[E]{}, err
	}
	if err := c.checkAudit(reason); err != nil {
		return Changed[E]{}, err
	}
	err := do(firestoretx.By(ctx, c.By), id, c.why(reason))
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

// why is a reason as it is recorded.
func (c Commands) why(reason string) string { return oneLine(reason) + " (by " + c.By + ")" }

// about adds the subject of a failed change to its error. A rejection already names its subject.
func about(kind, id string, err error) error {
	if _, rejected := policy.ReasonOf(err); rejected {
		return fmt.Errorf("%s %w", kind, err)
	}
	return fmt.Errorf("%s %s: %w", kind, id, err)
}

// MaxReasonBytes bounds an operator's reason, which is stored in an indexed field.
const MaxReasonBytes = 500

// CheckReason says what is wrong with an operator's reason, which the audit shows.
func CheckReason(reason string) error {
	switch {
	case strings.TrimSpace(reason) == "":
		return errors.New("is blank; give a reason for the audit")
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
		return errors.New("is not set; give your name for the audit")
	case !utf8.ValidString(name):
		return errors.New("is not valid UTF-8")
	case strings.TrimSpace(name) == "":
		return errors.New("is blank; give your name for the audit")
	case n > domain.MaxActorRunes:
		return fmt.Errorf("has %d characters; give at most %d", n, domain.MaxActorRunes)
	case strings.ContainsFunc(name, unfit):
		return fmt.Errorf("is %q; give a name of printable characters on one line", name)
	}
	return nil
}

func (c Commands) checkBy() error { return ofField("by", CheckBy(c.By)) }

// checkAudit says what is wrong with what the audit shows of a change.
func (c Commands) checkAudit(reason string) error {
	if err := ofField("reason", CheckReason(reason)); err != nil {
		return err
	}
	return c.checkBy()
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
