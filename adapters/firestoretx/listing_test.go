package firestoretx_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// brokenStream is a stream whose connection has broken.
type brokenStream struct{ grpc.ClientStream }

func (brokenStream) RecvMsg(any) error {
	return status.Error(codes.Unavailable, "the connection broke")
}

// A page whose connection breaks is read again, but not for ever.
func TestStore_ReadsAPageAgainWhoseConnectionBreaks(t *testing.T) {
	hosts := emutest.Hosts(t)
	emutest.Connect(t, hosts)
	var breaks atomic.Int32
	conn, err := grpc.NewClient(hosts.FirestoreHost, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			// The token exempts from security rules on the official emulator.
			stream, err := streamer(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer owner"), desc, cc, method, opts...)
			if err == nil && strings.HasSuffix(method, "/RunQuery") && breaks.Add(-1) >= 0 {
				return brokenStream{stream}, nil
			}
			return stream, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	client, err := firestore.NewClient(t.Context(), hosts.Project, option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	store := firestoretx.New(client, firestoretx.Config{})
	for n, want := range []bool{true, true, false} {
		breaks.Store(int32(n))
		if _, err := store.ListDrones(t.Context(), firestoretx.DroneFilter{}, firestoretx.Page{Limit: 10}); (err == nil) != want {
			t.Errorf("after %d broken connections: %v", n, err)
		}
	}
}
