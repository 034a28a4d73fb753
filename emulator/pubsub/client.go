package pubsubemu

import (
	"context"
	"fmt"
	"net"

	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Dial returns a connection to the server, for generated stubs in the same
// process. The caller closes it.
func (s *Server) Dial(opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	target := s.Addr()
	all := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxRequestBytes)),
	}
	if s.inProcess != nil {
		target = "passthrough:///" + inProcessAddr
		all = append(all, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return s.inProcess.DialContext(ctx)
		}))
	}
	conn, err := grpc.NewClient(target, append(all, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("pubsubemu: dial: %w", err)
	}
	return conn, nil
}

// Client returns a client of a project. The caller closes it.
// PUBSUB_EMULATOR_HOST has no effect on where it connects.
func (s *Server) Client(ctx context.Context, project string, opts ...grpc.DialOption) (*pubsub.Client, error) {
	conn, err := s.Dial(opts...)
	if err != nil {
		return nil, err
	}
	client, err := pubsub.NewClient(ctx, project, option.WithGRPCConn(conn))
	if err != nil {
		_ = conn.Close() // the first error is the one to return
		return nil, err
	}
	return client, nil
}

// TB is what the helpers for tests need of testing.TB, so that programs which use
// the server do not link package testing.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Cleanup(func())
}

// NewClient returns a client of a new server in memory. Both are closed at the
// end of the test.
func NewClient(t TB) *pubsub.Client {
	t.Helper()
	return StartT(t, Options{InProcess: true}).ClientT(t, "test")
}

// StartT is Start for tests: the server is closed at the end of the test.
func StartT(t TB, opts Options) *Server {
	t.Helper()
	s, err := Start(opts)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close embedded Pub/Sub: %v", err)
		}
	})
	return s
}

// ClientT is Client for tests: the client is closed at the end of the test.
func (s *Server) ClientT(t TB, project string, opts ...grpc.DialOption) *pubsub.Client {
	t.Helper()
	c, err := s.Client(context.Background(), project, opts...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close Pub/Sub client: %v", err)
		}
	})
	return c
}
