package pubsubemu

import (
	"strconv"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"
)

// deadLetter forwards exhausted messages to the dead-letter topic.
func (sub *subscription) deadLetter(config *pubsubpb.Subscription, exhausted []*entry) {
	t, err := sub.server.topic("dead_letter_topic", config.DeadLetterPolicy.GetDeadLetterTopic())
	for _, e := range exhausted {
		forwarded := err == nil && sub.forward(t, e) == nil
		sub.mu.Lock()
		sub.backlog.forwarded(e, forwarded)
		sub.unlock()
	}
}

// Attributes the service adds to a dead-lettered message,
// https://cloud.google.com/pubsub/docs/handling-failures.
const (
	deadLetterSubscription = "CloudPubSubDeadLetterSourceSubscription"
	deadLetterProject      = "CloudPubSubDeadLetterSourceSubscriptionProject"
	deadLetterCount        = "CloudPubSubDeadLetterSourceDeliveryCount"
	deadLetterPublishTime  = "CloudPubSubDeadLetterSourceTopicPublishTime"
)

func (sub *subscription) forward(t *topic, e *entry) error {
	letter := &pubsubpb.PubsubMessage{}
	if err := proto.Unmarshal(e.msg.wire, letter); err != nil {
		return err
	}
	if letter.Attributes == nil {
		letter.Attributes = map[string]string{}
	}
	letter.Attributes[deadLetterSubscription] = idOf(sub.name)
	letter.Attributes[deadLetterProject] = projectOf(sub.name)
	letter.Attributes[deadLetterCount] = strconv.Itoa(int(e.attempts))
	letter.Attributes[deadLetterPublishTime] = e.msg.published.UTC().Format(time.RFC3339Nano)
	_, err := sub.server.publish(t, []*pubsubpb.PubsubMessage{letter})
	return err
}
