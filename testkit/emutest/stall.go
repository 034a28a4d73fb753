package emutest

import (
	"cmp"
	"context"
	"sync"
	"testing"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
)

// Stalling returns a Firestore client that gets no answer after stall is called. The
// caller closes the client.
func Stalling(t testing.TB, c connect.Config) (client *firestore.Client, stall func()) {
	t.Helper()
	stalled := make(chan struct{})
	wait := func(ctx context.Context) (context.Context, error) {
		select {
		case <-stalled:
			<-ctx.Done()
			return nil, ctx.Err()
		default: // this token exempts from security rules on the official emulator
			return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer owner"), nil
		}
	}
	conn, err := grpc.NewClient(c.FirestoreHost, firestorelock.DialOption(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			ctx, err := wait(ctx)
			if err != nil {
				return err
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			ctx, err := wait(ctx)
			if err != nil {
				return nil, err
			}
			return streamer(ctx, desc, cc, method, opts...)
		}))
	if err != nil {
		t.Fatal(err)
	}
	client, err = firestore.NewClientWithDatabase(t.Context(), c.Project, cmp.Or(c.Database, firestore.DefaultDatabaseID), option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	return client, sync.OnceFunc(func() { close(stalled) })
}
