package faultsim

import (
	"context"
	"path"
	"sync"

	fspb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
)

// repeats sits on the product's connections as the saboteur does. Behind it the
// product believes, when a commit fails, that of each report delivered twice the
// first delivery was applied, and acks the second.
type repeats struct {
	mu   sync.Mutex
	seen map[string]bool // message ids
	acks []func(context.Context) error
}

func (r *repeats) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(r.unary), grpc.WithChainStreamInterceptor(r.stream)}
}

func (r *repeats) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if _, commit := req.(*fspb.CommitRequest); err == nil || !commit {
		return err
	}
	r.mu.Lock()
	acks := r.acks
	r.acks = nil
	r.mu.Unlock()
	for _, ack := range acks {
		_ = ack(ctx) // one that does not get through harms nobody
	}
	return err
}

func (r *repeats) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, cc, method, opts...)
	if err != nil || method != pubsubpb.Subscriber_StreamingPull_FullMethodName {
		return stream, err
	}
	return &repeatedDeliveries{ClientStream: stream, repeats: r, conn: cc}, nil
}

// repeatedDeliveries notes what a stream delivers that was delivered before.
type repeatedDeliveries struct {
	grpc.ClientStream
	repeats      *repeats
	conn         *grpc.ClientConn
	subscription string // sent once, before anything comes
}

func (s *repeatedDeliveries) SendMsg(m any) error {
	if r, ok := m.(*pubsubpb.StreamingPullRequest); ok && r.GetSubscription() != "" {
		s.subscription = r.GetSubscription()
	}
	return s.ClientStream.SendMsg(m)
}

func (s *repeatedDeliveries) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	r, ok := m.(*pubsubpb.StreamingPullResponse)
	if err != nil || !ok || path.Base(s.subscription) != pubsubio.Subscription(pubsubio.TopicTelemetry) {
		return err
	}
	s.repeats.mu.Lock()
	defer s.repeats.mu.Unlock()
	for _, d := range r.GetReceivedMessages() {
		id := d.GetMessage().GetMessageId()
		if s.repeats.seen[id] {
			ack := &pubsubpb.AcknowledgeRequest{Subscription: s.subscription, AckIds: []string{d.GetAckId()}}
			s.repeats.acks = append(s.repeats.acks, func(ctx context.Context) error {
				_, err := pubsubpb.NewSubscriberClient(s.conn).Acknowledge(ctx, ack)
				return err
			})
		}
		s.repeats.seen[id] = true
	}
	return nil
}
