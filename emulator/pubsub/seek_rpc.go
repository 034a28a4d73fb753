package pubsubemu

import (
	"context"
	"slices"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/dronefleet/dronefleet/emulator/pubsub/internal/filter"
)

// Seek moves a subscription to a time or to a snapshot.
func (s *Server) Seek(_ context.Context, req *pubsubpb.SeekRequest) (*pubsubpb.SeekResponse, error) {
	sub, err := s.subscription("subscription", req.Subscription)
	if err != nil {
		return nil, err
	}
	sub.catchUp()
	switch target := req.Target.(type) {
	case *pubsubpb.SeekRequest_Time:
		if err := target.Time.CheckValid(); err != nil {
			return nil, invalid("time: %v", err)
		}
		at := target.Time.AsTime()
		if err := sub.replay(func(m *message) bool { return !m.published.Before(at) }); err != nil {
			return nil, err
		}
		return &pubsubpb.SeekResponse{}, s.sync()
	case *pubsubpb.SeekRequest_Snapshot:
		snap, err := s.snapshot("snapshot", target.Snapshot)
		if err != nil {
			return nil, err
		}
		if err := s.seekSnapshot(sub, snap); err != nil {
			return nil, err
		}
		return &pubsubpb.SeekResponse{}, s.sync()
	}
	return nil, invalid("target: set time or snapshot")
}

// replay acks the messages that want does not select and makes those that it selects
// unacked, if the subscription or its topic retains them.
func (sub *subscription) replay(want func(*message) bool) error {
	sub.mu.Lock()
	t := sub.topic
	sub.mu.Unlock()
	if t == nil {
		return sub.seek(want, nil)
	}
	t.mu.Lock() // keeps what the topic retains on disk until the subscription has it
	defer t.mu.Unlock()
	return sub.seek(want, t.replayable(sub.server.now()))
}

// seekSnapshot makes exactly the messages unacked that the snapshot holds: those that
// were unacked when it was taken, and all that were published since.
func (s *Server) seekSnapshot(sub *subscription, snap *snapshot) error {
	s.mu.RLock() // keeps the snapshot and its messages on disk until the subscription has them
	defer s.mu.RUnlock()
	if s.snapshots[snap.name] != snap { // deleted meanwhile
		return notFound(snap.name)
	}
	sub.mu.Lock()
	t, isOrdered := sub.topic, sub.backlog.rules.ordered
	sub.mu.Unlock()
	if t == nil || snap.topic != t {
		return status.Errorf(codes.FailedPrecondition,
			"snapshot %s: belongs to another topic than subscription %s; seek a subscription of the same topic", snap.name, sub.name)
	}
	if isOrdered && !snap.ordered {
		return status.Errorf(codes.FailedPrecondition,
			"snapshot %s: taken from a subscription without message ordering; subscription %s is ordered and could get messages out of order", snap.name, sub.name)
	}
	t.mu.Lock() // waits for running publishes: the snapshot then has what the subscription has
	defer t.mu.Unlock()
	snap.mu.Lock()
	held := slices.Clone(snap.messages)
	snap.mu.Unlock()
	wanted := make(map[uint64]bool, len(held))
	for _, m := range held {
		wanted[m.id] = true
	}
	return sub.seek(func(m *message) bool { return wanted[m.id] }, held)
}

func (sub *subscription) seek(want func(*message) bool, extra []*message) error {
	restorable := extra[:0]
	for _, m := range extra {
		if want(m) && matches(sub.filter, m) {
			restorable = append(restorable, m)
		}
	}
	sub.mu.Lock()
	defer sub.unlock()
	if sub.ended != nil {
		return sub.ended
	}
	sub.backlog.seek(want, restorable)
	return nil
}

// matches evaluates a filter on a stored message.
func matches(f filter.Filter, m *message) bool {
	if f.Everything() {
		return true
	}
	decoded := &pubsubpb.PubsubMessage{}
	return proto.Unmarshal(m.wire, decoded) == nil && f.Matches(decoded.Attributes)
}
