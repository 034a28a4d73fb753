package pubsubemu

import (
	"context"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// pullWait is how long, on Clock, a Pull waits for a message. The service also
// answers such a Pull with nothing before the client's own deadline.
const pullWait = 10 * time.Second

// Pull leases up to max_messages at once, or waits for the first one.
func (s *Server) Pull(ctx context.Context, req *pubsubpb.PullRequest) (*pubsubpb.PullResponse, error) {
	sub, err := s.subscription("subscription", req.Subscription)
	if err != nil {
		return nil, err
	}
	if req.MaxMessages <= 0 {
		return nil, invalid("max_messages: %d; ask for at least 1", req.MaxMessages)
	}
	c := newConsumer(0, 0)
	if err := sub.open(c); err != nil {
		return nil, err
	}
	defer sub.closePull(c)
	limits := largestBatch
	limits.messages = min(limits.messages, int(req.MaxMessages))
	var timeout <-chan time.Time
	var response pullResponse
	for {
		if taken := sub.take(c, limits, nil, &response); len(taken) > 0 {
			return response.unary()
		}
		//lint:ignore SA1019 deprecated, but clients still send it
		if req.ReturnImmediately {
			return &pubsubpb.PullResponse{}, nil
		}
		if timeout == nil {
			timer := s.opts.Clock.NewTimer(pullWait)
			defer timer.Stop()
			timeout = timer.Chan()
		}
		select {
		case <-c.wake:
		case <-s.faults.Outage():
			return nil, errOutage
		case <-timeout:
			return &pubsubpb.PullResponse{}, nil
		case <-sub.gone:
			return nil, sub.ended
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

// unary returns the deliveries as the answer to a Pull.
func (r *pullResponse) unary() (*pubsubpb.PullResponse, error) {
	out := &pubsubpb.PullResponse{ReceivedMessages: make([]*pubsubpb.ReceivedMessage, len(r.deliveries))}
	for i, d := range r.deliveries {
		m := &pubsubpb.PubsubMessage{}
		if err := proto.Unmarshal(d.wire, m); err != nil {
			return nil, status.Errorf(codes.Internal, "stored message does not decode: %v", err)
		}
		out.ReceivedMessages[i] = &pubsubpb.ReceivedMessage{AckId: d.ackID, Message: m, DeliveryAttempt: d.attempt}
	}
	return out, nil
}
