package pubsubio

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

// TapPrefix begins the ids of the subscriptions that Tap creates.
const TapPrefix = "telemetry-live-"

const (
	// tapRetention is Pub/Sub's shortest: old positions are of no use.
	tapRetention = 10 * time.Minute
	// tapExpiration is Pub/Sub's shortest: the subscription of a process that was killed
	// goes away by itself.
	tapExpiration = 24 * time.Hour
	// tapOutstanding bounds the reports held at a time.
	tapOutstanding = 10_000
	// tapDelete bounds the deletion of the subscription.
	tapDelete = 5 * time.Second
)

// TapError says that the subscription of a Tap cannot be created.
type TapError struct{ Err error }

// Error implements error.
func (e *TapError) Error() string {
	return fmt.Sprintf("temporary subscription of %s cannot be created: %s; grant pubsub.subscriptions.create and pubsub.topics.attachSubscription", TopicTelemetry, e.Err)
}

// Unwrap implements the interface of package errors.
func (e *TapError) Unwrap() error { return e.Err }

// Tap calls seen, from many goroutines, with every report that drones publish from now
// on, until ctx ends. It reads through a subscription of its own, TapPrefix and id,
// which it deletes at the end, so it takes no message from the State Managers. Reports
// that cannot be decoded are left to them. ready is called once reports can arrive.
// It never returns nil; a *TapError says that this account cannot create subscriptions.
func Tap(ctx context.Context, c *pubsub.Client, id string, ready func(), seen func(domain.Telemetry)) error {
	name := subscriptionName(c, TapPrefix+id)
	_, err := c.SubscriptionAdminClient.CreateSubscription(ctx, &pubsubpb.Subscription{
		Name: name, Topic: topicName(c, TopicTelemetry), AckDeadlineSeconds: 10,
		MessageRetentionDuration: durationpb.New(tapRetention),
		ExpirationPolicy:         &pubsubpb.ExpirationPolicy{Ttl: durationpb.New(tapExpiration)},
	})
	switch code := status.Code(err); {
	case err == nil, code == codes.AlreadyExists: // after a failure
	case ctx.Err() != nil:
		return ctx.Err()
	case code == codes.PermissionDenied, code == codes.NotFound, code == codes.ResourceExhausted, code == codes.InvalidArgument:
		return &TapError{err}
	default:
		return fmt.Errorf("create subscription %s: %w", TapPrefix+id, err)
	}
	defer func() {
		deleting, cancel := context.WithTimeout(context.WithoutCancel(ctx), tapDelete)
		defer cancel()
		// It expires by itself if this fails.
		_ = c.SubscriptionAdminClient.DeleteSubscription(deleting, &pubsubpb.DeleteSubscriptionRequest{Subscription: name})
	}()
	ready()
	sub := c.Subscriber(TapPrefix + id)
	sub.ReceiveSettings.NumGoroutines = 1
	sub.ReceiveSettings.MaxOutstandingMessages = tapOutstanding
	sub.ReceiveSettings.MaxOutstandingBytes = maxOutstandingBytes
	sub.ReceiveSettings.ShutdownOptions = &pubsub.ShutdownOptions{} // at once: what is not acked is deleted
	err = sub.Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		if t, err := wire.DecodeTelemetry(m.Data, m.Attributes); err == nil {
			seen(t)
		}
		m.Ack()
	})
	return errors.Join(fmt.Errorf("subscription %s interrupted", TapPrefix+id), err, ctx.Err())
}
