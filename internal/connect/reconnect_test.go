package connect

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/firestore"
	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// alone hides emulators in the environment from the libraries: a real connection does
// not keep a synctest bubble's time.
func alone(t *testing.T) {
	t.Setenv(FirestoreHost, "")
	t.Setenv(PubSubHost, "")
}

// Clients reconnect within seconds after an outage of ten minutes.
func TestOptions_ReconnectSoonAfterALongOutage(t *testing.T) {
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
			t.Error("got an answer without a server")
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if longest = max(longest, time.Since(last)); longest > 6*time.Second {
			t.Errorf("no connection attempt for %s", longest)
		}
	})
}

// Messages flow again within seconds: a stream opened during the outage waits instead of
// failing, after which the library would back off.
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

// mute is a connection that, once cut, drops all data and stays open.
type mute struct {
	net.Conn
	cut    *atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (m *mute) Write(data []byte) (int, error) {
	if m.cut.Load() {
		return len(data), nil
	}
	return m.Conn.Write(data)
}

func (m *mute) Read(data []byte) (int, error) {
	n, err := m.Conn.Read(data)
	if m.cut.Load() {
		<-m.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (m *mute) Close() error {
	m.once.Do(func() { close(m.closed) })
	return m.Conn.Close()
}

// F-ACK-01: a connection that goes silent without being closed is replaced within a
// minute. Otherwise calls would time out until TCP gives up.
func TestOptions_ReplaceASilentConnection(t *testing.T) {
	alone(t)
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 16)
		server := grpc.NewServer()
		firestorepb.RegisterFirestoreServer(server, firestorepb.UnimplementedFirestoreServer{})
		go server.Serve(listener)
		defer server.Stop()

		var first atomic.Bool // is cut
		dials := 0
		opts, err := options("", grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := listener.DialContext(ctx)
			if dials++; dials > 1 || err != nil {
				return conn, err
			}
			return &mute{Conn: conn, cut: &first, closed: make(chan struct{})}, nil
		}), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		client, err := firestore.NewClient(t.Context(), "p", append(opts, option.WithEndpoint("passthrough:///service"), option.WithoutAuthentication())...)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		answers := func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := client.Doc("control/decisions").Get(ctx)
			return status.Code(err) == codes.Unimplemented
		}
		if !answers() {
			t.Fatal("no answer before the connection is cut")
		}
		first.Store(true)
		cut := time.Now()
		for !answers() {
			if time.Since(cut) > time.Minute {
				t.Fatalf("no answer %s after the connection went silent; %d connections made", time.Since(cut), dials)
			}
		}
	})
}
