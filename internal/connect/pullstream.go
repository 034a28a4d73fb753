package connect

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// RenewPulls gives a client's streaming pulls a deadline and renews them before it. At the
// deadline the server stops sending to a frozen process, so that the others get all
// messages. Without one it would send for as long as the connection stays open.
func RenewPulls() grpc.DialOption { return grpc.WithChainStreamInterceptor(pullRenewal.intercept) }

// renewal says when a streaming pull is half-closed, so that the server sends what is
// under way and ends it, and when it ends in any case.
type renewal struct{ after, deadline time.Duration }

var pullRenewal = renewal{after: 7 * time.Second, deadline: 10 * time.Second}

func (r renewal) intercept(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if method != pubsubpb.Subscriber_StreamingPull_FullMethodName {
		return open(ctx, desc, conn, method, opts...)
	}
	s := &renewedPull{renewal: r, ctx: ctx, open: func(ctx context.Context) (grpc.ClientStream, error) {
		return open(ctx, desc, conn, method, opts...)
	}}
	if err := s.renew(); err != nil {
		return nil, err
	}
	return s, nil
}

// renewedPull is a streaming pull that consists of many, one after the other. As with
// every stream, one goroutine may send while another one receives. The client library
// would open the next one itself, but after a pause that grows to 30 s.
type renewedPull struct {
	renewal
	ctx  context.Context
	open func(context.Context) (grpc.ClientStream, error)

	mu      sync.Mutex
	first   *pubsubpb.StreamingPullRequest // opens each stream; nil until it is sent
	current *pull
	closed  bool // by the caller
}

// pull is one of the streams.
type pull struct {
	grpc.ClientStream
	cancel     context.CancelFunc
	half       *time.Timer // half-closes it
	halfClosed bool
}

// renew opens the next stream.
func (s *renewedPull) renew() error {
	for {
		next, err := s.next()
		if err == nil {
			return s.replace(next)
		}
		if s.ctx.Err() != nil || status.Code(err) != codes.DeadlineExceeded {
			return err
		}
	}
}

func (s *renewedPull) next() (*pull, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.deadline)
	stream, err := s.open(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	return &pull{ClientStream: stream, cancel: cancel}, nil
}

// replace makes next the current stream.
func (s *renewedPull) replace(next *pull) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = next
	next.half = time.AfterFunc(s.after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !next.halfClosed {
			next.halfClosed = true
			_ = next.CloseSend() // always nil; RecvMsg tells how the stream ends
		}
	})
	if s.closed {
		next.halfClosed = true
		return next.CloseSend()
	}
	if s.first == nil {
		return nil
	}
	return ignoreEnd(next.SendMsg(s.first))
}

// ignoreEnd drops io.EOF, by which SendMsg says that the stream has ended: RecvMsg tells
// why.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// SendMsg implements grpc.ClientStream. A request other than the first is lost if
// the stream is about to be replaced: it only keeps the stream open.
func (s *renewedPull) SendMsg(m any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	request, is := m.(*pubsubpb.StreamingPullRequest)
	switch {
	case !is:
		return status.Errorf(codes.Internal, "streaming pull: cannot send %T", m)
	case s.first == nil:
		s.first = proto.CloneOf(request)
	case request.StreamAckDeadlineSeconds != 0:
		s.first.StreamAckDeadlineSeconds = request.StreamAckDeadlineSeconds
	}
	if s.current.halfClosed {
		return nil
	}
	return ignoreEnd(s.current.SendMsg(m))
}

// RecvMsg implements grpc.ClientStream.
func (s *renewedPull) RecvMsg(m any) error {
	for {
		stream := s.stream()
		err := stream.RecvMsg(m)
		if err == nil {
			return nil
		}
		stream.half.Stop()
		renewed := s.renews(stream, err)
		stream.cancel()
		if !renewed {
			return err
		}
		if err := s.renew(); err != nil {
			return err
		}
	}
}

// renews reports whether a stream ended because it was to be renewed.
func (s *renewedPull) renews(stream *pull, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.ctx.Err() != nil {
		return false
	}
	return stream.halfClosed && errors.Is(err, io.EOF) || status.Code(err) == codes.DeadlineExceeded
}

// CloseSend implements grpc.ClientStream.
func (s *renewedPull) CloseSend() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.current.halfClosed {
		return nil
	}
	s.current.halfClosed = true
	return s.current.CloseSend()
}

func (s *renewedPull) stream() *pull {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Header implements grpc.ClientStream.
func (s *renewedPull) Header() (metadata.MD, error) { return s.stream().Header() }

// Trailer implements grpc.ClientStream.
func (s *renewedPull) Trailer() metadata.MD { return s.stream().Trailer() }

// Context implements grpc.ClientStream.
func (s *renewedPull) Context() context.Context { return s.ctx }
