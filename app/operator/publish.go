package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
)

// Message is a message to publish. It is sent unchecked, because the State Manager validates it.
type Message struct {
	Topic string // of pubsubio.InboundTopics
	Data  []byte
	// OrderingKey keeps the order of the messages that share it. If it is empty, a report that can
	// be decoded gets its drone's id.
	OrderingKey string
	Attributes  map[string]string
}

// MaxPublishedBytes is Pub/Sub's limit on the data of a message.
const MaxPublishedBytes = 10_000_000

// Publish publishes a message and returns its id.
//
// Cost: Pub/Sub, 1 RPC.
func (c Commands) Publish(ctx context.Context, m Message) (id string, err error) {
	switch {
	case !slices.Contains(pubsubio.InboundTopics, m.Topic):
		return "", fmt.Errorf("topic is %.64q; give one of %v", m.Topic, pubsubio.InboundTopics)
	case len(m.Data) == 0:
		return "", errors.New("the payload is empty; give the message's bytes")
	case len(m.Data) > MaxPublishedBytes:
		return "", fmt.Errorf("the payload has more than %d bytes, which is Pub/Sub's limit", MaxPublishedBytes)
	}
	if err := CheckOrderingKey(m.OrderingKey); err != nil {
		return "", fmt.Errorf("ordering key %w", err)
	}
	if err := CheckAttributes(m.Attributes); err != nil {
		return "", fmt.Errorf("attributes %w", err)
	}
	publisher := pubsubio.NewPublisher(c.PubSub)
	id, err = publisher.Publish(ctx, m.Topic, m.Data, maps.Clone(m.Attributes), m.orderingKey()).Wait(ctx)
	if err != nil && ctx.Err() != nil {
		go publisher.Stop() // it waits for the server; the caller no longer does
		return "", fmt.Errorf("interrupted while publishing; topic %s may have the message", m.Topic)
	}
	publisher.Stop()
	if status.Code(err) == codes.NotFound {
		return "", fmt.Errorf("topic %s does not exist; %s", m.Topic, pubsubio.Remedy)
	}
	if err != nil {
		return "", fmt.Errorf("publish to %s: %w", m.Topic, err)
	}
	return id, nil
}

// orderingKey is the given key, or the drone of a report (F-TEL-13).
func (m Message) orderingKey() string {
	if m.OrderingKey == "" && m.Topic == pubsubio.TopicTelemetry {
		if t, err := wire.DecodeTelemetry(m.Data, m.Attributes); err == nil {
			return string(t.DroneID)
		}
	}
	return m.OrderingKey
}

// Pub/Sub's limits on what accompanies a message.
const (
	maxOrderingKeyBytes    = 1024
	maxAttributes          = 100
	maxAttributeNameBytes  = 256
	maxAttributeValueBytes = 1024
)

// CheckOrderingKey says what is wrong with an ordering key.
func CheckOrderingKey(key string) error {
	if len(key) > maxOrderingKeyBytes {
		return fmt.Errorf("has %d bytes; give at most %d", len(key), maxOrderingKeyBytes)
	}
	return checkText(key)
}

// CheckAttributes says what is wrong with the attributes of a message.
func CheckAttributes(attributes map[string]string) error {
	if len(attributes) > maxAttributes {
		return fmt.Errorf("has %d entries; give at most %d", len(attributes), maxAttributes)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		value := attributes[name]
		switch {
		case name == "" || len(name) > maxAttributeNameBytes || checkText(name) != nil:
			return fmt.Errorf("has the name %.64q; give 1 to %d bytes of UTF-8", name, maxAttributeNameBytes)
		case strings.HasPrefix(name, "goog"):
			return fmt.Errorf("has the name %.64q; names that begin with goog are Pub/Sub's", name)
		case len(value) > maxAttributeValueBytes || checkText(value) != nil:
			return fmt.Errorf("%.64q has %d bytes; give at most %d, of UTF-8", name, len(value), maxAttributeValueBytes)
		}
	}
	return nil
}

func checkText(text string) error {
	if !utf8.ValidString(text) {
		return errors.New("is not valid UTF-8")
	}
	return nil
}
