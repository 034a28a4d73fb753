package httpapi

import (
	"context"
	"log/slog"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/lock"
)

func (a *API) lockEndpoints() []endpoint {
	return []endpoint{
		{
			method: get, path: "/api/v1/locks", role: viewer, summary: "List the locks that are held.",
			parameters: []parameter{limit, cursorOf("locks", "00ff", operator.CheckKeyHash)}, answer: pages("locks", a.heldLocks),
		},
		{method: get, path: "/api/v1/locks/show", role: viewer, summary: "Read the lock of one key.", parameters: []parameter{lockKey}, answer: writes(a.oneLock)},
		{method: post, path: "/api/v1/locks/break", role: oper, summary: "End the lock of one key, no matter who holds it.", answer: operates(a, breakLock)},
	}
}

// heldLocks answers GET /api/v1/locks with the locks that are held. The keys of the
// fleet's own are shown; of others only the hash.
//
// Cost: 2 RPCs; a read per lock document and depot.
func (a *API) heldLocks(ctx context.Context, r *request) (held []entity.Lock, next string, malformed []error, err error) {
	depots, err := a.store.Depots(ctx)
	if err != nil {
		return nil, "", nil, err
	}
	locks, next, err := operator.HeldLocks(ctx, a.operator.Locks, r.page())
	if err != nil {
		return nil, "", nil, err
	}
	ids := make([]domain.DepotID, len(depots.Items))
	for i, d := range depots.Items {
		ids[i] = d.ID
	}
	return entity.OfLocks(locks, ids, manager.LockKeys), next, depots.Malformed, nil
}

// lockKey is required. A key may have slashes, so it is not part of the path.
var lockKey = parameter{
	name: "key", says: "Key of the lock.", example: "optimizer:cycle:DEPOT-1", schema: schema{"type": "string"},
	wrong: checked(operator.CheckLockKey), required: true,
}

// lockState is the answer about one lock.
type lockState struct {
	Locked bool       `json:"locked"`
	Lock   *lock.Info `json:"lock,omitempty" doc:"Absent if nobody holds the lock."`
}

// oneLock answers GET /api/v1/locks/show?key= with one lock.
//
// Cost: 1 RPC, 1 read.
func (a *API) oneLock(ctx context.Context, r *request) (lockState, error) {
	held, err := a.operator.Lock(ctx, r.value("key"))
	if err != nil || held == nil {
		return lockState{}, err
	}
	return lockState{true, &held.Info}, nil
}

// breakRequest is the body of a command that breaks a lock.
type breakRequest struct {
	Key    string `json:"key" example:"optimizer:cycle:DEPOT-1"`
	Reason string `json:"reason" doc:"Why, for the audit." example:"the holder hangs"`
}

func (b *breakRequest) check(bad *problems) {
	bad.addError("key", operator.CheckLockKey(b.Key))
	bad.addError("reason", operator.CheckReason(b.Reason))
}

// brokenLock is the answer of a command that breaks a lock.
type brokenLock struct {
	Broken bool       `json:"broken" doc:"False if nobody held the lock."`
	Lock   *lock.Info `json:"lock,omitempty" doc:"The lock as it was."`
}

// breakLock answers POST /api/v1/locks/break with the lock as it was; broken is
// false if nobody holds it.
func breakLock(ctx context.Context, c *command, req *breakRequest) (brokenLock, error) {
	broken, err := c.BreakLock(ctx, req.Key, req.Reason)
	c.note(slog.String("key", req.Key), slog.String("reason", req.Reason), slog.Bool("broken", broken != nil))
	return brokenLock{broken != nil, broken}, err
}
