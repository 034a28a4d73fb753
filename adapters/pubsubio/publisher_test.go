package pubsubio

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/shutdown"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// sent notes what reaches the server, in its order, by ordering key.
type sent struct {
	mu   sync.Mutex
	data map[string][]string
}

func (s *sent) note(messages []*pubsubpb.PubsubMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.data == nil {
		s.data = map[string][]string{}
	}
	for _, m := range messages {
		s.data[m.GetOrderingKey()] = append(s.data[m.GetOrderingKey()], string(m.GetData()))
	}
}

func (s *sent) of(key string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.data[key])
}

var errRefused = status.Error(codes.PermissionDenied, "refused") // the client does not try again

// F-DEC-05: what is published behind a message that fails is not sent before
// it, and fails, too; then the key goes on. Other keys know nothing of it.
func TestPublisher_NothingOvertakesAFailedMessage(t *testing.T) {
	l := newLine(t)
	p := NewPublisher(l.client)
	t.Cleanup(p.Stop)
	var server sent
	under, refuse := make(chan string), make(chan struct{})
	l.publishing(func(_ context.Context, _ string, messages []*pubsubpb.PubsubMessage) error {
		if m := messages[0]; string(m.GetData()) == "refused" {
			under <- m.GetOrderingKey()
			<-refuse
			return errRefused
		}
		server.note(messages)
		return nil
	})
	ctx := t.Context()
	publish := func(key, data string) Published {
		return p.Publish(ctx, TopicMissions, []byte(data), nil, key)
	}
	fails := func(key string, pending ...Published) {
		t.Helper()
		for i, one := range pending {
			if id, err := one.Wait(ctx); err == nil {
				t.Errorf("%s: message %d behind the failure was published as %s", key, i, id)
			}
		}
	}
	for i := range 20 {
		key := fmt.Sprintf("D%d", i)
		first := publish(key, "refused")
		if got := <-under; got != key {
			t.Fatalf("%s is being published", got)
		}
		if _, err := publish("other", key).Wait(ctx); err != nil {
			t.Errorf("another key: %v", err)
		}
		second, third := publish(key, "second"), publish(key, "third")
		refuse <- struct{}{}
		fails(key, first, second, third) // in this order: the first is known before the others are answered
		if got := server.of(key); len(got) > 0 {
			t.Errorf("%s: sent %v", key, got)
		}
		if _, err := publish(key, "again").Wait(ctx); err != nil {
			t.Errorf("%s: the key does not go on: %v", key, err)
		}
		if got := server.of(key); !slices.Equal(got, []string{"again"}) {
			t.Errorf("%s: sent %v", key, got)
		}
	}
	if n := len(server.of("other")); n != 20 {
		t.Errorf("%d messages of the other key", n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sequences) > 0 {
		t.Errorf("%d keys are remembered though all is well", len(p.sequences))
	}
}

// F-FLOW-01: whoever waits for a publication hears why it failed before the wait
// is over, and a shutdown outlasts it.
func TestPublisher_GivesUpBeforeItsCallersDo(t *testing.T) {
	l := newLine(t)
	p := NewPublisher(l.client)
	t.Cleanup(p.Stop)
	var left time.Duration
	l.publishing(func(ctx context.Context, _ string, _ []*pubsubpb.PubsubMessage) error {
		if deadline, ok := ctx.Deadline(); ok {
			left = time.Until(deadline)
		}
		return errRefused
	})
	if _, err := p.Publish(t.Context(), TopicMissions, nil, map[string]string{"a": "b"}, "").Wait(t.Context()); err == nil {
		t.Error("published")
	}
	if shortest := min(letterTimeout, commandsTimeout, shutdown.DefaultDrain); left <= 0 || left >= shortest {
		t.Errorf("the client tries for %v, want less than %v", left, shortest)
	}
}

// commandsOwed is a store of missions whose drones are owed a command.
type commandsOwed struct {
	mu     sync.Mutex
	owed   []domain.Mission
	marked []domain.MissionID
}

func (o *commandsOwed) OwedCommands(context.Context, time.Duration) ([]domain.Mission, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.owed), nil
}

func (o *commandsOwed) MarkCommandsPublished(_ context.Context, missions []domain.Mission) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range missions {
		o.marked = append(o.marked, m.ID)
		o.owed = slices.DeleteFunc(o.owed, func(x domain.Mission) bool { return x.ID == m.ID })
	}
	return nil
}

func (o *commandsOwed) published() []domain.MissionID {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(slices.Values(o.marked))
}

// F-DEC-05: commands that could not be published are not marked as such, one
// drone's failure is not another's, and what is still owed is sent later.
func TestOutbox_MarksOnlyWhatWasPublished(t *testing.T) {
	l := newLine(t)
	p := NewPublisher(l.client)
	t.Cleanup(p.Stop)
	var server sent
	var refused sync.Once
	l.publishing(func(_ context.Context, _ string, messages []*pubsubpb.PubsubMessage) (err error) {
		if messages[0].GetOrderingKey() == "D1" {
			refused.Do(func() { err = errRefused })
		}
		if err == nil {
			server.note(messages)
		}
		return err
	})
	store := &commandsOwed{}
	for _, m := range []struct{ id, drone string }{{"M1", "D1"}, {"M2", "D1"}, {"M3", "D2"}} {
		store.owed = append(store.owed, domain.Mission{ID: domain.MissionID(m.id), DroneID: domain.DroneID(m.drone), Status: domain.MissionActive, CommandExpiresAt: time.Now().Add(time.Minute)})
	}
	outbox := NewOutbox(store, p, wire.JSON, emutest.Log(t), l.meter)
	if err := outbox.Collect(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); outbox.Run(context.Background(), stop) }()
	eventually(t, "a drone has its command", func() bool { return len(store.published()) > 0 })
	if err := outbox.Collect(t.Context(), 0); err != nil { // as the sweeper does
		t.Fatal(err)
	}
	close(stop) // what is queued is still sent
	<-done
	if got := store.published(); !slices.Equal(got, []domain.MissionID{"M1", "M2", "M3"}) {
		t.Errorf("marked %v", got)
	}
	if n := l.meter.CommandsPublished.Value(); n != 3 {
		t.Errorf("%d commands counted as published", n)
	}
	var missions []domain.MissionID
	for _, data := range server.of("D1") {
		c, err := wire.DecodeCommand([]byte(data), map[string]string{wire.AttrContentType: "application/json"})
		if err != nil {
			t.Fatal(err)
		}
		missions = append(missions, c.Mission.ID)
	}
	if !slices.Equal(missions, []domain.MissionID{"M1", "M2"}) {
		t.Errorf("D1 was sent %v", missions)
	}
}

// F-DEC-05: what is queued when an outbox is told to stop is sent, whichever of the
// two it notices first.
func TestOutbox_SendsItsQueueBeforeItStops(t *testing.T) {
	l := newLine(t)
	p := NewPublisher(l.client)
	t.Cleanup(p.Stop)
	stop := make(chan struct{})
	close(stop)
	for i := range 20 {
		mission := domain.Mission{ID: domain.MissionID(fmt.Sprint("M", i)), DroneID: "D1", Status: domain.MissionActive, CommandExpiresAt: time.Now().Add(time.Minute)}
		store := &commandsOwed{}
		outbox := NewOutbox(store, p, wire.JSON, emutest.Log(t), l.meter)
		outbox.Offer(t.Context(), mission)
		outbox.Run(t.Context(), stop)
		if got := store.published(); !slices.Equal(got, []domain.MissionID{mission.ID}) {
			t.Fatalf("marked %v, want %s", got, mission.ID)
		}
	}
}

// F-DEC-05: what the sweeper finds owed while it is queued already is not queued
// again. During an outage of Pub/Sub each sweep finds all that is owed: the queue
// would fill with what drones then get over and over, before what is new.
func TestOutbox_QueuesAnOwedCommandOnce(t *testing.T) {
	l := newLine(t)
	p := NewPublisher(l.client)
	t.Cleanup(p.Stop)
	var server sent
	l.publishing(func(_ context.Context, _ string, messages []*pubsubpb.PubsubMessage) error {
		server.note(messages)
		return nil
	})
	store := &commandsOwed{}
	for i := range 5 {
		store.owed = append(store.owed, domain.Mission{ID: domain.MissionID(fmt.Sprint("M", i)), DroneID: "D1", Status: domain.MissionActive, CommandExpiresAt: time.Now().Add(time.Minute)})
	}
	outbox := NewOutbox(store, p, wire.JSON, emutest.Log(t), l.meter)
	for range 10 {
		if err := outbox.Collect(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	// A mission that has failed meanwhile owes another message.
	store.mu.Lock()
	store.owed[0].Status = domain.MissionFailed
	store.owed[0].RevokePending = true
	store.mu.Unlock()
	if err := outbox.Collect(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	close(stop)
	outbox.Run(t.Context(), stop)
	if n := len(server.of("D1")); n != 6 {
		t.Errorf("the drone was sent %d messages of 6", n)
	}
	if n := len(outbox.waiting); n != 0 {
		t.Errorf("%d messages are thought to wait in an empty queue", n)
	}
}
