package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
)

// pullServer hands the streams that clients open to a test.
type pullServer struct {
	pubsubpb.UnimplementedSubscriberServer
	streams chan *served
}

// served is a stream that lasts until the test ends it with an error or its deadline passes.
type served struct {
	pubsubpb.Subscriber_StreamingPullServer
	end chan error
}

func (s pullServer) StreamingPull(stream pubsubpb.Subscriber_StreamingPullServer) error {
	one := &served{stream, make(chan error, 1)}
	s.streams <- one
	select {
	case err := <-one.end:
		return err
	case <-stream.Context().Done():
		return stream.Context().Err()
	}
}

// next is the next stream that the client opened, with its first request.
func (s pullServer) next(t *testing.T) (*served, *pubsubpb.StreamingPullRequest) {
	t.Helper()
	select {
	case stream := <-s.streams:
		first, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return stream, first
	case <-time.After(time.Minute):
		t.Fatal("no stream was opened within a minute")
		return nil, nil
	}
}

// openPull opens a streaming pull that is renewed, at addr.
func openPull(t *testing.T, addr string, r renewal, subscription string) pubsubpb.Subscriber_StreamingPullClient {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStreamInterceptor(r.intercept))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	call, err := pubsubpb.NewSubscriberClient(conn).StreamingPull(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := call.Send(&pubsubpb.StreamingPullRequest{Subscription: subscription, StreamAckDeadlineSeconds: 10}); err != nil {
		t.Fatal(err)
	}
	return call
}

// pullFrom opens a streaming pull from a server whose streams the test serves.
func pullFrom(t *testing.T, r renewal) (pullServer, pubsubpb.Subscriber_StreamingPullClient) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := pullServer{streams: make(chan *served, 100)}
	server := grpc.NewServer()
	pubsubpb.RegisterSubscriberServer(server, s)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return s, openPull(t, listener.Addr().String(), r, "S")
}

// received sends what Recv returns, and ends with its error.
func received(call pubsubpb.Subscriber_StreamingPullClient) (<-chan string, <-chan error) {
	messages, ended := make(chan string, 100), make(chan error, 1)
	go func() {
		for {
			resp, err := call.Recv()
			if err != nil {
				ended <- err
				return
			}
			for _, m := range resp.ReceivedMessages {
				messages <- m.AckId
			}
		}
	}()
	return messages, ended
}

func message(id string) *pubsubpb.StreamingPullResponse {
	return &pubsubpb.StreamingPullResponse{ReceivedMessages: []*pubsubpb.ReceivedMessage{{AckId: id, Message: &pubsubpb.PubsubMessage{}}}}
}

// F-ACK-01: the server learns when a stream must have ended, and so ends it even if
// its client is frozen.
func TestRenewPulls_ServerLearnsTheDeadline(t *testing.T) {
	s, _ := pullFrom(t, pullRenewal)
	stream, _ := s.next(t)
	deadline, has := stream.Context().Deadline()
	if left := time.Until(deadline); !has || left > pullRenewal.deadline {
		t.Errorf("the stream's deadline is in %s (set: %t), want at most %s", left, has, pullRenewal.deadline)
	}
}

// What comes before a stream ends is received, and the next one begins like the first
// with the ack deadline that was asked for last.
func TestRenewPulls_NextStreamContinues(t *testing.T) {
	s, call := pullFrom(t, renewal{after: 200 * time.Millisecond, deadline: time.Minute})
	messages, _ := received(call)
	stream, _ := s.next(t)
	if err := call.Send(&pubsubpb.StreamingPullRequest{StreamAckDeadlineSeconds: 60}); err != nil {
		t.Fatal(err)
	}
	for ended := false; !ended; { // the client half-closes it
		_, err := stream.Recv()
		ended = errors.Is(err, io.EOF)
		if err != nil && !ended {
			t.Fatal(err)
		}
	}
	if err := call.Send(&pubsubpb.StreamingPullRequest{}); err != nil {
		t.Errorf("a keepalive between two streams: %v", err)
	}
	if err := stream.Send(message("late")); err != nil {
		t.Fatal(err)
	}
	stream.end <- nil
	if got := <-messages; got != "late" {
		t.Errorf("received %s, want what was sent after the half-close", got)
	}
	stream, first := s.next(t)
	if first.Subscription != "S" || first.StreamAckDeadlineSeconds != 60 {
		t.Errorf("the next stream begins with %v", first)
	}
	if err := stream.Send(message("next")); err != nil {
		t.Fatal(err)
	}
	if got := <-messages; got != "next" {
		t.Errorf("received %s, want what the next stream sends", got)
	}
}

// A server that does not end a stream that its client has half-closed ends it at the
// deadline, and the next one follows.
func TestRenewPulls_ServerThatIgnoresTheHalfClose(t *testing.T) {
	s, call := pullFrom(t, renewal{after: 50 * time.Millisecond, deadline: 200 * time.Millisecond})
	_, ended := received(call)
	for range 3 {
		s.next(t)
	}
	select {
	case err := <-ended:
		t.Errorf("the caller was told: %v", err)
	default:
	}
}

// A stream that fails is not renewed: the caller decides.
func TestRenewPulls_FailureReachesTheCaller(t *testing.T) {
	for _, want := range []codes.Code{codes.NotFound, codes.Unavailable} {
		s, call := pullFrom(t, pullRenewal)
		_, ended := received(call)
		stream, _ := s.next(t)
		stream.end <- status.Error(want, "no")
		if err := <-ended; status.Code(err) != want {
			t.Errorf("the caller got %v, want %s", err, want)
		}
	}
}

// A stream that the caller half-closes ends for good.
func TestRenewPulls_CallerEndsTheStream(t *testing.T) {
	s, call := pullFrom(t, pullRenewal)
	_, ended := received(call)
	stream, _ := s.next(t)
	if err := call.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the server got %v, want io.EOF", err)
	}
	stream.end <- nil
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("the caller got %v, want io.EOF", err)
	}
	if len(s.streams) > 0 {
		t.Error("another stream was opened")
	}
}

// F-ACK-01: over many renewals every message comes once.
func TestRenewPulls_LosesAndRepeatsNothing(t *testing.T) {
	server := pubsubemu.StartT(t, pubsubemu.Options{})
	conn, err := grpc.NewClient(server.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	publisher, subscriber := pubsubpb.NewPublisherClient(conn), pubsubpb.NewSubscriberClient(conn)
	const topic, subscription = "projects/p/topics/orders", "projects/p/subscriptions/orders"
	if _, err := publisher.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topic}); err != nil {
		t.Fatal(err)
	}
	if _, err := subscriber.CreateSubscription(t.Context(), &pubsubpb.Subscription{
		Name: subscription, Topic: topic, AckDeadlineSeconds: 600, EnableMessageOrdering: true,
	}); err != nil {
		t.Fatal(err)
	}
	call := openPull(t, server.Addr(), renewal{after: 20 * time.Millisecond, deadline: time.Minute}, subscription)
	const total = 400
	published := make(chan error, 1)
	go func() {
		for i := range total {
			if _, err := publisher.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: topic, Messages: []*pubsubpb.PubsubMessage{
				{Data: fmt.Appendf(nil, "%03d", i), OrderingKey: "D1"},
			}}); err != nil {
				published <- err
				return
			}
		}
		published <- nil
	}()
	var got []string
	for len(got) < total {
		resp, err := call.Recv()
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, m := range resp.ReceivedMessages {
			got, ids = append(got, string(m.Message.Data)), append(ids, m.AckId)
		}
		if len(ids) == 0 {
			continue
		}
		if _, err := subscriber.Acknowledge(t.Context(), &pubsubpb.AcknowledgeRequest{Subscription: subscription, AckIds: ids}); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != total {
		t.Errorf("received %v, want %d different messages in order", got, total)
	}
}
