package httpapi

import (
	"context"
	"log/slog"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/live"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
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
	}}
)

// deadLetters answers GET /api/v1/deadletters with the messages that were refused for
// good and not settled since.
//
// Cost: Pub/Sub, 4 RPCs per topic.
func (a *API) deadLetters(ctx context.Context, r *request) (operator.LetterList, error) {
	letters, err := a.operator.DeadLetters(ctx, operator.LetterFilter{Topic: r.value("topic"), Reason: r.value("reason"), Partial: true})
	return letters.JSON(), err
}

// lockList is the JSON form of locks.
type lockList struct {
	Locks []live.Lock `json:"locks"`
}

// heldLocks answers GET /api/v1/locks with the locks that are held. The keys of the
// fleet's own are shown; of others only the hash.
//
// Cost: 2 RPCs; a read per lock document and depot.
func (a *API) heldLocks(ctx context.Context, _ *request) (held lockList, err error) {
	depots, err := a.store.Depots(ctx)
	if err != nil {
		return held, err
	}
	for _, malformed := range depots.Malformed {
		a.log.WarnContext(ctx, "depot left out; correct its document", slog.Any("err", malformed))
	}
	locks, err := a.operator.Locks.List(ctx)
	if err != nil {
		return held, err
	}
	ids := make([]domain.DepotID, len(depots.Items))
	for i, d := range depots.Items {
		ids[i] = d.ID
	}
	return lockList{live.LocksOf(locks, ids, []string{manager.SweeperKey})}, nil
}
