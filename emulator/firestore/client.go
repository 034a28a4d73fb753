package firestoreemu

import (
	"context"
	"math"
	"net"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Dial returns a connection to the server, for clients in the same process. The
// caller closes it. Use fault.DialOptions to give the connection an owner.
func (s *Server) Dial(opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	target := s.Addr()
	all := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
	}
	if s.inProcess != nil {
		target = "passthrough:///" + inProcessAddr
		all = append(all, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return s.inProcess.DialContext(ctx)
		}))
	}
	return grpc.NewClient(target, append(all, opts...)...)
}

// Client returns a client of the project's default database. The caller closes
// it. FIRESTORE_EMULATOR_HOST has no effect on where it connects.
func (s *Server) Client(ctx context.Context, project string, opts ...grpc.DialOption) (*firestore.Client, error) {
	conn, err := s.Dial(opts...)
	if err != nil {
		return nil, err
	}
	client, err := firestore.NewClient(ctx, project, option.WithGRPCConn(conn))
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
func NewClient(t TB) *firestore.Client {
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
			t.Errorf("close embedded Firestore: %v", err)
		}
	})
	return s
}

// ClientT is Client for tests: the client is closed at the end of the test.
// Clients of the same project share their documents.
func (s *Server) ClientT(t TB, project string, opts ...grpc.DialOption) *firestore.Client {
	t.Helper()
	c, err := s.Client(context.Background(), project, opts...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close Firestore client: %v", err)
		}
	})
	return c
}
