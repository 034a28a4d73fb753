package pubsubemu

import (
	"context"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/dronefleet/dronefleet/emulator/pubsub/internal/filter"
)

// halfClosing is a stream whose client has sent another request and closed its side
// before it gets the first answer.
type halfClosing struct {
	pubsubpb.Subscriber_StreamingPullServer
	p    *pullStream
	sent int
}

func (s *halfClosing) Context() context.Context { return context.Background() }

func (s *halfClosing) Send(*pubsubpb.StreamingPullResponse) error {
	if s.sent++; s.sent == 1 {
		s.p.answer(&pubsubpb.StreamingPullResponse{})
		s.p.broken <- nil
	}
	return nil
}

// A client that closes its side still gets the answers to its earlier requests, such
// as the confirmation of an ack. P-RPC-01, P-DEL-05
func TestStreamingPull_AnswersRequestsBeforeHalfClose(t *testing.T) {
	s, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sub := s.newSubscription(&pubsubpb.Subscription{}, nil, filter.Filter{}, 1)
	for range 50 { // the sender may come upon the answer or the end first
		stream := &halfClosing{}
		stream.p = &pullStream{server: s, sub: sub, stream: stream, c: newConsumer(0, 0), broken: make(chan error, 1)}
		stream.p.answer(&pubsubpb.StreamingPullResponse{})
		if err := stream.p.send(); err != nil || stream.sent != 2 {
			t.Fatalf("%d of 2 answers sent: %v", stream.sent, err)
		}
	}
}
