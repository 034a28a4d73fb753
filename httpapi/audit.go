package httpapi

import (
	"context"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/live"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/lock"
)

// story answers GET /api/v1/{collection}/{id}/story with what the command audit prints
// with --format json.
//
// Cost: 3 or 4 RPCs; a read per event and decision that names the entity. For an order
// that waits, 1 + D RPCs and 2 D reads more for D depots.
func (a *API) story(subject operator.Subject) answer {
	return writes(func(ctx context.Context, r *request) (operator.StoryJSON, error) {
		return a.operator.Story(ctx, subject, r.id())
	})
}

var (
	letterTopic  = choice("topic", pubsubio.InboundTopics)
	letterReason = parameter{"reason", "Only those refused for this reason.", schema{"type": "string"}, "INVALID", func(value string) string {
		if value == "" {
			return "is empty; give one such as INVALID, or leave reason out"
		}
		return ""
	}, false}
)

// deadLetters answers GET /api/v1/deadletters with the messages that were refused for
// good and not settled since.
//
// Cost: Pub/Sub, 4 RPCs per topic.
func (a *API) deadLetters(ctx context.Context, r *request) (operator.LetterList, error) {
	page := r.page()
	letters, err := a.operator.DeadLetters(ctx, operator.LetterFilter{
		Topic: r.value("topic"), Reason: r.value("reason"), Partial: true, Limit: page.Limit, After: page.After,
	})
	return letters.JSON(), err
}

// letterStory answers GET /api/v1/deadletters/{id}/story with what the command
// "deadletters show" prints with --json. The id is the refused message's.
//
// Cost: see operator.Commands.LetterStory.
func (a *API) letterStory(ctx context.Context, r *request) (operator.LetterStory, error) {
	return a.operator.LetterStory(ctx, r.id())
}

// lockState is the answer about one lock.
type lockState struct {
	Locked bool       `json:"locked"`
	Lock   *lock.Info `json:"lock,omitempty" doc:"Absent if nobody holds the lock."`
}

var keyOfLock = parameter{"key", "Key of the lock.", schema{"type": "string"}, "optimizer:cycle:DEPOT-1", checked(operator.CheckLockKey), true}

// oneLock answers GET /api/v1/locks/show?key= with one lock. A key may have slashes, so it
// is not part of the path.
//
// Cost: 1 RPC, 1 read.
func (a *API) oneLock(ctx context.Context, r *request) (lockState, error) {
	held, err := a.operator.Lock(ctx, r.value("key"))
	if err != nil {
		return lockState{}, lockProblem(err)
	}
	if held == nil {
		return lockState{}, nil
	}
	return lockState{true, &held.Info}, nil
}

// heldLocks answers GET /api/v1/locks with the locks that are held. The keys of the
// fleet's own are shown; of others only the hash.
//
// Cost: 2 RPCs; a read per lock document and depot.
func (a *API) heldLocks(ctx context.Context, r *request) (held []live.Lock, next string, malformed []error, err error) {
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
	return live.LocksOf(locks, ids, []string{manager.SweeperKey}), next, depots.Malformed, nil
}
