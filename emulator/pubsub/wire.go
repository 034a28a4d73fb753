package pubsubemu

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that codec extends
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of google.pubsub.v1, pubsub.proto.
const (
	fieldReceivedMessages       = 1 // StreamingPullResponse
	fieldSubscriptionProperties = 4 // StreamingPullResponse
	fieldAckID                  = 1 // ReceivedMessage
	fieldMessage                = 2 // ReceivedMessage
	fieldDeliveryAttempt        = 3 // ReceivedMessage
	fieldExactlyOnce            = 1 // SubscriptionProperties
	fieldOrdered                = 2 // SubscriptionProperties
)

// delivery is one message as handed to one consumer. It is a copy: the lease
// may end while the delivery is still being written.
type delivery struct {
	lease   uint64
	ackID   string
	wire    []byte
	attempt int32 // 0 leaves delivery_attempt unset
}

func (d delivery) size() int {
	n := protowire.SizeTag(fieldAckID) + protowire.SizeBytes(len(d.ackID)) +
		protowire.SizeTag(fieldMessage) + protowire.SizeBytes(len(d.wire))
	if d.attempt > 0 {
		n += protowire.SizeTag(fieldDeliveryAttempt) + protowire.SizeVarint(uint64(d.attempt))
	}
	return n
}

// pullResponse is a StreamingPullResponse written straight from the stored
// encodings. Decoding every message only to encode it again would cost more
// than all other work of a delivery together.
type pullResponse struct {
	deliveries  []delivery
	exactlyOnce bool
	ordered     bool
}

func (r *pullResponse) size() int {
	n := 0
	for _, d := range r.deliveries {
		n += protowire.SizeTag(fieldReceivedMessages) + protowire.SizeBytes(d.size())
	}
	return n + 8 // the properties take at most 6 bytes
}

func (r *pullResponse) appendTo(b []byte) []byte {
	for _, d := range r.deliveries {
		b = protowire.AppendTag(b, fieldReceivedMessages, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(d.size()))
		b = protowire.AppendTag(b, fieldAckID, protowire.BytesType)
		b = protowire.AppendString(b, d.ackID)
		b = protowire.AppendTag(b, fieldMessage, protowire.BytesType)
		b = protowire.AppendBytes(b, d.wire)
		if d.attempt > 0 {
			b = protowire.AppendTag(b, fieldDeliveryAttempt, protowire.VarintType)
			b = protowire.AppendVarint(b, uint64(d.attempt))
		}
	}
	var properties [4]byte
	p := properties[:0]
	if r.exactlyOnce {
		p = protowire.AppendTag(p, fieldExactlyOnce, protowire.VarintType)
		p = protowire.AppendVarint(p, 1)
	}
	if r.ordered {
		p = protowire.AppendTag(p, fieldOrdered, protowire.VarintType)
		p = protowire.AppendVarint(p, 1)
	}
	b = protowire.AppendTag(b, fieldSubscriptionProperties, protowire.BytesType)
	return protowire.AppendBytes(b, p)
}

// codec is gRPC's protobuf codec with pullResponse as a further message.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	r, ok := v.(*pullResponse)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	size := r.size()
	if mem.IsBelowBufferPoolingThreshold(size) {
		return mem.BufferSlice{mem.SliceBuffer(r.appendTo(make([]byte, 0, size)))}, nil
	}
	pool := mem.DefaultBufferPool()
	buffer := pool.Get(size)
	written := r.appendTo((*buffer)[:0])
	if len(written) > size {
		return nil, fmt.Errorf("streaming pull response takes %d bytes, %d reserved", len(written), size)
	}
	*buffer = written
	return mem.BufferSlice{mem.NewBuffer(buffer, pool)}, nil
}
