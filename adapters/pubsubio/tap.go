package pubsubio

import (
	"context"
	"fmt"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
)

// TapPrefix begins the ids of the subscriptions that Tap creates.
const TapPrefix = "telemetry-live-"

const (
	// tapBatch is the most that Pub/Sub returns at a time.
	tapBatch = 1000
	// tapPause gathers reports: each call costs more than a report does.
	tapPause = 100 * time.Millisecond
	// tapHelpers bounds the calls beside the first one. Each waits for Pub/Sub most of its time.
	tapHelpers = 7
)

// TapError says that the subscription of a Tap cannot be created.
type TapError struct{ Err error }

// Error implements error.
func (e *TapError) Error() string {
	return fmt.Sprintf("temporary subscription of %s cannot be created: %s; grant pubsub.subscriptions.create and pubsub.topics.attachSubscription", TopicTelemetry, e.Err)
}

// Unwrap implements the interface of package errors.
func (e *TapError) Unwrap() error { return e.Err }

// Tap calls seen with the reports that drones publish from now on, many at a time, until
// ctx ends. It uses a subscription of its own, TapPrefix and id, and deletes it at the end;
// the State Managers miss no message. It skips reports that cannot be decoded. It calls
// ready once reports can arrive, and counts in m what Pub/Sub delivers. It never returns
// nil; a *TapError says that this account cannot create subscriptions.
//
// While reports wait, it receives several batches at once and calls seen concurrently. One drone's
// reports then come in any order.
func Tap(ctx context.Context, c *pubsub.Client, m *meter.Meter, id string, ready func(), seen func([]domain.Telemetry)) error {
	err := CreateTemporary(ctx, c, TapPrefix+id, TopicTelemetry)
	switch code := status.Code(err); {
	case err == nil: // or left by a failure
	case ctx.Err() != nil:
		return ctx.Err()
	case code == codes.PermissionDenied, code == codes.NotFound, code == codes.ResourceExhausted, code == codes.InvalidArgument:
		return &TapError{err}
	default:
		return err
	}
	defer func() { _ = DeleteTemporary(ctx, c, TapPrefix+id) }() // it expires by itself if this fails
	name := subscriptionName(c, TapPrefix+id)
	ready()
	ctx, stop := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait() // before the subscription is deleted
	defer stop()
	free := make(chan struct{}, tapHelpers)
	help := func() {
		defer func() { <-free }()
		for {
			if full, err := tapOnce(ctx, c, m, name, seen); err != nil || !full {
				return // the first call meets the same error
			}
		}
	}
	for {
		full, err := tapOnce(ctx, c, m, name, seen)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("subscription %s: %w", TapPrefix+id, err)
		case full:
			select {
			case free <- struct{}{}:
				helpers.Go(help)
			default:
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(tapPause):
		}
	}
}

// tapOnce receives a batch and reports whether there is probably more.
func tapOnce(ctx context.Context, c *pubsub.Client, counts *meter.Meter, subscription string, seen func([]domain.Telemetry)) (full bool, err error) {
	resp, err := c.SubscriptionAdminClient.Pull(ctx, &pubsubpb.PullRequest{Subscription: subscription, MaxMessages: tapBatch})
	if status.Code(err) == codes.DeadlineExceeded { // nothing was published
		return false, nil
	}
	if err != nil || len(resp.GetReceivedMessages()) == 0 {
		return false, err
	}
	var reports []domain.Telemetry
	var acks []string
	for _, m := range resp.GetReceivedMessages() {
		acks = append(acks, m.GetAckId())
		counts.LiveReportsBytes.Add(int64(proto.Size(m.GetMessage())))
		if t, err := wire.DecodeTelemetry(m.GetMessage().GetData(), m.GetMessage().GetAttributes()); err == nil {
			reports = append(reports, t)
		}
	}
	counts.LiveReports.Add(int64(len(acks)))
	seen(reports)
	err = c.SubscriptionAdminClient.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: subscription, AckIds: acks})
	return len(acks) >= tapBatch/2, err
}
