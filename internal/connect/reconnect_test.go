package connect

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/firestore"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
)

// alone has the libraries connect to no emulator that the environment names: what
// comes from a real network is no part of a bubble's time.
func alone(t *testing.T) {
	t.Setenv(FirestoreHost, "")
	t.Setenv(PubSubHost, "")
}

// A service that is back after ten minutes is found within seconds.
func TestOptions_ReconnectSoonHoweverLongTheOutage(t *testing.T) {
	alone(t)
	synctest.Test(t, func(t *testing.T) {
		last := time.Now()
		var longest time.Duration
		opts, err := options("127.0.0.1:1", grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			longest = max(longest, time.Since(last))
			last = time.Now()
			return nil, errors.New("connection refused")
		}))
		if err != nil {
			t.Fatal(err)
		}
		client, err := firestore.NewClient(t.Context(), "p", opts...)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if _, err := client.Doc("control/decisions").Get(ctx); err == nil {
			t.Error("an answer from nobody")
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if longest = max(longest, time.Since(last)); longest > 6*time.Second {
			t.Errorf("nobody asked for the service for %s", longest)
		}
	})
}

// Messages flow again as soon: the stream that brings them is not refused during
// the outage, which would have the library wait by itself.
func TestPubSub_StreamsOpenSoonAfterAnOutage(t *testing.T) {
	alone(t)
	synctest.Test(t, func(t *testing.T) {
		back := time.Now().Add(10 * time.Minute)
		listener := bufconn.Listen(1 << 16)
		server := grpc.NewServer()
		pubsubpb.RegisterSubscriberServer(server, pubsubpb.UnimplementedSubscriberServer{})
		go server.Serve(listener)
		defer server.Stop()

		client, err := openPubSub(t.Context(), Config{Project: "p", PubSubHost: "127.0.0.1:1"}, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			if time.Now().Before(back) {
				return nil, errors.New("connection refused")
			}
			return listener.DialContext(ctx)
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		_, err = client.SubscriptionAdminClient.StreamingPull(t.Context())
		if late := time.Since(back); err != nil || late > 6*time.Second {
			t.Errorf("opened %s after Pub/Sub was back: %v", late, err)
		}
	})
}
