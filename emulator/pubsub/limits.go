package pubsubemu

import (
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Limits of the service, https://cloud.google.com/pubsub/quotas#resource_limits
// and the field comments of google.pubsub.v1.
const (
	maxPublishMessages   = 1000
	maxPublishBytes      = 10_000_000
	maxSettleBytes       = 512 << 10 // of an Acknowledge or ModifyAckDeadline request
	maxAttributes        = 100
	maxAttributeKey      = 256
	maxAttributeValue    = 1024
	maxOrderingKey       = 1024
	minAckDeadline       = 10 // seconds
	maxAckDeadline       = 600
	minDeadLetterTries   = 5
	maxDeadLetterTries   = 100
	defaultDeadLetter    = 5
	minRetention         = 10 * time.Minute
	maxSubRetention      = 31 * 24 * time.Hour
	maxTopicRetention    = 31 * 24 * time.Hour
	defaultSubRetention  = 7 * 24 * time.Hour
	minExpirationTTL     = 24 * time.Hour
	defaultExpirationTTL = 31 * 24 * time.Hour
)

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func checkPublish(req *pubsubpb.PublishRequest) error {
	n := len(req.Messages)
	if n == 0 {
		return invalid("messages: empty; publish 1 to %d messages", maxPublishMessages)
	}
	if n > maxPublishMessages {
		return invalid("messages: %d in one request; publish at most %d", n, maxPublishMessages)
	}
	if size := proto.Size(req); size > maxPublishBytes {
		return invalid("messages: the request takes %d bytes; publish at most %d", size, maxPublishBytes)
	}
	for i, m := range req.Messages {
		if err := checkMessage(i, m); err != nil {
			return err
		}
	}
	return nil
}

// Attribute keys that begin with reservedKey are refused, except those with which Google's
// clients carry traces.
const (
	reservedKey = "goog"
	clientKey   = "googclient_"
)

func checkMessage(i int, m *pubsubpb.PubsubMessage) error {
	if len(m.GetData()) == 0 && len(m.GetAttributes()) == 0 {
		return invalid("messages[%d]: set data or at least one attribute", i)
	}
	if len(m.Attributes) > maxAttributes {
		return invalid("messages[%d].attributes: %d set; at most %d are allowed", i, len(m.Attributes), maxAttributes)
	}
	for k, v := range m.Attributes {
		switch {
		case k == "":
			return invalid("messages[%d].attributes: a key is empty", i)
		case strings.HasPrefix(k, reservedKey) && !strings.HasPrefix(k, clientKey):
			return invalid("messages[%d].attributes: the key %q begins with %s, which is reserved; rename it", i, k, reservedKey)
		case len(k) > maxAttributeKey:
			return invalid("messages[%d].attributes: a key takes %d bytes; at most %d are allowed", i, len(k), maxAttributeKey)
		case len(v) > maxAttributeValue:
			return invalid("messages[%d].attributes[%q]: the value takes %d bytes; at most %d are allowed", i, k, len(v), maxAttributeValue)
		}
	}
	if len(m.OrderingKey) > maxOrderingKey {
		return invalid("messages[%d].ordering_key: %d bytes; at most %d are allowed", i, len(m.OrderingKey), maxOrderingKey)
	}
	return nil
}

// settleRequest is an Acknowledge or a ModifyAckDeadline.
type settleRequest interface {
	proto.Message
	GetAckIds() []string
}

func checkSettle(req settleRequest) error {
	if len(req.GetAckIds()) == 0 {
		return invalid("ack_ids: empty; give at least one")
	}
	if size := proto.Size(req); size > maxSettleBytes {
		return invalid("ack_ids: the request takes %d bytes; send at most %d", size, maxSettleBytes)
	}
	return nil
}

func checkRange(field string, d *durationpb.Duration, least, most time.Duration) error {
	if err := d.CheckValid(); err != nil {
		return invalid("%s: %v", field, err)
	}
	if v := d.AsDuration(); v < least || v > most {
		return invalid("%s: %v is out of range; use %v to %v", field, v, least, most)
	}
	return nil
}
