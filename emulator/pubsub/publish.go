package pubsubemu

import (
	"context"
	"strconv"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dronefleet/dronefleet/emulator/pubsub/fault"
)

// Publish stores the messages in every matching subscription before it answers.
func (s *Server) Publish(_ context.Context, req *pubsubpb.PublishRequest) (*pubsubpb.PublishResponse, error) {
	t, err := s.topic("topic", req.Topic)
	if err != nil {
		return nil, err
	}
	if err := checkPublish(req); err != nil {
		return nil, err
	}
	ids, err := s.publish(t, req.Messages)
	if err != nil {
		return nil, err
	}
	if last, err := strconv.ParseUint(ids[len(ids)-1], 10, 64); err == nil && s.faults.Hit(fault.LoseAnswer, t.name, last) {
		return nil, errAnswerLost
	}
	return &pubsubpb.PublishResponse{MessageIds: ids}, nil
}

// publish gives checked messages their ids and times and stores them. It owns them
// from now on.
func (s *Server) publish(t *topic, in []*pubsubpb.PubsubMessage) ([]string, error) {
	published, stored := s.opts.PublishTime(), s.now()
	stamp := timestamppb.New(published)
	last := s.lastMessage.Add(uint64(len(in)))
	id := last - uint64(len(in))
	ids := make([]string, len(in))
	msgs := make([]*message, len(in))
	for i, m := range in {
		id++
		ids[i] = strconv.FormatUint(id, 10)
		m.MessageId, m.PublishTime = ids[i], stamp
		wire, err := proto.Marshal(m)
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "messages[%d]: %v", i, err)
		}
		msgs[i] = &message{
			id: id, wire: wire, size: flowSize(m), published: published, stored: stored, key: m.OrderingKey,
		}
	}
	if t.hasExpiredSnapshot(s.opts.Clock.Now()) {
		s.dropExpiredSnapshots()
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.deleted {
		return nil, notFound(t.name)
	}
	shares := t.shares(msgs, in)
	if err := s.record(msgs, shares); err != nil {
		return nil, err
	}
	for _, share := range shares {
		share.to.hold(share.msgs)
	}
	s.published.Add(uint64(len(ids)))
	return ids, nil
}

// flowSize is the size of a message in flow control: payload and attributes.
func flowSize(m *pubsubpb.PubsubMessage) int64 {
	size := len(m.Data)
	for k, v := range m.Attributes {
		size += len(k) + len(v)
	}
	return int64(size)
}
