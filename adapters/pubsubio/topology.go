package pubsubio

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Topics of the fleet.
const (
	TopicTelemetry = "telemetry"
	TopicOrders    = "orders"
	TopicDecisions = "decisions"
	TopicMissions  = "missions"
	// TopicLinks tells State Managers of drones whose sessions at gateways were lost, and
	// gateways of each other's sessions.
	TopicLinks = "links"
)

// The tables of the history.
const (
	HistoryEvents    = "events"
	HistoryOrders    = "orders"
	HistoryMissions  = "missions"
	HistoryDecisions = "decisions"
	HistoryRefusals  = "refusals"
)

// HistoryTables lists them.
var HistoryTables = []string{HistoryEvents, HistoryOrders, HistoryMissions, HistoryDecisions, HistoryRefusals}

// HistoryTopic is where the rows of a table go.
func HistoryTopic(table string) string { return "history-" + table }

// InboundTopics are those the State Manager consumes.
var InboundTopics = []string{TopicTelemetry, TopicOrders, TopicDecisions, TopicLinks}

// DeadLetterTopic is where a topic's poison goes.
func DeadLetterTopic(topic string) string { return topic + "-dead-letter" }

// Subscription is the State Manager's subscription of a topic; all replicas
// share it.
func Subscription(topic string) string { return topic + "-statemanager" }

// DeadLetterSubscription keeps a topic's dead letters for the operators.
func DeadLetterSubscription(topic string) string { return DeadLetterTopic(topic) + "-review" }

// Ensure creates every missing topic and subscription with the settings that the
// fleet relies on. Existing ones are not changed.
func Ensure(ctx context.Context, c *pubsub.Client) error {
	var topics []string
	for _, t := range InboundTopics {
		topics = append(topics, t, DeadLetterTopic(t))
	}
	if err := ensureTopics(ctx, c, append(topics, TopicMissions)); err != nil {
		return err
	}
	for _, t := range InboundTopics {
		if err := EnsureSubscription(ctx, c, Subscription(t), t, true); err != nil {
			return err
		}
		if err := ensureReview(ctx, c, t); err != nil {
			return err
		}
	}
	return nil
}

// EnsureHistory creates the topics of the history that do not exist. Their subscriptions write to
// BigQuery, and Terraform makes them.
func EnsureHistory(ctx context.Context, c *pubsub.Client) error {
	var topics []string
	for _, table := range HistoryTables {
		topics = append(topics, HistoryTopic(table))
	}
	return ensureTopics(ctx, c, topics)
}

func ensureTopics(ctx context.Context, c *pubsub.Client, topics []string) error {
	for _, t := range topics {
		_, err := c.TopicAdminClient.CreateTopic(ctx, &pubsubpb.Topic{Name: topicName(c, t)})
		if err != nil && status.Code(err) != codes.AlreadyExists {
			return fmt.Errorf("create topic %s: %w", t, err)
		}
	}
	return nil
}

// EnsureSubscription creates a subscription if it does not exist, without Pub/Sub's own
// dead-letter policy: that would give up good messages during an outage of the store.
func EnsureSubscription(ctx context.Context, c *pubsub.Client, name, topic string, ordered bool) error {
	return ensureSubscription(ctx, c, &pubsubpb.Subscription{
		Name: subscriptionName(c, name), Topic: topicName(c, topic),
		AckDeadlineSeconds:    30,
		EnableMessageOrdering: ordered,
		RetryPolicy: &pubsubpb.RetryPolicy{
			MinimumBackoff: durationpb.New(time.Second), MaximumBackoff: durationpb.New(30 * time.Second),
		},
	})
}

// ensureReview creates the subscription for a topic's dead letters. It has no retry
// policy: letters that an operator only looked at are available again at once.
func ensureReview(ctx context.Context, c *pubsub.Client, topic string) error {
	return ensureSubscription(ctx, c, &pubsubpb.Subscription{
		Name: subscriptionName(c, DeadLetterSubscription(topic)), Topic: topicName(c, DeadLetterTopic(topic)),
		AckDeadlineSeconds: 60,
	})
}

func ensureSubscription(ctx context.Context, c *pubsub.Client, sub *pubsubpb.Subscription) error {
	sub.MessageRetentionDuration = durationpb.New(7 * 24 * time.Hour)
	sub.ExpirationPolicy = &pubsubpb.ExpirationPolicy{} // never
	_, err := c.SubscriptionAdminClient.CreateSubscription(ctx, sub)
	if err != nil && status.Code(err) != codes.AlreadyExists {
		return fmt.Errorf("create subscription %s: %w", sub.GetName(), err)
	}
	return nil
}

// CreateTemporary creates a subscription of one process, which DeleteTemporary deletes.
// That of a process that was killed expires after a day. One that exists is used.
func CreateTemporary(ctx context.Context, c *pubsub.Client, name, topic string) error {
	return createTemporary(ctx, c, &pubsubpb.Subscription{Name: name, Topic: topic})
}

// CreateTemporaryOrdered is CreateTemporary with messages in order. The filter, if any, is one of
// Pub/Sub's, such as that for one drone's commands.
func CreateTemporaryOrdered(ctx context.Context, c *pubsub.Client, name, topic, filter string) error {
	return createTemporary(ctx, c, &pubsubpb.Subscription{Name: name, Topic: topic, Filter: filter, EnableMessageOrdering: true})
}

func createTemporary(ctx context.Context, c *pubsub.Client, sub *pubsubpb.Subscription) error {
	name := sub.GetName()
	sub.Name, sub.Topic = subscriptionName(c, name), topicName(c, sub.GetTopic())
	sub.AckDeadlineSeconds = 10
	sub.MessageRetentionDuration = durationpb.New(temporaryRetention)
	sub.ExpirationPolicy = &pubsubpb.ExpirationPolicy{Ttl: durationpb.New(temporaryExpiration)}
	_, err := c.SubscriptionAdminClient.CreateSubscription(ctx, sub)
	if err != nil && status.Code(err) != codes.AlreadyExists {
		return fmt.Errorf("create subscription %s: %w", name, err)
	}
	return nil
}

// Both are Pub/Sub's shortest: what a process that is gone has missed is of no use.
const (
	temporaryRetention  = 10 * time.Minute
	temporaryExpiration = 24 * time.Hour
)

// temporaryDelete bounds the deletion of a temporary subscription.
const temporaryDelete = 5 * time.Second

// DeleteTemporary deletes what CreateTemporary created, even after the end of ctx. It
// expires by itself if this fails.
func DeleteTemporary(ctx context.Context, c *pubsub.Client, name string) error {
	deleting, cancel := context.WithTimeout(context.WithoutCancel(ctx), temporaryDelete)
	defer cancel()
	err := c.SubscriptionAdminClient.DeleteSubscription(deleting, &pubsubpb.DeleteSubscriptionRequest{Subscription: subscriptionName(c, name)})
	if err != nil && status.Code(err) != codes.NotFound {
		return fmt.Errorf("delete subscription %s: %w", name, err)
	}
	return nil
}

// Remedy says what creates a missing topic or subscription. Where Terraform manages them,
// the fleet's own accounts must not: rights granted on a deleted one are lost.
const Remedy = `"terraform apply" creates it, or without Terraform "statemanager serve --create-topics"`

// missing says that a subscription does not exist, and what creates it.
func missing(subscription string) error {
	return fmt.Errorf("subscription %s does not exist; %s", subscription, Remedy)
}

// requireSubscriptions returns an error if an inbound subscription does not exist. An
// account that may not look them up, or a Pub/Sub that does not answer, is not one.
func requireSubscriptions(ctx context.Context, c *pubsub.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, t := range InboundTopics {
		_, err := c.SubscriptionAdminClient.GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{Subscription: subscriptionName(c, Subscription(t))})
		if status.Code(err) == codes.NotFound {
			return missing(Subscription(t))
		}
	}
	return nil
}

func topicName(c *pubsub.Client, id string) string {
	return fmt.Sprintf("projects/%s/topics/%s", c.Project(), id)
}

func subscriptionName(c *pubsub.Client, id string) string {
	return fmt.Sprintf("projects/%s/subscriptions/%s", c.Project(), id)
}
