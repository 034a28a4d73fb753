package httpapi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/lock"
)

// readyFor is how long an answer is reused: frequent probes cost one round of checks
// a second.
const readyFor = time.Second

// readyTimeout is how long a round of checks may take.
const readyTimeout = 5 * time.Second

type readiness struct {
	locks    lock.Store
	pubsub   *pubsub.Client
	topic    string         // the topic that the process publishes to; "" for a process that consumes
	stopping func() error   // why the process is stopping, or nil
	outages  func() []error // why it cannot consume; nil if it consumes nothing
	work

	mu     sync.Mutex // held during a round of checks
	last   Readiness
	lastAt time.Time
}

func newReadiness(cfg Config) *readiness {
	stopping := cfg.Stopping
	if stopping == nil {
		stopping = func() error { return nil }
	}
	return &readiness{locks: cfg.Locks, pubsub: cfg.PubSub, stopping: stopping, outages: cfg.Outages, work: work{cfg.Meter, time.Now(), cfg.Depots}}
}

func (r *readiness) now(ctx context.Context) Readiness {
	if why := r.stopping(); why != nil {
		return Readiness{Status: CheckFailing, Checks: map[string]Check{
			"process": {Status: CheckFailing, Detail: fmt.Sprintf("stopping: finishing the messages it holds and pulling no new ones (%s)", why)},
		}}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.lastAt.IsZero() && time.Since(r.lastAt) < readyFor {
		return r.last
	}
	// A probe that gives up must not cancel the checks: the next probe would be told of an outage.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	var firestore, clock, messages Check
	var g errgroup.Group
	g.Go(func() error { firestore, clock = r.checkFirestore(ctx); return nil })
	g.Go(func() error { messages = r.checkPubSub(ctx); return nil })
	_ = g.Wait() // neither returns an error
	r.last = Readiness{Checks: map[string]Check{"firestore": firestore, "pubsub": messages, "clock": clock}}
	maps.Copy(r.last.Checks, r.work.check(time.Now()))
	r.last.Status = worst(r.last.Checks)
	r.lastAt = time.Now()
	return r.last
}

// checkFirestore measures the clock, which needs Firestore to answer.
func (r *readiness) checkFirestore(ctx context.Context) (store, clock Check) {
	began := time.Now()
	measured, err := r.locks.CheckClock(ctx)
	took := time.Since(began).Milliseconds()
	if err != nil {
		return Check{Status: CheckFailing, Detail: err.Error(), TookMs: took},
			Check{Status: CheckFailing, Detail: "unknown while Firestore does not answer", TookMs: took}
	}
	r.meter.ClockOffset.Set(measured.Offset)
	offset, uncertainty := inMs(measured.Offset), inMs(measured.Uncertainty)
	clock = Check{Status: CheckOK, TookMs: took, OffsetMs: &offset, UncertaintyMs: &uncertainty}
	switch measured.Level {
	case lock.ClockBlock:
		clock.Status = CheckFailing
		clock.Detail = fmt.Sprintf("the clock is off by %s, %s or more; synchronise it (NTP)", measured.Offset.Abs(), lock.SkewBlock)
	case lock.ClockWarn:
		clock.Status = CheckWarning
		clock.Detail = fmt.Sprintf("the clock is off by %s, %s or more; synchronise it (NTP)", measured.Offset.Abs(), lock.SkewWarn)
	}
	return Check{Status: CheckOK, TookMs: took}, clock
}

func inMs(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// checkPubSub looks up the topic that the process publishes to, or concurrently every subscription
// that the State Manager consumes. An account without the right to look them up passes: Pub/Sub
// answered.
func (r *readiness) checkPubSub(ctx context.Context) Check {
	began := time.Now()
	lookups := []func(context.Context) error{r.findTopic}
	if r.topic == "" {
		lookups = lookups[:0]
		for _, topic := range pubsubio.InboundTopics {
			lookups = append(lookups, func(ctx context.Context) error { return r.findSubscription(ctx, pubsubio.Subscription(topic)) })
		}
	}
	outages := make([]error, len(lookups))
	var g errgroup.Group
	for i, find := range lookups {
		g.Go(func() error { outages[i] = find(ctx); return nil })
	}
	_ = g.Wait() // no lookup returns an error
	if r.outages != nil {
		outages = append(outages, r.outages()...)
	}
	c := Check{Status: CheckOK, TookMs: time.Since(began).Milliseconds()}
	var details []string
	for _, outage := range outages {
		if outage != nil && !slices.Contains(details, outage.Error()) {
			c.Status, details = CheckFailing, append(details, outage.Error())
		}
	}
	c.Detail = strings.Join(details, "; ")
	return c
}

func (r *readiness) findTopic(ctx context.Context) error {
	_, err := r.pubsub.TopicAdminClient.GetTopic(ctx, &pubsubpb.GetTopicRequest{
		Topic: fmt.Sprintf("projects/%s/topics/%s", r.pubsub.Project(), r.topic),
	})
	return outageOf("topic "+r.topic, err)
}

// deletedTopic is what a subscription names as its topic after that was deleted.
const deletedTopic = "_deleted-topic_"

func (r *readiness) findSubscription(ctx context.Context, id string) error {
	sub, err := r.pubsub.SubscriptionAdminClient.GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{
		Subscription: fmt.Sprintf("projects/%s/subscriptions/%s", r.pubsub.Project(), id),
	})
	if sub.GetDetached() || sub.GetTopic() == deletedTopic {
		return fmt.Errorf("subscription %s has lost its topic and receives no messages; delete it, then %s", id, pubsubio.Remedy)
	}
	return outageOf("subscription "+id, err)
}

// outageOf turns Pub/Sub's answer to a look-up into what is wrong with its subject.
func outageOf(name string, err error) error {
	switch status.Code(err) {
	case codes.OK, codes.PermissionDenied:
		return nil
	case codes.NotFound:
		return fmt.Errorf("%s does not exist; %s", name, pubsubio.Remedy)
	}
	return err
}
