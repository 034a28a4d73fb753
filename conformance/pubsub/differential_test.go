package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// side is one of the two compared servers with its deliveries.
type side struct {
	*server
	project  string
	patience int                                    // empty pulls in a row that mean nothing is there
	pulled   map[string][]*pubsubpb.ReceivedMessage // by subscription, neither acked nor nacked
	moments  []time.Time                            // noted while no publish was under way
}

func (s *side) topic(id string) string        { return s.project + "/topics/" + id }
func (s *side) subscription(id string) string { return s.project + "/subscriptions/" + id }
func (s *side) snapshot(id string) string     { return s.project + "/snapshots/" + id }

// operation is one random call, the same on both sides. Its result is described
// without ids and times, which differ.
type operation struct {
	name string
	run  func(ctx context.Context, s *side) (result string, err error)
}

var (
	topicIDs = []string{"alpha", "beta", "goog", "x y"}
	subIDs   = []string{"one", "two", "three", "4th"}
)

// shares are the parts of the pulled messages that an ack or nack can name.
var shares = []string{"a malformed id", "all", "every second"}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// drawOperation picks the next call.
func drawOperation(r *rand.Rand, step int) operation {
	topic, sub := pick(r, topicIDs[:2+r.IntN(3)]), pick(r, subIDs[:2+r.IntN(3)])
	snap := "snap-" + sub // a seek goes to a snapshot of the same subscription, see Deliberate
	switch r.IntN(29) {
	case 0, 1, 2:
		retention := pick(r, []*durationpb.Duration{nil, nil, durationpb.New(time.Hour), durationpb.New(time.Minute)})
		return operation{fmt.Sprintf("create topic %s: %v", topic, retention.AsDuration()), func(ctx context.Context, s *side) (string, error) {
			got, err := s.pub.CreateTopic(ctx, &pubsubpb.Topic{Name: s.topic(topic), MessageRetentionDuration: retention})
			return fmt.Sprint(got.GetMessageRetentionDuration().AsDuration()), err
		}}
	case 3, 4, 5:
		config := drawSubscription(r)
		return operation{fmt.Sprintf("create subscription %s on %s: %v", sub, topic, config), func(ctx context.Context, s *side) (string, error) {
			c := *drawn(config, s)
			c.Name, c.Topic = s.subscription(sub), s.topic(topic)
			if of, err := s.pub.GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: c.Topic}); err == nil && of.MessageRetentionDuration != nil {
				c.RetainAckedMessages = false // drained messages would be retained
			}
			got, err := s.sub.CreateSubscription(ctx, &c)
			if err == nil {
				_, _ = s.sub.DeleteSnapshot(ctx, &pubsubpb.DeleteSnapshotRequest{Snapshot: s.snapshot(snap)}) // of an earlier subscription
				err = s.drain(ctx, sub)
			}
			return describe(got, s), err
		}}
	case 6:
		return operation{"delete topic " + topic, func(ctx context.Context, s *side) (string, error) {
			_, err := s.pub.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: s.topic(topic)})
			return "", err
		}}
	case 7:
		return operation{"delete subscription " + sub, func(ctx context.Context, s *side) (string, error) {
			_, err := s.sub.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: s.subscription(sub)})
			return "", err
		}}
	case 8:
		return operation{"get topic " + topic, func(ctx context.Context, s *side) (string, error) {
			got, err := s.pub.GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: s.topic(topic)})
			return strings.TrimPrefix(got.GetName(), s.project), err
		}}
	case 9:
		return operation{"get subscription " + sub, func(ctx context.Context, s *side) (string, error) {
			got, err := s.sub.GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{Subscription: s.subscription(sub)})
			return describe(got, s), err
		}}
	case 10:
		return operation{"list", func(ctx context.Context, s *side) (string, error) { return s.list(ctx, topic) }}
	case 11, 12, 13, 14:
		messages := drawMessages(r, step)
		return operation{fmt.Sprintf("publish %d to %s: %.80v", len(messages), topic, messages), func(ctx context.Context, s *side) (string, error) {
			got, err := s.pub.Publish(ctx, &pubsubpb.PublishRequest{Topic: s.topic(topic), Messages: messages})
			return fmt.Sprint(len(got.GetMessageIds())), err
		}}
	case 15, 16, 17:
		return operation{"pull " + sub, func(ctx context.Context, s *side) (string, error) { return s.pullAll(ctx, sub) }}
	case 18, 19:
		share := r.IntN(3)
		return operation{fmt.Sprintf("ack %s of %s", shares[share], sub), func(ctx context.Context, s *side) (string, error) {
			return s.settle(ctx, sub, share, func(ids []string) error {
				_, err := s.sub.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: s.subscription(sub), AckIds: ids})
				return err
			})
		}}
	case 20:
		share, seconds := r.IntN(3), pick(r, []int32{0, 0, 0, -1})
		return operation{fmt.Sprintf("modify %s of %s to %d s", shares[share], sub, seconds), func(ctx context.Context, s *side) (string, error) {
			return s.settle(ctx, sub, share, func(ids []string) error {
				_, err := s.sub.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{
					Subscription: s.subscription(sub), AckIds: ids, AckDeadlineSeconds: seconds,
				})
				return err
			})
		}}
	case 21:
		mask := pick(r, []string{"ack_deadline_seconds", "filter", "topic", "nonsense", "retry_policy", "enable_message_ordering"})
		return operation{fmt.Sprintf("update %s of %s", mask, sub), func(ctx context.Context, s *side) (string, error) {
			got, err := s.sub.UpdateSubscription(ctx, &pubsubpb.UpdateSubscriptionRequest{
				Subscription: &pubsubpb.Subscription{
					Name: s.subscription(sub), AckDeadlineSeconds: 33, Labels: map[string]string{"a": "b"},
					Topic: s.topic("beta"), Filter: "attributes:other", RetryPolicy: &pubsubpb.RetryPolicy{},
				},
				UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{mask}},
			})
			return describe(got, s), err
		}}
	case 22:
		return operation{fmt.Sprintf("snapshot %s of %s", snap, sub), func(ctx context.Context, s *side) (string, error) {
			got, err := s.sub.CreateSnapshot(ctx, &pubsubpb.CreateSnapshotRequest{Name: s.snapshot(snap), Subscription: s.subscription(sub)})
			return strings.TrimPrefix(got.GetTopic(), s.project), err
		}}
	case 23:
		return operation{"note the moment", func(_ context.Context, s *side) (string, error) { s.note(); return "", nil }}
	case 24, 25, 26:
		n := r.IntN(6)
		return operation{fmt.Sprintf("seek %s to moment -%d", sub, n), func(ctx context.Context, s *side) (string, error) {
			return "", s.seekMoment(ctx, sub, n)
		}}
	case 27:
		return operation{illFiltered + sub + " on " + topic, func(ctx context.Context, s *side) (string, error) {
			got, err := s.sub.CreateSubscription(ctx, &pubsubpb.Subscription{
				Name: s.subscription(sub), Topic: s.topic(topic), Filter: "attributes:x AND OR",
			})
			return describe(got, s), err
		}}
	default:
		return operation{"seek " + sub + " to " + snap, func(ctx context.Context, s *side) (string, error) {
			_, err := s.sub.Seek(ctx, &pubsubpb.SeekRequest{
				Subscription: s.subscription(sub), Target: &pubsubpb.SeekRequest_Snapshot{Snapshot: s.snapshot(snap)},
			})
			if err == nil {
				delete(s.pulled, sub)
			}
			return "", err
		}}
	}
}

// The official emulator counts publish times in milliseconds.
const betweenMoments = 2 * time.Millisecond

// note remembers the current time as a moment that is before or after every publish.
func (s *side) note() {
	time.Sleep(betweenMoments)
	s.moments = append(s.moments, time.Now())
	time.Sleep(betweenMoments)
}

// seekMoment seeks to the n-th moment, counted from the newest, or to the
// beginning when there are fewer. A subscription that retains acked messages seeks
// to the beginning only, and one whose topic is deleted to the current time: see
// Deliberate.
func (s *side) seekMoment(ctx context.Context, sub string, n int) error {
	to := time.Now().Add(-time.Hour)
	config, err := s.sub.GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{Subscription: s.subscription(sub)})
	switch {
	case err != nil: // the seek will fail too
	case config.Topic == "_deleted-topic_":
		to = time.Now().Add(betweenMoments)
	case n < len(s.moments) && !config.RetainAckedMessages:
		to = s.moments[len(s.moments)-1-n]
	}
	_, err = s.sub.Seek(ctx, &pubsubpb.SeekRequest{
		Subscription: s.subscription(sub), Target: &pubsubpb.SeekRequest_Time{Time: timestamppb.New(to)},
	})
	if err == nil {
		delete(s.pulled, sub)
	}
	return err
}

// drawSubscription picks settings, some of them invalid.
func drawSubscription(r *rand.Rand) *pubsubpb.Subscription {
	return pick(r, []*pubsubpb.Subscription{
		{}, {}, {AckDeadlineSeconds: 600}, {AckDeadlineSeconds: 601},
		{EnableMessageOrdering: true, AckDeadlineSeconds: 600},
		{RetainAckedMessages: true, AckDeadlineSeconds: 600},
		{MessageRetentionDuration: durationpb.New(time.Minute)},
		{MessageRetentionDuration: durationpb.New(time.Hour), AckDeadlineSeconds: 600},
		{DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: "alpha", MaxDeliveryAttempts: 4}},
		{DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: "alpha", MaxDeliveryAttempts: 101}},
		{DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: "beta", MaxDeliveryAttempts: 50}, AckDeadlineSeconds: 600},
		{RetryPolicy: &pubsubpb.RetryPolicy{MaximumBackoff: durationpb.New(time.Hour)}},
		{Labels: map[string]string{"fleet": "north"}, AckDeadlineSeconds: 600},
		{Filter: "NOT attributes:absent AND NOT attributes:other"}, // every filter of the run passes all messages
	})
}

// drawn fills in the names that depend on the side.
func drawn(config *pubsubpb.Subscription, s *side) *pubsubpb.Subscription {
	c := &pubsubpb.Subscription{
		AckDeadlineSeconds: config.AckDeadlineSeconds, EnableMessageOrdering: config.EnableMessageOrdering,
		RetainAckedMessages: config.RetainAckedMessages, MessageRetentionDuration: config.MessageRetentionDuration,
		RetryPolicy: config.RetryPolicy, Filter: config.Filter, Labels: config.Labels,
	}
	if c.AckDeadlineSeconds == 0 {
		c.AckDeadlineSeconds = 600 // no lease may expire during the run
	}
	if p := config.DeadLetterPolicy; p != nil {
		c.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: s.topic(p.DeadLetterTopic), MaxDeliveryAttempts: p.MaxDeliveryAttempts}
	}
	return c
}

// drawMessages picks a publish, at times an invalid one.
func drawMessages(r *rand.Rand, step int) []*pubsubpb.PubsubMessage {
	switch r.IntN(10) {
	case 0:
		return pick(r, [][]*pubsubpb.PubsubMessage{
			nil, {{}}, {{OrderingKey: "k"}}, texts("m", 1001),
		})
	case 1:
		return []*pubsubpb.PubsubMessage{{Attributes: map[string]string{"step": fmt.Sprint(step)}}}
	}
	messages := texts(fmt.Sprintf("s%d-", step), 1+r.IntN(5))
	for _, m := range messages {
		if r.IntN(2) == 0 {
			m.OrderingKey = pick(r, []string{"k1", "k2"})
		}
	}
	return messages
}

// describe returns the settings of a subscription on which both servers must agree.
func describe(c *pubsubpb.Subscription, s *side) string {
	if c == nil {
		return ""
	}
	return fmt.Sprint(strings.TrimPrefix(c.Name, s.project), " ", strings.TrimPrefix(c.Topic, s.project), " ",
		c.AckDeadlineSeconds, c.EnableMessageOrdering, c.RetainAckedMessages, c.MessageRetentionDuration.AsDuration(),
		c.DeadLetterPolicy.GetMaxDeliveryAttempts(), c.RetryPolicy != nil,
		c.RetryPolicy.GetMinimumBackoff().AsDuration(), c.RetryPolicy.GetMaximumBackoff().AsDuration(),
		" ", c.Filter, " ", c.Labels, c.Detached)
}

func (s *side) list(ctx context.Context, topic string) (string, error) {
	var names []string
	topics, err := s.pub.ListTopics(ctx, &pubsubpb.ListTopicsRequest{Project: s.project})
	if err != nil {
		return "", err
	}
	for _, t := range topics.Topics {
		names = append(names, strings.TrimPrefix(t.Name, s.project))
	}
	subs, err := s.sub.ListSubscriptions(ctx, &pubsubpb.ListSubscriptionsRequest{Project: s.project})
	if err != nil {
		return "", err
	}
	for _, c := range subs.Subscriptions {
		names = append(names, describe(c, s))
	}
	slices.Sort(names)
	attached, err := s.pub.ListTopicSubscriptions(ctx, &pubsubpb.ListTopicSubscriptionsRequest{Topic: s.topic(topic)})
	slices.Sort(attached.GetSubscriptions())
	return strings.ReplaceAll(fmt.Sprint(names, attached.GetSubscriptions()), s.project, ""), err
}

// pullAll pulls until several answers in a row are empty. The official emulator
// dispatches on a timer, so one empty answer says little there.
func (s *side) pullAll(ctx context.Context, sub string) (string, error) {
	var got []*pubsubpb.ReceivedMessage
	for empty := 0; empty < s.patience; {
		//lint:ignore SA1019 an empty answer at once is what the loop counts
		resp, err := s.sub.Pull(ctx, &pubsubpb.PullRequest{Subscription: s.subscription(sub), MaxMessages: 100, ReturnImmediately: true})
		if err != nil {
			return "", err
		}
		if len(resp.ReceivedMessages) == 0 {
			empty++
			continue
		}
		empty = 0
		got = append(got, resp.ReceivedMessages...)
	}
	slices.SortStableFunc(got, func(a, b *pubsubpb.ReceivedMessage) int {
		return strings.Compare(content(a), content(b))
	})
	s.pulled[sub] = append(s.pulled[sub], got...)
	return contents(got), nil
}

// drain acks what a new subscription holds: the official emulator gives it what its
// topic retains.
func (s *side) drain(ctx context.Context, sub string) error {
	delete(s.pulled, sub)
	if _, err := s.pullAll(ctx, sub); err != nil || len(s.pulled[sub]) == 0 {
		return err
	}
	_, err := s.settle(ctx, sub, 1, func(ids []string) error {
		_, err := s.sub.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: s.subscription(sub), AckIds: ids})
		return err
	})
	return err
}

// content identifies a message of the run: by its data, or by its attribute if it
// has no data.
func content(m *pubsubpb.ReceivedMessage) string {
	return fmt.Sprintf("%s%s %s", m.Message.Data, m.Message.Attributes["step"], m.Message.OrderingKey)
}

func contents(messages []*pubsubpb.ReceivedMessage) string {
	var out []string
	for _, m := range messages {
		out = append(out, content(m))
	}
	return fmt.Sprintf("%q", out)
}

// settle applies a call to one of the shares of the pulled messages.
func (s *side) settle(_ context.Context, sub string, share int, call func(ids []string) error) (string, error) {
	held := s.pulled[sub]
	var chosen, rest []*pubsubpb.ReceivedMessage
	for i, m := range held {
		if share == 1 || share == 2 && i%2 == 0 {
			chosen = append(chosen, m)
		} else {
			rest = append(rest, m)
		}
	}
	ids := ackIDs(chosen)
	if share == 0 {
		ids = []string{"no ack id"}
	}
	err := call(ids)
	if err == nil {
		s.pulled[sub] = rest
	}
	return contents(chosen), err
}

// TestDifferential makes the same random calls on the embedded server and on
// Google's emulator and compares results and status codes. PUBSUB_SEED sets the
// first seed.
func TestDifferential(t *testing.T) { // P-RPC-01, P-LIM-01, P-DEL-01, P-SEEK-01
	other, ours := connect(t, official(t)), embedded(t)
	first := randomSeed(t)
	for seed := first; seed < first+24; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			p := "projects/diff-" + uuid.NewString()
			left := &side{server: ours, project: p, pulled: map[string][]*pubsubpb.ReceivedMessage{}, patience: 1}
			right := &side{server: other, project: p, pulled: map[string][]*pubsubpb.ReceivedMessage{}, patience: 4}
			var history []string
			for step := range 150 {
				op := drawOperation(r, step)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				gotL, errL := op.run(ctx, left)
				gotR, errR := op.run(ctx, right)
				cancel()
				history = append(history, op.name)
				if status.Code(errL) != status.Code(errR) || errL == nil && gotL != gotR {
					if knownDifference(op.name, status.Code(errL), status.Code(errR)) {
						switch {
						case strings.HasPrefix(op.name, "seek"):
							return // only one side replayed: the rest cannot be compared
						case errL != nil || errR != nil:
							right.undo(op.name, errR)
							continue
						case left.backsOff(t.Context(), op.name):
							return // only ours waits: the rest cannot be compared
						}
					}
					t.Fatalf("step %d, %s:\n  ours:     %s %v\n  official: %s %v\nhistory:\n  %s",
						step, op.name, gotL, errL, gotR, errR, strings.Join(history, "\n  "))
				}
			}
		})
	}
}

// backsOff says whether the subscription that an operation pulls from holds back
// nacked messages.
func (s *side) backsOff(ctx context.Context, operation string) bool {
	id, _ := strings.CutPrefix(operation, "pull ")
	got, err := s.sub.GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{Subscription: s.subscription(id)})
	return err == nil && got.RetryPolicy != nil && s.embedded.Counters().Subscriptions[got.Name].Nacked > 0
}

// undo removes what only the official emulator created, so that both sides continue
// from the same state.
func (s *side) undo(operation string, err error) {
	if err != nil {
		return
	}
	if rest, is := strings.CutPrefix(operation, "snapshot "); is {
		id, _, _ := strings.Cut(rest, " ")
		_, err = s.sub.DeleteSnapshot(s.deadline(), &pubsubpb.DeleteSnapshotRequest{Snapshot: s.snapshot(id)})
	} else if rest, is := strings.CutPrefix(operation, illFiltered); is {
		id, _, _ := strings.Cut(rest, " ")
		_, err = s.sub.DeleteSubscription(s.deadline(), &pubsubpb.DeleteSubscriptionRequest{Subscription: s.subscription(id)})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// knownDifference says whether Deliberate has an operation with these codes.
func knownDifference(operation string, ours, official codes.Code) bool {
	for _, d := range Deliberate {
		for _, call := range d.Calls {
			if strings.HasPrefix(operation, call.Operation) && call.Ours == ours && call.Official == official {
				return true
			}
		}
	}
	return false
}
