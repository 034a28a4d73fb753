package pubsubemu_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"github.com/jonboulle/clockwork"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
)

func TestCreateTopic_ChecksName(t *testing.T) { // P-LIM-01
	b := start(t, pubsubemu.Options{})
	for name, want := range map[string]codes.Code{
		"projects/any-project-1/topics/abc":       codes.OK,
		topicName("a.b_c~d+e%f-9"):                codes.OK,
		topicName("a" + strings.Repeat("b", 254)): codes.OK,
		topicName("a" + strings.Repeat("b", 255)): codes.InvalidArgument,
		topicName("ab"):                           codes.InvalidArgument,
		topicName("1abc"):                         codes.InvalidArgument,
		topicName("ab c"):                         codes.InvalidArgument,
		topicName("aéc"):                          codes.InvalidArgument,
		topicName("google"):                       codes.InvalidArgument,
		"topics/abc":                              codes.InvalidArgument,
		"projects//topics/abc":                    codes.InvalidArgument,
		"projects/fleet/subscriptions/abc":        codes.InvalidArgument,
		"":                                        codes.InvalidArgument,
	} {
		if _, err := b.pub.CreateTopic(b.deadline(), &pubsubpb.Topic{Name: name}); status.Code(err) != want {
			t.Errorf("topic %q: %v, want %v", name, err, want)
		}
	}
}

func TestPublish_ChecksLimits(t *testing.T) { // P-LIM-01
	b := start(t, pubsubemu.Options{})
	topic := b.topic("telemetry")
	attributes := func(n, key, value int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprintf("%0*d", key, i)] = strings.Repeat("v", value)
		}
		return m
	}
	for _, c := range []struct {
		name     string
		messages []*pubsubpb.PubsubMessage
		want     codes.Code
	}{
		{"none", nil, codes.InvalidArgument},
		{"1000", texts("m", 1000), codes.OK},
		{"1001", texts("m", 1001), codes.InvalidArgument},
		{"empty", []*pubsubpb.PubsubMessage{{}}, codes.InvalidArgument},
		{"only an ordering key", []*pubsubpb.PubsubMessage{{OrderingKey: "k"}}, codes.InvalidArgument},
		{"only an attribute", []*pubsubpb.PubsubMessage{{Attributes: attributes(1, 1, 0)}}, codes.OK},
		{"100 attributes", []*pubsubpb.PubsubMessage{{Attributes: attributes(100, 256, 1024)}}, codes.OK},
		{"101 attributes", []*pubsubpb.PubsubMessage{{Attributes: attributes(101, 3, 1)}}, codes.InvalidArgument},
		{"reserved attribute key", []*pubsubpb.PubsubMessage{{Attributes: map[string]string{"google-trace": "x"}}}, codes.InvalidArgument},
		{"attribute key of Google's clients", []*pubsubpb.PubsubMessage{{Attributes: map[string]string{"googclient_traceparent": "x"}}}, codes.OK},
		{"long attribute key", []*pubsubpb.PubsubMessage{{Attributes: attributes(1, 257, 1)}}, codes.InvalidArgument},
		{"long attribute value", []*pubsubpb.PubsubMessage{{Attributes: attributes(1, 1, 1025)}}, codes.InvalidArgument},
		{"empty attribute key", []*pubsubpb.PubsubMessage{{Attributes: map[string]string{"": "v"}}}, codes.InvalidArgument},
		{"ordering key", []*pubsubpb.PubsubMessage{{Data: []byte("x"), OrderingKey: strings.Repeat("k", 1024)}}, codes.OK},
		{"long ordering key", []*pubsubpb.PubsubMessage{{Data: []byte("x"), OrderingKey: strings.Repeat("k", 1025)}}, codes.InvalidArgument},
		{"9 MB", []*pubsubpb.PubsubMessage{{Data: make([]byte, 9_000_000)}}, codes.OK},
		{"over 10 MB", []*pubsubpb.PubsubMessage{{Data: make([]byte, 5_500_000)}, {Data: make([]byte, 5_500_000)}}, codes.InvalidArgument},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := b.pub.Publish(b.deadline(), &pubsubpb.PublishRequest{Topic: topic, Messages: c.messages})
			if status.Code(err) != c.want {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// Requests that are too large for the service are refused here too. P-LIM-01
func TestAcknowledge_ChecksLimits(t *testing.T) {
	b := start(t, pubsubemu.Options{})
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, nil)
	b.publish(topic, texts("m", 1)...)
	id := b.pull(sub, 1)[0].AckId
	most := 512 << 10 / (len(id) + 2) // tag and length; less what the other fields take
	for n, want := range map[int]codes.Code{0: codes.InvalidArgument, most - 10: codes.OK, most + 1: codes.InvalidArgument} {
		ids := slices.Repeat([]string{id}, n)
		_, err := b.sub.ModifyAckDeadline(b.deadline(), &pubsubpb.ModifyAckDeadlineRequest{Subscription: sub, AckIds: ids, AckDeadlineSeconds: 10})
		if status.Code(err) != want {
			t.Errorf("deadline of %d ack ids: %v, want %v", n, err, want)
		}
		_, err = b.sub.Acknowledge(b.deadline(), &pubsubpb.AcknowledgeRequest{Subscription: sub, AckIds: ids})
		if status.Code(err) != want {
			t.Errorf("%d ack ids: %v, want %v", n, err, want)
		}
	}
}

func TestCreateSubscription_ChecksSettings(t *testing.T) { // P-LIM-01, P-DEL-01, P-DEL-02, P-DEL-07
	b := start(t, pubsubemu.Options{})
	topic, dead := b.topic("telemetry"), b.topic("dead")
	for i, c := range []struct {
		name   string
		change func(*pubsubpb.Subscription)
		want   codes.Code
	}{
		{"topic missing", func(c *pubsubpb.Subscription) { c.Topic = topicName("none") }, codes.NotFound},
		{"bad name", func(c *pubsubpb.Subscription) { c.Name = subscriptionName("goog1") }, codes.InvalidArgument},
		{"deadline 9", func(c *pubsubpb.Subscription) { c.AckDeadlineSeconds = 9 }, codes.InvalidArgument},
		{"deadline 600", func(c *pubsubpb.Subscription) { c.AckDeadlineSeconds = 600 }, codes.OK},
		{"deadline 601", func(c *pubsubpb.Subscription) { c.AckDeadlineSeconds = 601 }, codes.InvalidArgument},
		{"retention 9 min", func(c *pubsubpb.Subscription) { c.MessageRetentionDuration = durationpb.New(9 * time.Minute) }, codes.InvalidArgument},
		{"retention 32 days", func(c *pubsubpb.Subscription) {
			c.MessageRetentionDuration = durationpb.New(32 * 24 * time.Hour)
		}, codes.InvalidArgument},
		{"4 attempts", func(c *pubsubpb.Subscription) {
			c.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: dead, MaxDeliveryAttempts: 4}
		}, codes.InvalidArgument},
		{"101 attempts", func(c *pubsubpb.Subscription) {
			c.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: dead, MaxDeliveryAttempts: 101}
		}, codes.InvalidArgument},
		{"100 attempts", func(c *pubsubpb.Subscription) {
			c.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: dead, MaxDeliveryAttempts: 100}
		}, codes.OK},
		{"dead-letter topic missing", func(c *pubsubpb.Subscription) {
			c.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: topicName("none")}
		}, codes.NotFound},
		{"dead-letter topic unnamed", func(c *pubsubpb.Subscription) { c.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{} }, codes.InvalidArgument},
		{"backoff over 600 s", func(c *pubsubpb.Subscription) {
			c.RetryPolicy = &pubsubpb.RetryPolicy{MaximumBackoff: durationpb.New(601 * time.Second)}
		}, codes.InvalidArgument},
		{"backoffs crossed", func(c *pubsubpb.Subscription) {
			c.RetryPolicy = &pubsubpb.RetryPolicy{MinimumBackoff: durationpb.New(2 * time.Minute), MaximumBackoff: durationpb.New(time.Minute)}
		}, codes.InvalidArgument},
		{"bad filter", func(c *pubsubpb.Subscription) { c.Filter = "attributes.kind = alarm" }, codes.InvalidArgument},
		{"expiration under a day", func(c *pubsubpb.Subscription) {
			c.ExpirationPolicy = &pubsubpb.ExpirationPolicy{Ttl: durationpb.New(time.Hour)}
		}, codes.InvalidArgument},
		{"push", func(c *pubsubpb.Subscription) {
			c.PushConfig = &pubsubpb.PushConfig{PushEndpoint: "https://example.com/push"}
		}, codes.Unimplemented},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := &pubsubpb.Subscription{Name: subscriptionName(fmt.Sprintf("sub-%d", i)), Topic: topic}
			c.change(config)
			_, err := b.sub.CreateSubscription(b.deadline(), config)
			if status.Code(err) != c.want {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if field, _, _ := strings.Cut(status.Convert(err).Message(), ":"); strings.Count(status.Convert(err).Message(), field+":") > 1 {
				t.Errorf("the field is named twice: %v", err)
			}
		})
	}
}

func TestTopic_Lifecycle(t *testing.T) { // P-RPC-01
	b := start(t, pubsubemu.Options{})
	ctx := b.deadline()
	name := b.topic("telemetry")
	if _, err := b.pub.CreateTopic(ctx, &pubsubpb.Topic{Name: name}); status.Code(err) != codes.AlreadyExists {
		t.Errorf("created twice: %v", err)
	}
	updated, err := b.pub.UpdateTopic(ctx, &pubsubpb.UpdateTopicRequest{
		Topic:      &pubsubpb.Topic{Name: name, Labels: map[string]string{"fleet": "north"}, KmsKeyName: "ignored"},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"labels"}},
	})
	want := &pubsubpb.Topic{Name: name, Labels: map[string]string{"fleet": "north"}, State: pubsubpb.Topic_ACTIVE}
	if err != nil || !proto.Equal(updated, want) {
		t.Errorf("updated to %v: %v", updated, err)
	}
	got, err := b.pub.GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: name})
	if err != nil || !proto.Equal(got, want) {
		t.Errorf("got %v: %v", got, err)
	}
	for _, mask := range [][]string{nil, {"name"}, {"nonsense"}, {"labels", "state"}} {
		_, err := b.pub.UpdateTopic(ctx, &pubsubpb.UpdateTopicRequest{
			Topic: &pubsubpb.Topic{Name: name}, UpdateMask: &fieldmaskpb.FieldMask{Paths: mask},
		})
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("mask %v: %v", mask, err)
		}
	}
	if _, err := b.pub.CreateTopic(ctx, &pubsubpb.Topic{
		Name: topicName("typed"), SchemaSettings: &pubsubpb.SchemaSettings{Schema: "projects/fleet/schemas/s"},
	}); status.Code(err) != codes.Unimplemented {
		t.Errorf("topic with a schema: %v", err)
	}
	sub := b.subscribe("ingest", name, nil)
	b.publish(name, texts("m", 1)...)
	if _, err := b.pub.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: name}); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		errorOf(b.pub.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: name})),
		errorOf(b.pub.GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: name})),
		errorOf(b.pub.ListTopicSubscriptions(ctx, &pubsubpb.ListTopicSubscriptionsRequest{Topic: name})),
		errorOf(b.pub.Publish(ctx, &pubsubpb.PublishRequest{Topic: name, Messages: texts("m", 1)})),
	} {
		if status.Code(err) != codes.NotFound {
			t.Errorf("on a deleted topic: %v", err)
		}
	}
	orphan, err := b.sub.GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{Subscription: sub})
	if err != nil || orphan.Topic != "_deleted-topic_" {
		t.Errorf("subscription of a deleted topic: %v %v", orphan, err)
	}
	if left := b.pull(sub, 10); len(left) != 1 {
		t.Error("the backlog was deleted with the topic")
	}
	b.topic("telemetry") // the name can be used again
}

func errorOf[T any](_ T, err error) error { return err }

func TestUpdateSubscription_ChangesMaskedFields(t *testing.T) { // P-RPC-01, P-DEL-07
	b := start(t, pubsubemu.Options{})
	ctx := b.deadline()
	topic, dead := b.topic("telemetry"), b.topic("dead")
	name := b.subscribe("ingest", topic, func(c *pubsubpb.Subscription) {
		c.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: dead, MaxDeliveryAttempts: 7}
	})
	update := func(change *pubsubpb.Subscription, mask ...string) (*pubsubpb.Subscription, error) {
		change.Name = name
		return b.sub.UpdateSubscription(ctx, &pubsubpb.UpdateSubscriptionRequest{
			Subscription: change, UpdateMask: &fieldmaskpb.FieldMask{Paths: mask},
		})
	}
	got, err := update(&pubsubpb.Subscription{
		AckDeadlineSeconds: 30,
		DeadLetterPolicy:   &pubsubpb.DeadLetterPolicy{MaxDeliveryAttempts: 9},
		RetryPolicy:        &pubsubpb.RetryPolicy{},
	}, "ack_deadline_seconds", "dead_letter_policy.max_delivery_attempts", "retry_policy")
	want := &pubsubpb.Subscription{
		Name: name, Topic: topic, PushConfig: &pubsubpb.PushConfig{}, AckDeadlineSeconds: 30, State: pubsubpb.Subscription_ACTIVE,
		MessageRetentionDuration: durationpb.New(7 * 24 * time.Hour),
		ExpirationPolicy:         &pubsubpb.ExpirationPolicy{Ttl: durationpb.New(31 * 24 * time.Hour)},
		DeadLetterPolicy:         &pubsubpb.DeadLetterPolicy{DeadLetterTopic: dead, MaxDeliveryAttempts: 9},
		RetryPolicy:              &pubsubpb.RetryPolicy{MinimumBackoff: durationpb.New(10 * time.Second), MaximumBackoff: durationpb.New(600 * time.Second)},
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if got, err := update(&pubsubpb.Subscription{}, "dead_letter_policy"); err != nil || got.DeadLetterPolicy != nil {
		t.Errorf("policy not removed: %v %v", got, err)
	}
	for mask, change := range map[string]*pubsubpb.Subscription{
		"":                        {},
		"filter":                  {Filter: "attributes:x"},
		"topic":                   {Topic: dead},
		"enable_message_ordering": {EnableMessageOrdering: true},
		"labels.x":                {},
		"ack_deadline_seconds":    {AckDeadlineSeconds: 5},
	} {
		if _, err := update(change, mask); status.Code(err) != codes.InvalidArgument {
			t.Errorf("mask %q: %v", mask, err)
		}
	}
}

func TestList_PagesByName(t *testing.T) { // P-RPC-01
	b := start(t, pubsubemu.Options{})
	ctx := b.deadline()
	var topics, subs []string
	for i := range 7 {
		topics = append(topics, b.topic(fmt.Sprintf("topic-%d", i)))
		subs = append(subs, b.subscribe(fmt.Sprintf("sub-%d", i), topics[0], nil))
	}
	if _, err := b.pub.CreateTopic(ctx, &pubsubpb.Topic{Name: "projects/fleet2/topics/elsewhere"}); err != nil {
		t.Fatal(err)
	}
	var listed, attached []string
	for token, more := "", true; more; more = token != "" {
		resp, err := b.pub.ListTopics(ctx, &pubsubpb.ListTopicsRequest{Project: project, PageSize: 3, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, topic := range resp.Topics {
			listed = append(listed, topic.Name)
		}
		token = resp.NextPageToken
	}
	for token, more := "", true; more; more = token != "" {
		resp, err := b.pub.ListTopicSubscriptions(ctx, &pubsubpb.ListTopicSubscriptionsRequest{Topic: topics[0], PageSize: 7, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		attached = append(attached, resp.Subscriptions...)
		token = resp.NextPageToken
	}
	if diff := cmp.Diff(topics, listed); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(subs, attached); diff != "" {
		t.Error(diff)
	}
	all, err := b.sub.ListSubscriptions(ctx, &pubsubpb.ListSubscriptionsRequest{Project: project})
	if err != nil || len(all.Subscriptions) != 7 {
		t.Errorf("listed %v: %v", all, err)
	}
	if _, err := b.pub.ListTopics(ctx, &pubsubpb.ListTopicsRequest{Project: "fleet"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("bad project: %v", err)
	}
}

func TestDetachSubscription_EndsDelivery(t *testing.T) { // P-RPC-01
	b := start(t, pubsubemu.Options{})
	ctx := b.deadline()
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, nil)
	s := b.stream(&pubsubpb.StreamingPullRequest{Subscription: sub})
	s.ping()
	if _, err := b.pub.DetachSubscription(ctx, &pubsubpb.DetachSubscriptionRequest{Subscription: sub}); err != nil {
		t.Fatal(err)
	}
	b.publish(topic, texts("m", 1)...)
	for _, err := range []error{
		errorOf(s.call.Recv()),
		errorOf(b.sub.Pull(ctx, &pubsubpb.PullRequest{Subscription: sub, MaxMessages: 1})),
		errorOf(b.sub.CreateSnapshot(ctx, &pubsubpb.CreateSnapshotRequest{Name: snapshotName("snap"), Subscription: sub})),
	} {
		if status.Code(err) != codes.FailedPrecondition {
			t.Errorf("on a detached subscription: %v", err)
		}
	}
	got, err := b.sub.GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{Subscription: sub})
	if err != nil || !got.Detached {
		t.Errorf("detached: %v %v", got, err)
	}
	if listed, err := b.pub.ListTopicSubscriptions(ctx, &pubsubpb.ListTopicSubscriptionsRequest{Topic: topic}); err != nil || len(listed.Subscriptions) != 0 {
		t.Errorf("still attached: %v %v", listed, err)
	}
}

func TestSchemas_AreUnimplemented(t *testing.T) { // P-RPC-01
	b := start(t, pubsubemu.Options{})
	_, err := pubsubpb.NewSchemaServiceClient(b.conn).CreateSchema(b.deadline(), &pubsubpb.CreateSchemaRequest{Parent: project})
	if status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "schemas are not supported") {
		t.Errorf("got %v", err)
	}
}

// simulation is a publish clock apart from the one leases run on.
type simulation struct{ now time.Time }

func (s *simulation) publishTime() time.Time { return s.now }

func TestSeek_ToTime(t *testing.T) { // P-SEEK-01
	for _, isOrdered := range []bool{false, true} {
		t.Run(fmt.Sprintf("ordered=%v", isOrdered), func(t *testing.T) {
			sim := &simulation{now: epoch}
			b := start(t, pubsubemu.Options{Clock: clockwork.NewFakeClock(), PublishTime: sim.publishTime})
			topic := b.topic("telemetry")
			sub := b.subscribe("ingest", topic, func(c *pubsubpb.Subscription) {
				c.RetainAckedMessages, c.EnableMessageOrdering = true, isOrdered
			})
			for i := range 4 {
				b.publish(topic, keyed("k", fmt.Sprint(i))...)
				sim.now = sim.now.Add(time.Minute)
			}
			got := b.pull(sub, 10)
			b.ack(sub, got[:2]...)
			seek(b, sub, epoch.Add(time.Minute)) // back: 1 is replayed, 2 and 3 stay unacked
			if c := b.server.Counters().Subscriptions[sub]; c.Backlog != 3 {
				t.Errorf("backlog after seeking back %d, want 3", c.Backlog)
			}
			first := b.pull(sub, 10)
			if payloads(first)[0] != "1" {
				t.Errorf("after seeking back came %v", payloads(first))
			}
			seek(b, sub, epoch.Add(3*time.Minute)) // forward: only 3 is left
			if c := b.server.Counters().Subscriptions[sub]; c.Backlog != 1 {
				t.Errorf("backlog after seeking forward %d, want 1", c.Backlog)
			}
			seek(b, sub, epoch.Add(time.Hour))
			if c := b.server.Counters().Subscriptions[sub]; c.Backlog != 0 || c.Leased != 0 {
				t.Errorf("after purging: %+v", c)
			}
			seek(b, sub, epoch)
			if diff := cmp.Diff([]string{"0", "1", "2", "3"}, payloads(b.pull(sub, 10))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func seek(b *bench, sub string, at time.Time) {
	b.t.Helper()
	_, err := b.sub.Seek(b.deadline(), &pubsubpb.SeekRequest{
		Subscription: sub, Target: &pubsubpb.SeekRequest_Time{Time: timestamppb.New(at)},
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestSeek_WithoutRetentionRestoresNothing(t *testing.T) { // P-SEEK-01
	b := start(t, pubsubemu.Options{})
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, nil)
	b.publish(topic, texts("m", 2)...)
	b.ack(sub, b.pull(sub, 1)...)
	seek(b, sub, epoch)
	if c := b.server.Counters().Subscriptions[sub]; c.Backlog != 1 {
		t.Errorf("backlog %d, want 1", c.Backlog)
	}
}

func TestSeek_TopicRetention(t *testing.T) { // P-SEEK-01
	clock := clockwork.NewFakeClockAt(epoch)
	b := start(t, pubsubemu.Options{Clock: clock})
	name := topicName("telemetry")
	if _, err := b.pub.CreateTopic(b.deadline(), &pubsubpb.Topic{Name: name, MessageRetentionDuration: durationpb.New(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	b.publish(name, texts("old", 1)...)
	clock.Advance(45 * time.Minute)
	b.publish(name, &pubsubpb.PubsubMessage{Data: []byte("yes"), Attributes: map[string]string{"keep": ""}}, texts("no", 1)[0])
	clock.Advance(30 * time.Minute)
	sub := b.subscribe("late", name, func(c *pubsubpb.Subscription) { c.Filter = "attributes:keep" })
	seek(b, sub, epoch)
	if diff := cmp.Diff([]string{"yes"}, payloads(b.pull(sub, 10))); diff != "" {
		t.Error(diff)
	}
}

// A subscription keeps nothing that is older than its own
// message_retention_duration, even if the topic retains it. This differs from
// production on purpose. P-SEEK-01
func TestSeek_SubscriptionRetentionLimitsTopicRetention(t *testing.T) {
	clock := clockwork.NewFakeClockAt(epoch)
	b := start(t, pubsubemu.Options{Clock: clock})
	name := topicName("telemetry")
	if _, err := b.pub.CreateTopic(b.deadline(), &pubsubpb.Topic{Name: name, MessageRetentionDuration: durationpb.New(2 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	short := b.subscribe("short", name, func(c *pubsubpb.Subscription) { c.MessageRetentionDuration = durationpb.New(10 * time.Minute) })
	long := b.subscribe("long", name, func(c *pubsubpb.Subscription) { c.MessageRetentionDuration = durationpb.New(2 * time.Hour) })
	b.publish(name, texts("old", 1)...)
	clock.Advance(25 * time.Minute)
	b.publish(name, texts("new", 1)...)
	for sub, want := range map[string][]string{short: {"new0"}, long: {"old0", "new0"}} {
		b.ack(sub, b.pull(sub, 10)...)
		clock.Advance(time.Minute)
		seek(b, sub, epoch)
		if diff := cmp.Diff(want, payloads(b.pull(sub, 10))); diff != "" {
			t.Error(sub, diff)
		}
	}
}

func TestSnapshot_Lifecycle(t *testing.T) { // P-SEEK-01, P-RPC-01
	clock := clockwork.NewFakeClockAt(epoch)
	b := start(t, pubsubemu.Options{Clock: clock})
	ctx := b.deadline()
	topic, elsewhere := b.topic("telemetry"), b.topic("elsewhere")
	sub, twin, foreign := b.subscribe("ingest", topic, nil), b.subscribe("twin", topic, nil), b.subscribe("foreign", elsewhere, nil)
	b.publish(topic, texts("before", 3)...)
	b.ack(sub, b.pull(sub, 1)...)
	clock.Advance(24 * time.Hour)
	name := snapshotName("deploy")
	snap, err := b.sub.CreateSnapshot(ctx, &pubsubpb.CreateSnapshotRequest{Name: name, Subscription: sub})
	want := &pubsubpb.Snapshot{Name: name, Topic: topic, ExpireTime: timestamppb.New(epoch.Add(7 * 24 * time.Hour))}
	if err != nil || !proto.Equal(snap, want) {
		t.Fatalf("created %v: %v", snap, err)
	}
	if _, err := b.sub.CreateSnapshot(ctx, &pubsubpb.CreateSnapshotRequest{Name: name, Subscription: sub}); status.Code(err) != codes.AlreadyExists {
		t.Errorf("created twice: %v", err)
	}
	b.publish(topic, texts("after", 1)...)
	for _, s := range []string{sub, twin} {
		b.ack(s, b.pull(s, 10)...)
		if _, err := b.sub.Seek(ctx, &pubsubpb.SeekRequest{Subscription: s, Target: &pubsubpb.SeekRequest_Snapshot{Snapshot: name}}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"before1", "before2", "after0"}, payloads(b.pull(s, 10))); diff != "" {
			t.Errorf("%s: %s", s, diff)
		}
	}
	if _, err := b.sub.Seek(ctx, &pubsubpb.SeekRequest{Subscription: foreign, Target: &pubsubpb.SeekRequest_Snapshot{Snapshot: name}}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("seek of another topic's subscription: %v", err)
	}
	labelled, err := b.sub.UpdateSnapshot(ctx, &pubsubpb.UpdateSnapshotRequest{
		Snapshot: &pubsubpb.Snapshot{Name: name, Labels: map[string]string{"a": "b"}}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"labels"}},
	})
	if err != nil || labelled.Labels["a"] != "b" {
		t.Errorf("labelled %v: %v", labelled, err)
	}
	listed, err := b.pub.ListTopicSnapshots(ctx, &pubsubpb.ListTopicSnapshotsRequest{Topic: topic})
	if diff := cmp.Diff([]string{name}, listed.GetSnapshots()); diff != "" || err != nil {
		t.Error(diff, err)
	}
	all, err := b.sub.ListSnapshots(ctx, &pubsubpb.ListSnapshotsRequest{Project: project})
	if err != nil || len(all.Snapshots) != 1 {
		t.Errorf("listed %v: %v", all, err)
	}
	clock.Advance(6 * 24 * time.Hour)
	if _, err := b.sub.GetSnapshot(ctx, &pubsubpb.GetSnapshotRequest{Snapshot: name}); status.Code(err) != codes.NotFound {
		t.Errorf("expired snapshot: %v", err)
	}
	if _, err := b.sub.CreateSnapshot(ctx, &pubsubpb.CreateSnapshotRequest{Name: name, Subscription: foreign}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.sub.DeleteSnapshot(ctx, &pubsubpb.DeleteSnapshotRequest{Snapshot: name}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.sub.DeleteSnapshot(ctx, &pubsubpb.DeleteSnapshotRequest{Snapshot: name}); status.Code(err) != codes.NotFound {
		t.Errorf("deleted twice: %v", err)
	}
}
