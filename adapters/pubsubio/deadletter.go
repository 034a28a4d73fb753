package pubsubio

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/dronefleet/dronefleet/adapters/wire"
)

// Attributes of a dead letter, beside the original message's own.
const (
	AttrReason    = "dronefleet-reason"
	AttrError     = "dronefleet-error"
	AttrMessageID = "dronefleet-message-id"
	AttrTopic     = "dronefleet-topic"
	// AttrPublishTime is when the original was published. A replayed message
	// carries it too.
	AttrPublishTime = "dronefleet-publish-time"
	AttrOrderingKey = "dronefleet-ordering-key"
	// AttrDataBytes is the size of the original's data if the letter holds only
	// its beginning.
	AttrDataBytes = "dronefleet-data-bytes"
	// AttrAttributesDropped is how many of the original's attributes did not fit
	// into the letter.
	AttrAttributesDropped = "dronefleet-attributes-dropped"
)

// Attributes of a replayed message: the operator who asked for it, and the id of the
// message whose dead letter was replayed.
const (
	AttrReplayedBy = "dronefleet-replayed-by"
	AttrReplayOf   = "dronefleet-replay-of"
)

var letterAttributes = []string{
	AttrReason, AttrError, AttrMessageID, AttrTopic, AttrPublishTime, AttrOrderingKey, AttrDataBytes, AttrAttributesDropped,
}

// Limits of Pub/Sub, https://cloud.google.com/pubsub/quotas#resource_limits. The
// letter of a message that uses all of them must still be accepted.
const (
	maxAttributeBytes = 1024 // of a value
	maxAttributes     = 100
	maxPublishBytes   = 10_000_000
	// What publishing adds: the topic's name, the encoding, the trace.
	publishMargin   = 64 << 10
	traceAttributes = 2
	attributeMargin = 16 // of an attribute, for its encoding
)

// letterTimeout is how long publishing a dead letter may take before its message is
// nacked.
const letterTimeout = 10 * time.Second

// deadLetters publishes poison with its reason.
type deadLetters struct {
	publisher *Publisher
	timeout   time.Duration
}

// publish returns nil when the server has the dead letter, and an error when it may
// not: after the timeout or when ctx ends.
func (d *deadLetters) publish(ctx context.Context, topic string, msg *pubsub.Message, reason string, cause error) error {
	if err := ctx.Err(); err != nil {
		return err // no time to wait for the answer
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	data, attrs := wrap(topic, msg, reason, cause)
	_, err := d.publisher.Publish(ctx, DeadLetterTopic(topic), data, attrs, "").Wait(ctx)
	return err
}

// wrap makes a message's dead letter. Pub/Sub accepts it whatever the message is:
// what does not fit is cut off, and the letter says how much.
func wrap(topic string, msg *pubsub.Message, reason string, cause error) (data []byte, attrs map[string]string) {
	attrs = map[string]string{
		AttrReason:      reason,
		AttrError:       errorText(cause),
		AttrMessageID:   msg.ID,
		AttrTopic:       topic,
		AttrPublishTime: published(msg).UTC().Format(timeLayout),
	}
	if msg.OrderingKey != "" {
		attrs[AttrOrderingKey] = msg.OrderingKey
	}
	kept, dropped := keep(msg.Attributes, maxAttributes-traceAttributes-len(letterAttributes))
	maps.Copy(attrs, kept)
	if dropped > 0 {
		attrs[AttrAttributesDropped] = strconv.Itoa(dropped)
	}
	room := maxPublishBytes - publishMargin
	for name, value := range attrs {
		room -= len(name) + len(value) + attributeMargin
	}
	if data = msg.Data; len(data) > room {
		attrs[AttrDataBytes] = strconv.Itoa(len(data))
		data = data[:room]
	}
	return data, attrs
}

// errorText is the text of an error as letters and records keep it.
func errorText(cause error) string {
	return truncate(strings.ToValidUTF8(cause.Error(), "\ufffd"), maxAttributeBytes)
}

// keep takes at most room of a message's own attributes in order of name, the
// content type first.
func keep(attrs map[string]string, room int) (kept map[string]string, dropped int) {
	var names []string
	for name := range attrs {
		if !slices.Contains(letterAttributes, name) {
			names = append(names, name)
		}
	}
	if len(names) > room {
		slices.SortFunc(names, func(a, b string) int {
			if a == wire.AttrContentType {
				return -1
			}
			if b == wire.AttrContentType {
				return 1
			}
			return cmp.Compare(a, b)
		})
		names, dropped = names[:room], len(names)-room
	}
	kept = make(map[string]string, len(names))
	for _, name := range names {
		kept[name] = attrs[name]
	}
	return kept, dropped
}

const timeLayout = "2006-01-02T15:04:05.000000Z07:00"

// published is when a message was first published: a replay does not make it newer
// than messages published since.
func published(msg *pubsub.Message) time.Time {
	first, err := time.Parse(timeLayout, msg.Attributes[AttrPublishTime])
	if err == nil && !first.IsZero() && first.Before(msg.PublishTime) {
		return first
	}
	return msg.PublishTime
}

// truncate shortens text to at most n bytes, between runes.
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
	ID          string // the letter's own, as a message of the dead-letter topic
	Topic       string // the original message's topic
	MessageID   string // the original message's id
	PublishTime time.Time
	OrderingKey string
	Reason      string
	Error       string
	Data        []byte
	Attributes  map[string]string // the original message's own
	// OriginalBytes is the size of the original message's data, and
	// AttributesDropped the number of attributes it lost, if the letter could not
	// hold all of it; otherwise both are 0.
	OriginalBytes, AttributesDropped int

	ackID string
}

// replayed are the attributes of the message when it is published again because
// by, if known, asked for it.
func (l DeadLetter) replayed(by string) map[string]string {
	attrs := make(map[string]string, len(l.Attributes)+3)
	maps.Copy(attrs, l.Attributes)
	delete(attrs, AttrReplayedBy) // who did it before
	attrs[AttrReplayOf] = l.Original()
	if by != "" {
		attrs[AttrReplayedBy] = by
	}
	if !l.PublishTime.IsZero() {
		attrs[AttrPublishTime] = l.PublishTime.UTC().Format(timeLayout)
	}
	return attrs
}

// Original is the id of the message that was refused. Somebody may have published to
// the dead-letter topic; then the letter is that message.
func (l DeadLetter) Original() string { return cmp.Or(l.MessageID, l.ID) }

// Complete returns nil, or an *IncompleteError if the letter does not hold all
// of its message.
func (l DeadLetter) Complete() error {
	if l.OriginalBytes == 0 && l.AttributesDropped == 0 {
		return nil
	}
	return &IncompleteError{l}
}

// IncompleteError says that a letter does not hold all of its message, so the
// message cannot be published again from it.
type IncompleteError struct{ Letter DeadLetter }

func (e *IncompleteError) Error() string {
	var lacks []string
	if n := e.Letter.OriginalBytes; n > 0 {
		lacks = append(lacks, fmt.Sprintf("only the first %d of %d bytes", len(e.Letter.Data), n))
	}
	if n := e.Letter.AttributesDropped; n > 0 {
		lacks = append(lacks, fmt.Sprintf("%d attributes too few", n))
	}
	return fmt.Sprintf("message %s: its dead letter holds %s; have its sender publish it again", e.Letter.MessageID, strings.Join(lacks, " and "))
}

func decodeDeadLetter(m *pubsubpb.ReceivedMessage) DeadLetter {
	attrs := maps.Clone(m.GetMessage().GetAttributes())
	letter := DeadLetter{
		ID: m.GetMessage().GetMessageId(), Topic: attrs[AttrTopic], MessageID: attrs[AttrMessageID], OrderingKey: attrs[AttrOrderingKey],
		Reason: attrs[AttrReason], Error: attrs[AttrError], Data: m.GetMessage().GetData(), ackID: m.GetAckId(),
	}
	letter.PublishTime, _ = time.Parse(timeLayout, attrs[AttrPublishTime]) // the zero time says it is unknown
	letter.OriginalBytes, _ = strconv.Atoi(attrs[AttrDataBytes])           // none in a letter that is complete
	letter.AttributesDropped, _ = strconv.Atoi(attrs[AttrAttributesDropped])
	for _, name := range letterAttributes {
		delete(attrs, name)
	}
	letter.Attributes = attrs
	return letter
}
