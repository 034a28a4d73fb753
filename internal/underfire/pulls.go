package underfire

import (
	"context"
	"strings"
	"sync"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
)

// pulls bounds how many streams consume a subscription at once; the others wait
// until one of them ends. The embedded Pub/Sub shares a backlog between two
// streams, but three or more that wait at the same time can keep it for one
// another for ever, each woken and each given nothing. Until that is mended
// there, a run would hang for a reason that is not the product's.
type pulls struct {
	limit int
	mu    sync.Mutex
	lines map[string]chan struct{}
}

func newPulls(limit int) *pulls { return &pulls{limit: limit, lines: map[string]chan struct{}{}} }

func (p *pulls) line(subscription string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lines[subscription] == nil {
		p.lines[subscription] = make(chan struct{}, p.limit)
	}
	return p.lines[subscription]
}

// dialOption makes a connection's streams wait for their turn.
func (p *pulls) dialOption() grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := open(ctx, desc, cc, method, opts...)
		if err != nil || !strings.HasSuffix(method, "/StreamingPull") {
			return stream, err
		}
		return &pullStream{stream, p}, nil
	})
}

type pullStream struct {
	grpc.ClientStream
	pulls *pulls
}

// SendMsg waits, before the request that names the subscription, until it may be
// consumed.
func (s *pullStream) SendMsg(m any) error {
	if req, ok := m.(*pubsubpb.StreamingPullRequest); ok && req.GetSubscription() != "" {
		line := s.pulls.line(req.GetSubscription())
		select {
		case line <- struct{}{}:
			context.AfterFunc(s.Context(), func() { <-line })
		case <-s.Context().Done():
			return s.Context().Err()
		}
	}
	return s.ClientStream.SendMsg(m)
}
