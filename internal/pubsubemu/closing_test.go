package pubsubemu

import (
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A subscription that came once Close has ended the others would have a timer
// loop that nothing ends, and Close waits for all of them. P-RPC-01
func TestClose_refusesSubscriptionsUnderWay(t *testing.T) {
	s, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	topic := &pubsubpb.Topic{Name: "projects/fleet/topics/telemetry"}
	if _, err := s.CreateTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	create := func(id string) error {
		_, err := s.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: "projects/fleet/subscriptions/" + id, Topic: topic.Name})
		return err
	}
	if err := create("early"); err != nil {
		t.Fatal(err)
	}
	s.mu.RLock()
	early := s.subscriptions["projects/fleet/subscriptions/early"]
	s.mu.RUnlock()

	underWay := make(chan struct{}) // a call that Close has to wait for
	s.serving.Go(func() { <-underWay })
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	<-early.gone
	if err := create("late"); status.Code(err) != codes.Unavailable {
		t.Errorf("subscription while the server closes: %v, want UNAVAILABLE", err)
	}
	close(underWay)
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Close waits for a subscription that nobody ends")
	}
}
