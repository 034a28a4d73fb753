package httpapi

import (
	"context"
	"fmt"
	"maps"
	"net/http"
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
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/lock"
)

// Statuses of a check, worst last.
const (
	CheckOK      = "ok"
	CheckWarning = "warning" // ready, but an operator should look
	CheckFailing = "failing" // not ready
)

// Check is the state of one thing that the process depends on.
type Check struct {
	Status string `json:"status"`
	Detail string `json:"detail,omitempty"`
	TookMs int64  `json:"tookMs"`

	// Clock: the server's time minus the local time, and how far the true offset may
	// be from that.
	OffsetMs      *float64 `json:"offsetMs,omitempty"`
	UncertaintyMs *float64 `json:"uncertaintyMs,omitempty"`

	// Backlog: the age of the oldest message in memory, by kind.
	AgeMs map[string]int64 `json:"ageMs,omitempty"`
	// Lock: whether this process holds it, and how long ago an attempt to acquire it
	// was last answered.
	Held       *bool  `json:"held,omitempty"`
	TriedAgoMs *int64 `json:"triedAgoMs,omitempty"`
	// Cycle: how long ago one last ended, in this process or, as far as this process
	// saw, in another.
	EndedAgoMs *int64 `json:"endedAgoMs,omitempty"`
}

// Readiness is the answer of /readyz.
type Readiness struct {
	Status string           `json:"status"`
	Checks map[string]Check `json:"checks"`
}

// readyFor is how long a report is reused: frequent probes cost one round of checks
// a second.
const readyFor = time.Second

// readyTimeout is how long a round of checks may take.
const readyTimeout = 5 * time.Second

type readiness struct {
	locks    lock.Store
	pubsub   *pubsub.Client
	topic    string // the topic that the process publishes to; "" for a process that consumes
	meter    *meter.Meter
	began    time.Time
	stopping func() error   // why the process is stopping, or nil
	faults   func() []error // why it cannot consume; nil if it consumes nothing
	depots   func() error   // which depots have no cycles; nil if it watches none

	mu     sync.Mutex // held during a round of checks
	last   Readiness
	lastAt time.Time
}

func newReadiness(cfg Config) *readiness {
	stopping := cfg.Stopping
	if stopping == nil {
		stopping = func() error { return nil }
	}
	return &readiness{locks: cfg.Locks, pubsub: cfg.PubSub, meter: cfg.Meter, began: time.Now(), stopping: stopping, faults: cfg.Faults, depots: cfg.Depots}
}

// readyz says whether the process can work: Firestore and Pub/Sub answer and the
// clocks agree, an optimizer's cycles end, and every depot has cycles while orders wait
// (F-OPT-06). It answers 503 if not, or if the process is stopping. A slow backlog or
// lock is only a warning: taking a slow process out of service or restarting it does
// not make it faster.
//
// Cost: 5 RPCs to Firestore, 5 reads, and one RPC to Pub/Sub for each subscription
// or topic checked, at most once a second.
func (a *API) readyz(ctx context.Context, _ *request) (any, error) {
	report := a.ready.report(ctx)
	if report.Status == CheckFailing {
		return reply{http.StatusServiceUnavailable, report}, nil
	}
	return report, nil
}

func (r *readiness) report(ctx context.Context) Readiness {
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
	// A probe that gives up must not end the checks: its failure would be reported to
	// the next probe as an outage.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	var firestore, clock, messages Check
	var g errgroup.Group
	g.Go(func() error { firestore, clock = r.checkFirestore(ctx); return nil })
	g.Go(func() error { messages = r.checkPubSub(ctx); return nil })
	_ = g.Wait() // neither returns an error
	r.last = Readiness{Checks: map[string]Check{"firestore": firestore, "pubsub": messages, "clock": clock}}
	maps.Copy(r.last.Checks, r.checkWork(time.Now()))
	r.last.Status = worst(r.last.Checks)
	r.lastAt = time.Now()
	return r.last
}

// worst is the status of the worst check.
func worst(checks map[string]Check) string {
	verdict := CheckOK
	for _, c := range checks {
		if c.Status == CheckFailing || c.Status == CheckWarning && verdict == CheckOK {
			verdict = c.Status
		}
	}
	return verdict
}

// checkFirestore measures the clock, which needs Firestore to answer.
func (r *readiness) checkFirestore(ctx context.Context) (store, clock Check) {
	began := time.Now()
	report, err := r.locks.CheckClock(ctx)
	took := time.Since(began).Milliseconds()
	if err != nil {
		return Check{Status: CheckFailing, Detail: err.Error(), TookMs: took},
			Check{Status: CheckFailing, Detail: "unknown while Firestore does not answer", TookMs: took}
	}
	r.meter.ClockOffset.Set(report.Offset)
	offset, uncertainty := inMs(report.Offset), inMs(report.Uncertainty)
	clock = Check{Status: CheckOK, TookMs: took, OffsetMs: &offset, UncertaintyMs: &uncertainty}
	switch report.Level {
	case lock.ClockBlock:
		clock.Status = CheckFailing
		clock.Detail = fmt.Sprintf("the clock is off by %s, %s or more; synchronise it (NTP)", report.Offset.Abs(), lock.SkewBlock)
	case lock.ClockWarn:
		clock.Status = CheckWarning
		clock.Detail = fmt.Sprintf("the clock is off by %s, %s or more; synchronise it (NTP)", report.Offset.Abs(), lock.SkewWarn)
	}
	return Check{Status: CheckOK, TookMs: took}, clock
}

func inMs(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// checkPubSub lookups up the topic that the process publishes to, or every
// subscription that the State Manager consumes, concurrently. An account that may
// use them but not look them up is fine: Pub/Sub answered. It does not see that a
// subscription was deleted, which the consumer reports.
func (r *readiness) checkPubSub(ctx context.Context) Check {
	began := time.Now()
	lookups := []func(context.Context) error{r.findTopic}
	if r.topic == "" {
		lookups = lookups[:0]
		for _, topic := range pubsubio.InboundTopics {
			lookups = append(lookups, func(ctx context.Context) error { return r.findSubscription(ctx, pubsubio.Subscription(topic)) })
		}
	}
	faults := make([]error, len(lookups))
	var g errgroup.Group
	for i, find := range lookups {
		g.Go(func() error { faults[i] = find(ctx); return nil })
	}
	_ = g.Wait() // no lookup returns an error
	if r.faults != nil {
		faults = append(faults, r.faults()...)
	}
	c := Check{Status: CheckOK, TookMs: time.Since(began).Milliseconds()}
	var details []string
	for _, fault := range faults {
		if fault != nil && !slices.Contains(details, fault.Error()) {
			c.Status, details = CheckFailing, append(details, fault.Error())
		}
	}
	c.Detail = strings.Join(details, "; ")
	return c
}

func (r *readiness) findTopic(ctx context.Context) error {
	_, err := r.pubsub.TopicAdminClient.GetTopic(ctx, &pubsubpb.GetTopicRequest{
		Topic: fmt.Sprintf("projects/%s/topics/%s", r.pubsub.Project(), r.topic),
	})
	return faultOf("topic "+r.topic, err)
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
	return faultOf("subscription "+id, err)
}

// faultOf turns Pub/Sub's answer to a look-up into what is wrong with its subject.
func faultOf(name string, err error) error {
	switch status.Code(err) {
	case codes.OK, codes.PermissionDenied:
		return nil
	case codes.NotFound:
		return fmt.Errorf("%s does not exist; %s", name, pubsubio.Remedy)
	}
	return err
}
