package pubsubemu

import (
	"strconv"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"
)

// deadLetter forwards messages after their last attempt to the dead-letter topic, in
// one publish: the caller waits, and with a data directory a publish waits for the
// disk.
func (sub *subscription) deadLetter(config *pubsubpb.Subscription, exhausted []*entry) {
	err := sub.forward(config.DeadLetterPolicy.GetDeadLetterTopic(), exhausted)
	sub.mu.Lock()
	defer sub.unlock()
	if sub.ended != nil {
		return // deleted or detached meanwhile: it no longer holds them
	}
	now := sub.server.now()
	for _, e := range exhausted {
		sub.backlog.forwarded(e, err == nil, now)
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

func (sub *subscription) forward(deadLetterTopic string, exhausted []*entry) error {
	t, err := sub.server.topic("dead_letter_topic", deadLetterTopic)
	if err != nil {
		return err
	}
	letters := make([]*pubsubpb.PubsubMessage, len(exhausted))
	for i, e := range exhausted {
		letters[i] = &pubsubpb.PubsubMessage{}
		if err := proto.Unmarshal(e.msg.wire, letters[i]); err != nil {
			return err
		}
		if letters[i].Attributes == nil {
			letters[i].Attributes = map[string]string{}
		}
		letters[i].Attributes[deadLetterSubscription] = idOf(sub.name)
		letters[i].Attributes[deadLetterProject] = projectOf(sub.name)
		letters[i].Attributes[deadLetterCount] = strconv.Itoa(int(e.failures))
		letters[i].Attributes[deadLetterPublishTime] = e.msg.published.UTC().Format(time.RFC3339Nano)
	}
	_, err = sub.server.publish(t, letters)
	return err
}
