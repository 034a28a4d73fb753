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
	"github.com/dronefleet/dronefleet/lock/firestorelock"
)

// Verdicts of a check, worst last.
const (
	CheckOK      = "ok"
	CheckWarning = "warning" // ready, but somebody should look
	CheckFailing = "failing" // not ready
)

// Check is the outcome of one look at something the process depends on.
type Check struct {
	Status string `json:"status"`
	Detail string `json:"detail,omitempty"`
	TookMs int64  `json:"tookMs"`

	// Of the clock: the server's time minus the local one, and how far the true
	// offset may be from that.
	OffsetMs      *float64 `json:"offsetMs,omitempty"`
	UncertaintyMs *float64 `json:"uncertaintyMs,omitempty"`

	// Of the backlog: the age of the oldest message held, by kind.
	AgeMs map[string]int64 `json:"ageMs,omitempty"`
	// Of a lock: whether this process holds it, and how long ago it last asked
	// for it and got an answer.
	Held       *bool  `json:"held,omitempty"`
	TriedAgoMs *int64 `json:"triedAgoMs,omitempty"`
	// Of the cycles: how long ago one last ended, here or, so far as this
	// process saw, elsewhere.
	EndedAgoMs *int64 `json:"endedAgoMs,omitempty"`
}

// Readiness is the answer of /readyz.
type Readiness struct {
	Status string           `json:"status"`
	Checks map[string]Check `json:"checks"`
}

// readyFor is how long a report is given out again, so that eager probes cost
// no more than one look each second.
const readyFor = time.Second

// readyTimeout is how long a service may take to answer.
const readyTimeout = 5 * time.Second

type readiness struct {
	locks    *firestorelock.Backend
	pubsub   *pubsub.Client
	topic    string // to which the process must be able to publish; "" if it consumes
	meter    *meter.Meter
	began    time.Time
	stopping func() error // why the process stops, or nil

	mu     sync.Mutex // held while looking: one look at a time
	last   Readiness
	lastAt time.Time
}

func newReadiness(cfg Config) *readiness {
	stopping := cfg.Stopping
	if stopping == nil {
		stopping = func() error { return nil }
	}
	return &readiness{locks: cfg.Locks, pubsub: cfg.PubSub, meter: cfg.Meter, began: time.Now(), stopping: stopping}
}

// readyz says whether the process can do its work: Firestore and Pub/Sub answer
// and the clocks agree. It answers 503 when it cannot, or is about to stop. How
// the work goes (backlog, locks, cycles) it only warns of: a process that is
// behind gets no faster by being taken out of service or started again.
//
// Cost: 5 RPCs to Firestore, 5 reads, and one RPC to Pub/Sub for each subscription
// or topic asked for, at most once a second.
func (a *API) readyz(w http.ResponseWriter, r *http.Request) {
	if _, err := parameters(r); err != nil {
		a.refuse(w, r, err)
		return
	}
	report := a.ready.report(r.Context())
	code := http.StatusOK
	if report.Status == CheckFailing {
		code = http.StatusServiceUnavailable
	}
	a.write(w, r, code, "application/json", report)
}

func (r *readiness) report(ctx context.Context) Readiness {
	if why := r.stopping(); why != nil {
		return Readiness{Status: CheckFailing, Checks: map[string]Check{
			"process": {Status: CheckFailing, Detail: fmt.Sprintf("stopping: it settles what it holds and takes nothing new (%s)", why)},
		}}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.lastAt.IsZero() && time.Since(r.lastAt) < readyFor {
		return r.last
	}
	// A probe that gives up must not make the next one believe in an outage.
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

// worst is the verdict on all checks.
func worst(checks map[string]Check) string {
	verdict := CheckOK
	for _, c := range checks {
		if c.Status == CheckFailing || c.Status == CheckWarning && verdict == CheckOK {
			verdict = c.Status
		}
	}
	return verdict
}

// checkFirestore measures the clock, for which Firestore must answer.
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
	case firestorelock.ClockBlock:
		clock.Status = CheckFailing
		clock.Detail = fmt.Sprintf("the clock is off by %s, more than %s; synchronise it (NTP)", report.Offset.Abs(), firestorelock.SkewBlock)
	case firestorelock.ClockWarn:
		clock.Status = CheckWarning
		clock.Detail = fmt.Sprintf("the clock is off by %s, more than %s; synchronise it (NTP)", report.Offset.Abs(), firestorelock.SkewWarn)
	}
	return Check{Status: CheckOK, TookMs: took}, clock
}

func inMs(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// checkPubSub asks for the topic the process publishes to, or for every
// subscription the State Manager consumes, all at once. An account that may use
// them but not look is fine: Pub/Sub answered.
func (r *readiness) checkPubSub(ctx context.Context) Check {
	began := time.Now()
	looks := []func(context.Context) error{r.lookAtTopic}
	if r.topic == "" {
		looks = looks[:0]
		for _, topic := range pubsubio.InboundTopics {
			looks = append(looks, func(ctx context.Context) error { return r.lookAtSubscription(ctx, pubsubio.Subscription(topic)) })
		}
	}
	faults := make([]error, len(looks))
	var g errgroup.Group
	for i, look := range looks {
		g.Go(func() error { faults[i] = look(ctx); return nil })
	}
	_ = g.Wait() // no look returns an error
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

func (r *readiness) lookAtTopic(ctx context.Context) error {
	_, err := r.pubsub.TopicAdminClient.GetTopic(ctx, &pubsubpb.GetTopicRequest{
		Topic: fmt.Sprintf("projects/%s/topics/%s", r.pubsub.Project(), r.topic),
	})
	return faultOf("topic "+r.topic, err)
}

// deletedTopic is the topic of subscriptions whose own has been deleted.
const deletedTopic = "_deleted-topic_"

func (r *readiness) lookAtSubscription(ctx context.Context, id string) error {
	sub, err := r.pubsub.SubscriptionAdminClient.GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{
		Subscription: fmt.Sprintf("projects/%s/subscriptions/%s", r.pubsub.Project(), id),
	})
	if sub.GetDetached() || sub.GetTopic() == deletedTopic {
		return fmt.Errorf("subscription %s has lost its topic and gets nothing more; delete it, then %s", id, pubsubio.Remedy)
	}
	return faultOf("subscription "+id, err)
}

// faultOf is what is wrong with something that Pub/Sub was asked for.
func faultOf(name string, err error) error {
	switch status.Code(err) {
	case codes.OK, codes.PermissionDenied:
		return nil
	case codes.NotFound:
		return fmt.Errorf("%s does not exist; %s", name, pubsubio.Remedy)
	}
	return err
}
