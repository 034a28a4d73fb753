package ordering

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
)

const (
	// applyPatience is how long a reader waits for the document of an order that was just sent,
	// and applyEvery how often it looks.
	applyPatience = 2 * time.Second
	applyEvery    = 50 * time.Millisecond
)

// HopelessError says that no drone can deliver an order as things stand.
type HopelessError struct{ Barriers []planner.Barrier }

// Error implements error.
func (e *HopelessError) Error() string {
	return "no drone can deliver this order as things stand: " + textOf(e.Barriers)
}

// Desk takes orders. It is safe for concurrent use.
type Desk struct {
	// Patience is how long an order waits for Pub/Sub's answer; New sets 5 s.
	Patience time.Duration

	store     *firestoretx.Store
	reach     *Reach
	publisher *pubsubio.Publisher
	recent    recent
}

// New returns a desk that publishes with client, which stays the caller's. Whoever orders waits for
// the answer, so nothing is left to stop at the end.
func New(store *firestoretx.Store, reach *Reach, client *pubsub.Client) *Desk {
	return &Desk{Patience: 5 * time.Second, store: store, reach: reach, publisher: pubsubio.NewPublisher(client), recent: recent{now: time.Now}}
}

// IDFor is the id of an order that has none: it follows from the caller and the caller's
// idempotency key, so that the order has the same id when it is sent again.
func IDFor(caller, key string) domain.OrderID {
	sum := sha256.Sum256([]byte(caller + "\x00" + key))
	return domain.OrderID("K-" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15]))
}

// UnansweredError says that Pub/Sub may not have an order. It may be sent again.
type UnansweredError struct{ Err error }

// Error implements error.
func (e *UnansweredError) Error() string {
	return fmt.Sprintf("Pub/Sub does not answer: %s; send the same order again, which makes no second one", e.Err)
}

// Unwrap returns Pub/Sub's error.
func (e *UnansweredError) Unwrap() error { return e.Err }

// Take publishes an order for its requester, whom sender names, and waits until Pub/Sub has it.
// An order that is known already is not published again; one with other content is a
// *ConflictError. One that no drone can deliver as things stand is a *HopelessError, unless it is
// wanted anyway: then the barriers are returned.
//
// Cost: 1 RPC, 1 read, and that of Reach.Barriers; Pub/Sub, 1 RPC shared with other orders of the
// moment.
func (d *Desk) Take(ctx context.Context, req domain.OrderRequest, sender string, anyway bool) ([]planner.Barrier, error) {
	known, err := d.store.Order(ctx, req.ID)
	found := err == nil
	switch {
	case found:
		err = conflict(known, req)
	case errors.Is(err, firestoretx.ErrNotFound):
		err = nil
	}
	if err != nil {
		return nil, err
	}
	barriers, err := d.reach.Barriers(ctx, req)
	switch {
	case err != nil:
		return nil, err
	case found:
		return barriers, nil
	case len(barriers) > 0 && !anyway:
		return nil, &HopelessError{barriers}
	}
	return barriers, d.send(ctx, req, sender)
}

// send publishes an order that has no document yet.
func (d *Desk) send(ctx context.Context, req domain.OrderRequest, sender string) error {
	hash := req.Hash()
	switch before, is := d.recent.begin(req.ID, hash); {
	case is && before.hash != hash:
		return &ConflictError{ID: req.ID, Why: "an order with this id and other content was sent a moment ago"}
	case before.published:
		return nil
	}
	data, attributes, err := wire.EncodeOrder(req, wire.JSON)
	if err != nil {
		return err
	}
	if sender != "" {
		attributes[wire.AttrSender] = sender
	}
	waiting, cancel := context.WithTimeout(ctx, d.Patience)
	defer cancel()
	_, err = d.publisher.Publish(ctx, pubsubio.TopicOrders, data, attributes, "").Wait(waiting)
	switch {
	case status.Code(err) == codes.NotFound:
		return fmt.Errorf("topic %s does not exist; %s", pubsubio.TopicOrders, pubsubio.Remedy)
	case err != nil:
		return &UnansweredError{err}
	}
	d.recent.published(req.ID, hash)
	return nil
}

// Await waits a moment for the document of an order that was just sent, and reports whether it is
// there. For other orders it does nothing. So whoever was told that an order is taken can read and
// change it.
//
// Cost: 1 RPC and 1 read every applyEvery until the document is there.
func (d *Desk) Await(ctx context.Context, id domain.OrderID) bool {
	if !d.recent.has(id) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, applyPatience)
	defer cancel()
	ticker := time.NewTicker(applyEvery)
	defer ticker.Stop()
	for {
		if _, err := d.store.Order(ctx, id); !errors.Is(err, firestoretx.ErrNotFound) {
			return err == nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
}
