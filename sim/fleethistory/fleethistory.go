package fleethistory

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// Read reads Documents and the dead letters of all inbound topics, which stay where they
// are.
func Read(ctx context.Context, store *firestoretx.Store, c *pubsub.Client) (invariant.History, []pubsubio.DeadLetter, error) {
	h, err := Documents(ctx, store)
	if err != nil {
		return h, nil, err
	}
	letters, err := deadLetters(ctx, c)
	if err != nil {
		return h, nil, fmt.Errorf("read the dead letters: %w", err)
	}
	for _, l := range letters {
		h.DeadLetters = append(h.DeadLetters, invariant.DeadLetter{MessageID: l.MessageID, Reason: l.Reason})
	}
	return h, letters, nil
}

// Documents reads all drones, orders, missions, warehouses and events, the ledger in commit
// order, the highest fences, and the dead letters that operators discarded.
func Documents(ctx context.Context, store *firestoretx.Store) (invariant.History, error) {
	var h invariant.History
	all := firestoretx.Page{}
	for _, read := range []func() error{
		func() (err error) { h.Drones, err = store.Drones(ctx, "", all); return },
		func() (err error) { h.Orders, err = store.Orders(ctx, "", all); return },
		func() (err error) { h.Missions, err = store.Missions(ctx, "", all); return },
		func() (err error) { h.Warehouses, err = store.Warehouses(ctx); return },
		func() (err error) { h.Ledger, err = store.LedgerInCommitOrder(ctx); return },
		func() (err error) { h.Events, err = store.AllEvents(ctx); return },
		func() error {
			fences, err := store.Fences(ctx)
			h.Fences = fences
			return err
		},
		func() error {
			discards, err := store.Discards(ctx)
			for _, d := range discards {
				h.DeadLetters = append(h.DeadLetters, invariant.DeadLetter{MessageID: d.MessageID, Reason: d.Reason})
			}
			return err
		},
	} {
		if err := read(); err != nil {
			return h, fmt.Errorf("read the history: %w", err)
		}
	}
	return h, nil
}

func deadLetters(ctx context.Context, c *pubsub.Client) (letters []pubsubio.DeadLetter, _ error) {
	for _, topic := range pubsubio.InboundTopics {
		found, err := lettersOf(ctx, c, topic)
		if err != nil {
			return nil, err
		}
		letters = append(letters, found...)
	}
	return letters, nil
}

// lettersOf reads a topic's dead letters in as many reviews as needed. Each review
// holds its letters until all are done, so that the next one finds the rest.
func lettersOf(ctx context.Context, c *pubsub.Client, topic string) (letters []pubsubio.DeadLetter, err error) {
	for more := true; more; {
		review, failed := pubsubio.OpenReview(ctx, c, topic, 0, 0)
		if failed != nil {
			return nil, failed
		}
		defer func() { err = errors.Join(err, review.Close(ctx)) }()
		letters, more = append(letters, review.Letters...), review.More
	}
	return letters, nil
}
