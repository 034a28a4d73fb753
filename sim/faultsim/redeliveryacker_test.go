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

// redeliveryAcker intercepts the product's connections as a faultInjector does.
// When a commit fails, it acks each report that was delivered twice, as if its
// first delivery had been applied.
type redeliveryAcker struct {
	mu   sync.Mutex
	seen map[string]bool // message ids
	acks []func(context.Context) error
}

func (r *redeliveryAcker) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(r.unary), grpc.WithChainStreamInterceptor(r.stream)}
}

func (r *redeliveryAcker) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if _, commit := req.(*fspb.CommitRequest); err == nil || !commit {
		return err
	}
	r.mu.Lock()
	acks := r.acks
	r.acks = nil
	r.mu.Unlock()
	for _, ack := range acks {
		_ = ack(ctx) // best effort
	}
	return err
}

func (r *redeliveryAcker) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, cc, method, opts...)
	if err != nil || method != pubsubpb.Subscriber_StreamingPull_FullMethodName {
		return stream, err
	}
	return &redeliveryRecorder{ClientStream: stream, acker: r, conn: cc}, nil
}

// redeliveryRecorder collects an ack for each message that a stream delivers
// again.
type redeliveryRecorder struct {
	grpc.ClientStream
	acker        *redeliveryAcker
	conn         *grpc.ClientConn
	subscription string // sent once, before anything comes
}

func (s *redeliveryRecorder) SendMsg(m any) error {
	if r, ok := m.(*pubsubpb.StreamingPullRequest); ok && r.GetSubscription() != "" {
		s.subscription = r.GetSubscription()
	}
	return s.ClientStream.SendMsg(m)
}

func (s *redeliveryRecorder) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	r, ok := m.(*pubsubpb.StreamingPullResponse)
	if err != nil || !ok || path.Base(s.subscription) != pubsubio.Subscription(pubsubio.TopicTelemetry) {
		return err
	}
	s.acker.mu.Lock()
	defer s.acker.mu.Unlock()
	for _, d := range r.GetReceivedMessages() {
		id := d.GetMessage().GetMessageId()
		if s.acker.seen[id] {
			ack := &pubsubpb.AcknowledgeRequest{Subscription: s.subscription, AckIds: []string{d.GetAckId()}}
			s.acker.acks = append(s.acker.acks, func(ctx context.Context) error {
				_, err := pubsubpb.NewSubscriberClient(s.conn).Acknowledge(ctx, ack)
				return err
			})
		}
		s.acker.seen[id] = true
	}
	return nil
}
