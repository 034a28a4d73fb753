package pubsubio

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// line is a client of Pub/Sub whose calls the test sees and may hold up, and
// another one for what the world sends.
type line struct {
	t       *testing.T
	hosts   connect.Config
	client  *pubsub.Client
	outside *pubsub.Client
	world   *Publisher
	meter   *meter.Meter

	mu        sync.Mutex
	onPublish func(ctx context.Context, topic string, messages []*pubsubpb.PubsubMessage) error
	acked     map[string]bool // ids of leases
	nacked    map[string]bool
	opened    map[string][]*pubsubpb.StreamingPullRequest // by subscription
}

func newLine(t *testing.T) *line {
	t.Helper()
	hosts := emutest.Hosts(t)
	l := &line{
		t: t, hosts: hosts, meter: meter.New(), outside: emutest.Connect(t, hosts).PubSub,
		acked: map[string]bool{}, nacked: map[string]bool{}, opened: map[string][]*pubsubpb.StreamingPullRequest{},
	}
	conn, err := grpc.NewClient(hosts.PubSubHost, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(l.unary), grpc.WithStreamInterceptor(l.stream))
	if err != nil {
		t.Fatal(err)
	}
	if l.client, err = pubsub.NewClient(t.Context(), hosts.Project, option.WithGRPCConn(conn)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.client.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if err := Ensure(t.Context(), l.outside); err != nil {
		t.Fatal(err)
	}
	l.world = NewPublisher(l.outside)
	t.Cleanup(l.world.Stop)
	return l
}

func (l *line) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if r, ok := req.(*pubsubpb.PublishRequest); ok {
		l.mu.Lock()
		f := l.onPublish
		l.mu.Unlock()
		if f != nil {
			if err := f(ctx, path.Base(r.GetTopic()), r.GetMessages()); err != nil {
				return err
			}
		}
	}
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch r := req.(type) {
	case *pubsubpb.AcknowledgeRequest:
		for _, id := range r.GetAckIds() {
			l.acked[id] = true
		}
	case *pubsubpb.ModifyAckDeadlineRequest:
		if r.GetAckDeadlineSeconds() == 0 {
			for _, id := range r.GetAckIds() {
				l.nacked[id] = true
			}
		}
	}
	return nil
}

func (l *line) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, cc, method, opts...)
	return &openedStream{s, l}, err
}

// openedStream notes what a streaming pull asks for.
type openedStream struct {
	grpc.ClientStream
	line *line
}

func (s *openedStream) SendMsg(m any) error {
	if r, ok := m.(*pubsubpb.StreamingPullRequest); ok && r.GetSubscription() != "" {
		s.line.mu.Lock()
		name := path.Base(r.GetSubscription())
		s.line.opened[name] = append(s.line.opened[name], r)
		s.line.mu.Unlock()
	}
	return s.ClientStream.SendMsg(m)
}

// publishing has f called before every publish of the client; an error of f is
// the answer.
func (l *line) publishing(f func(ctx context.Context, topic string, messages []*pubsubpb.PubsubMessage) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onPublish = f
}

// stallLetters holds up dead letters until release is called.
func (l *line) stallLetters() (release func()) {
	released := make(chan struct{})
	l.publishing(func(ctx context.Context, topic string, _ []*pubsubpb.PubsubMessage) error {
		if !strings.HasSuffix(topic, "-dead-letter") {
			return nil
		}
		select {
		case <-released:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return sync.OnceFunc(func() { close(released) })
}

// settlements is how many messages the server was told of.
func (l *line) settlements() (acked, nacked int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked), len(l.nacked)
}

func (l *line) awaitSettlements(what string, acked, nacked int) {
	l.t.Helper()
	emutest.Eventually(l.t, what, func() error {
		if a, n := l.settlements(); a != acked || n != nacked {
			return fmt.Errorf("%d acked and %d nacked, want %d and %d", a, n, acked, nacked)
		}
		return nil
	})
}

// settled is how many messages of telemetry ended so, with whatever reason.
func (l *line) settled(outcome string) (n int64) {
	for key, count := range l.meter.Settled() {
		if key.Kind == TopicTelemetry && key.Outcome == outcome {
			n += count
		}
	}
	return n
}

// report sends what a drone says, and waits until the server has it.
func (l *line) report(id domain.DroneID, key string) {
	l.t.Helper()
	l.reports([]domain.DroneID{id}, key)
}

// reports sends a report of each drone.
func (l *line) reports(ids []domain.DroneID, key string) {
	l.t.Helper()
	var sent []Published
	for _, id := range ids {
		data, attrs, err := wire.EncodeTelemetry(domain.Telemetry{
			DroneID: id, Timestamp: time.Now(), Position: domain.Position{Lat: 48.8566, Lon: 2.3522}, Battery: 90, Status: domain.DroneIdle,
		}, wire.Protobuf)
		if err != nil {
			l.t.Fatal(err)
		}
		sent = append(sent, l.world.Publish(l.t.Context(), TopicTelemetry, data, attrs, key))
	}
	for _, p := range sent {
		if _, err := p.Wait(l.t.Context()); err != nil {
			l.t.Fatal(err)
		}
	}
}

// receive has a topic's messages handled until the test ends.
func (l *line) receive(topic string, handle func(context.Context, *pubsub.Message)) {
	l.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.client.Subscriber(Subscription(topic)).Receive(ctx, handle) }()
	l.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			l.t.Errorf("receive: %v", err)
		}
	})
}

// settler is that of a worker on the line.
func (l *line) settler(topic string) *settler {
	publisher := NewPublisher(l.client)
	l.t.Cleanup(publisher.Stop)
	store, _ := l.store()
	return NewWorker(l.client, store, publisher, Config{}, emutest.Log(l.t), l.meter).settler(topic)
}

// pipeline runs one shard with the given applier on the line's telemetry.
func (l *line) pipeline(s *settler, applier TelemetryApplier) *telemetryPipeline {
	l.t.Helper()
	ctx, giveUp := context.WithCancel(context.Background())
	p := newTelemetryPipeline(s, Config{TelemetryShards: 1, TelemetryCoalesce: 10 * time.Millisecond}.withDefaults(),
		func() TelemetryApplier { return applier })
	ended := make(chan struct{})
	go func() { defer close(ended); p.shards[0].run(ctx) }()
	l.t.Cleanup(func() { // after Receive has ended, and before the publisher is stopped
		p.stop()
		<-ended
		giveUp()
	})
	l.receive(TopicTelemetry, func(_ context.Context, msg *pubsub.Message) { p.handle(ctx, msg) })
	return p
}

// store is a store whose Firestore answers until the test stalls it.
func (l *line) store() (store *firestoretx.Store, stall func()) {
	l.t.Helper()
	client, stall := emutest.Stalling(l.t, l.hosts)
	l.t.Cleanup(func() {
		if err := client.Close(); err != nil {
			l.t.Errorf("close: %v", err)
		}
	})
	return firestoretx.New(client, firestoretx.Config{PlanUnregistered: true}), stall
}

// work runs a worker until stop is called, or the test ends.
func (l *line) work(store Store, cfg Config) (stop func()) {
	l.t.Helper()
	publisher := NewPublisher(l.client)
	l.t.Cleanup(publisher.Stop)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- NewWorker(l.client, store, publisher, cfg, emutest.Log(l.t), l.meter).Run(ctx, func(error) {})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			l.t.Errorf("worker: %v", err)
		}
	})
	l.t.Cleanup(stop)
	return stop
}

// letters are the ids of the messages that have a dead letter.
func (l *line) letters(topic string) (ids []string) {
	l.t.Helper()
	review, err := OpenReview(l.t.Context(), l.outside, topic, 0, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, letter := range review.Letters {
		ids = append(ids, letter.MessageID)
	}
	if err := review.Close(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	slices.Sort(ids)
	return ids
}

// applier is a store of telemetry whose answers the test gives.
type applier func(ctx context.Context, t domain.Telemetry) error

func (a applier) Apply(ctx context.Context, reports []domain.Telemetry) []error {
	errs := make([]error, len(reports))
	for i, t := range reports {
		errs[i] = a(ctx, t)
	}
	return errs
}

func (applier) Urgent(domain.Telemetry) bool { return true }
func (applier) Forget()                      {}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	emutest.Eventually(t, what, func() error {
		if !ok() {
			return errors.New("not yet")
		}
		return nil
	})
}
