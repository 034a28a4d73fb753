package pubsubio

import (
	"context"
	"maps"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

// Attributes of a dead letter, beside the original message's own.
const (
	AttrReason        = "dronefleet-reason"
	AttrError         = "dronefleet-error"
	AttrMessageID     = "dronefleet-message-id"
	AttrTopic         = "dronefleet-topic"
	AttrPublishTime   = "dronefleet-publish-time"
	AttrOrderingKey   = "dronefleet-ordering-key"
	maxAttributeBytes = 1024 // Pub/Sub's limit for a value
)

// deadLetters publishes poison with the reason why.
type deadLetters struct{ publisher *Publisher }

// publish returns when the server has the dead letter.
func (d *deadLetters) publish(ctx context.Context, topic string, msg *pubsub.Message, reason string, cause error) error {
	attrs := maps.Clone(msg.Attributes)
	if attrs == nil {
		attrs = map[string]string{}
	}
	attrs[AttrReason] = reason
	attrs[AttrError] = truncate(cause.Error(), maxAttributeBytes)
	attrs[AttrMessageID] = msg.ID
	attrs[AttrTopic] = topic
	attrs[AttrPublishTime] = msg.PublishTime.UTC().Format(timeLayout)
	if msg.OrderingKey != "" {
		attrs[AttrOrderingKey] = msg.OrderingKey
	}
	_, err := d.publisher.Publish(ctx, DeadLetterTopic(topic), msg.Data, attrs, "").Wait(ctx)
	return err
}

const timeLayout = "2006-01-02T15:04:05.000000Z07:00"

// truncate shortens text to at most n bytes, at a rune's border.
func truncate(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:n]
}

// DeadLetter is a message that was refused for good.
type DeadLetter struct {
	Topic       string // the original message's topic
	MessageID   string // the original message's id
	PublishTime time.Time
	OrderingKey string
	Reason      string
	Error       string
	Data        []byte
	Attributes  map[string]string // the original message's own

	ackID string
}

func decodeDeadLetter(m *pubsubpb.ReceivedMessage) DeadLetter {
	attrs := maps.Clone(m.GetMessage().GetAttributes())
	letter := DeadLetter{
		Topic: attrs[AttrTopic], MessageID: attrs[AttrMessageID], OrderingKey: attrs[AttrOrderingKey],
		Reason: attrs[AttrReason], Error: attrs[AttrError], Data: m.GetMessage().GetData(), ackID: m.GetAckId(),
	}
	letter.PublishTime, _ = time.Parse(timeLayout, attrs[AttrPublishTime]) // the zero time says it is unknown
	for _, name := range []string{AttrTopic, AttrMessageID, AttrOrderingKey, AttrReason, AttrError, AttrPublishTime} {
		delete(attrs, name)
	}
	letter.Attributes = attrs
	return letter
}
