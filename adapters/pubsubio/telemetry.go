package pubsubio

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/ramp"
)

// TelemetryApplier commits reports of many drones together; see
// firestoretx.TelemetryApplier. Each shard has its own.
type TelemetryApplier interface {
	Apply(ctx context.Context, reports []domain.Telemetry) []error
	Urgent(t domain.Telemetry) bool
	Forget()
}

// telemetryPipeline groups reports into commits. It spreads drones over shards by id. A
// shard is one goroutine with its own applier, so a process never conflicts with itself.
type telemetryPipeline struct {
	*settler
	senders  senders
	lease    time.Duration
	seed     maphash.Seed
	sampling sampling
	shards   []*telemetryShard
	stopped  chan struct{} // closed when nothing more is accepted
}

// report is a decoded message on its way to a commit.
type report struct {
	domain.Telemetry
	lease  time.Time // when the lease of its message ends
	urgent bool      // changes more than its drone's whereabouts
	msg    *pubsub.Message
	span   trace.Span // nil unless the message is traced

	failure error // of the last attempt that ended before the lease
}

// telemetryShard gathers the reports of its drones. It commits a report that changes more
// than its drone's whereabouts after gather, and others when the drone's document may be
// written again. A drone that reports no more often than that does not wait: its commits
// would fall behind until each report waited almost for the next.
type telemetryShard struct {
	*settler
	sampling sampling
	applier  TelemetryApplier
	in       chan *report // has room for all that the subscription lets in
	stopped  chan struct{}
	gather   time.Duration
	coalesce time.Duration
	ramp     *ramp.Ramp
	minLease time.Duration    // how much of its lease a report must have left for a commit
	status   *meter.Histogram // latencies of the two tiers
	position *meter.Histogram
	sent     *meter.Histogram // from the drone on

	waiting map[domain.DroneID][]report
	due     map[domain.DroneID]time.Time // when a waiting drone must be committed
	seen    map[domain.DroneID]activity
	next    time.Time // the earliest of due

	letters sync.WaitGroup // dead letters being published
}

// activity is when a drone last reported and was last committed.
type activity struct{ reported, written time.Time }

// never is the due time when nothing is due.
func never() time.Time { return time.Now().Add(time.Hour) }

// tick rounds the times at which positions are committed, so that drones due at
// about the same time share a commit.
const tick = 50 * time.Millisecond

// earlyShare is how early a report may come and still not wait: by one part in this many of
// the time between two commits.
const earlyShare = 10

// maxBatch bounds the drones of one commit.
const maxBatch = 250

func newTelemetryPipeline(s *settler, cfg Config, newApplier func() TelemetryApplier) *telemetryPipeline {
	p := &telemetryPipeline{settler: s, senders: senders{cfg.RequireSender}, lease: cfg.Lease, seed: maphash.MakeSeed(), sampling: newSampling(s.tracer, cfg.TraceTelemetry), stopped: make(chan struct{})}
	for range cfg.TelemetryShards {
		p.shards = append(p.shards, &telemetryShard{
			settler: s, sampling: p.sampling, applier: newApplier(), in: make(chan *report, cfg.MaxOutstanding), stopped: p.stopped,
			ramp: cfg.Ramp, gather: cfg.TelemetryGather, coalesce: cfg.TelemetryCoalesce, minLease: cfg.Lease / 100, next: never(),
			status: s.meter.Latency(LatencyStatus), position: s.meter.Latency(LatencyPosition), sent: s.meter.Latency(LatencySent),
			waiting: map[domain.DroneID][]report{},
			due:     map[domain.DroneID]time.Time{},
			seen:    map[domain.DroneID]activity{},
		})
	}
	return p
}

// handle decodes a report and hands it to its drone's shard, which settles it. It does not wait
// for a shard that is behind: drones of all shards share ordering keys, so none would go on.
func (p *telemetryPipeline) handle(ctx context.Context, msg *pubsub.Message) {
	p.hold(msg)
	r := report{msg: msg, span: p.sampling.start(ctx, msg)}
	var err error
	if r.Telemetry, err = wire.DecodeTelemetry(msg.Data, msg.Attributes); err == nil {
		err = p.senders.check(msg.Attributes, "drone_id", string(r.DroneID))
	}
	if err != nil {
		p.settleReport(ctx, r, err)
		return
	}
	shard := p.shardOf(r.DroneID)
	r.lease = time.Now().Add(p.lease)
	select {
	case shard.in <- &r:
	case <-p.stopped:
		p.settleReport(ctx, r, context.Canceled)
	case <-ctx.Done():
		p.settleReport(ctx, r, context.Cause(ctx))
	}
}

func (p *telemetryPipeline) shardOf(id domain.DroneID) *telemetryShard {
	return p.shards[maphash.String(p.seed, string(id))%uint64(len(p.shards))]
}

// settleReport settles a report's message and ends its span.
func (s *settler) settleReport(ctx context.Context, r report, err error) {
	if r.span != nil {
		ctx = trace.ContextWithSpan(ctx, r.span)
		defer r.span.End()
		if err == nil {
			r.span.SetAttributes(attribute.String("dronefleet.drone_id", string(r.DroneID)))
		}
	}
	s.settle(ctx, r.msg, err)
}

// stop ends the shards once everything they hold is settled.
func (p *telemetryPipeline) stop() { close(p.stopped) }

// run works until the pipeline is stopped and all its reports are settled. ctx ends when
// the shutdown cannot wait for commits any longer. The machine's clock only paces commits.
func (s *telemetryShard) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	forget := time.NewTicker(time.Minute)
	defer forget.Stop()
	for {
		timer.Reset(time.Until(s.next))
		select {
		case r := <-s.in:
			s.add(*r)
			s.drain()
		case <-s.stopped:
			s.drain()
			s.commit(ctx, s.dueBy(time.Time{}))
			s.letters.Wait()
			return
		case <-timer.C:
			s.commit(ctx, s.dueBy(time.Now()))
		case <-forget.C:
			s.forget()
		}
	}
}

// drain takes whatever else is ready, so that a burst shares commits and sets the
// timer once.
func (s *telemetryShard) drain() {
	for range cap(s.in) {
		select {
		case r := <-s.in:
			s.add(*r)
		default:
			return
		}
	}
}

// add files a report under its drone and dates the drone's next commit.
func (s *telemetryShard) add(r report) {
	id, now := r.DroneID, time.Now()
	r.urgent = s.applier.Urgent(r.Telemetry)
	s.waiting[id] = append(s.waiting[id], r)
	due, waits := s.due[id]
	last := s.seen[id]
	if !waits {
		due = nextTick(last.written.Add(s.coalesce))
	}
	if now.Sub(last.reported) >= s.coalesce-s.coalesce/earlyShare {
		due = earliest(due, nextTick(now))
	}
	if r.urgent {
		due = earliest(due, now.Add(s.gather))
	}
	s.seen[id] = activity{now, last.written}
	s.due[id] = due
	s.next = earliest(s.next, due)
}

func nextTick(t time.Time) time.Time { return t.Truncate(tick).Add(tick) }

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// dueBy removes and returns the reports of the drones due by then; of all drones if
// then is zero. Those that only move wait while the ramp holds back writes.
func (s *telemetryShard) dueBy(then time.Time) []report {
	var batch []report
	s.next = never()
	held := !then.IsZero() && !s.ramp.Ready(firestoretx.Drones)
	for id, due := range s.due {
		if !then.IsZero() && due.After(then) {
			s.next = earliest(s.next, due)
			continue
		}
		if held && !s.urgent(id) {
			s.next = earliest(s.next, then.Add(tick))
			continue
		}
		batch = append(batch, s.waiting[id]...)
		delete(s.waiting, id)
		delete(s.due, id)
		s.seen[id] = activity{s.seen[id].reported, time.Now()}
	}
	return batch
}

// urgent reports whether a waiting drone has a report that changes more than its whereabouts.
func (s *telemetryShard) urgent(id domain.DroneID) bool {
	return slices.ContainsFunc(s.waiting[id], func(r report) bool { return r.urgent })
}

// commit applies reports, retries transient failures while the leases last, and
// settles every report.
func (s *telemetryShard) commit(ctx context.Context, batch []report) {
	for len(batch) > 0 {
		n := min(len(batch), maxBatch)
		if some := s.inTime(ctx, batch[:n]); len(some) > 0 {
			s.commitSome(ctx, some)
		}
		batch = batch[n:]
	}
}

var errLeaseEnds = fmt.Errorf("too little of the message's lease is left for a commit: %w", context.DeadlineExceeded)

// inTime nacks the reports whose leases are about to end, and returns the others. A commit
// ends with its earliest lease: a late report would take fresh ones with it.
func (s *telemetryShard) inTime(ctx context.Context, batch []report) (rest []report) {
	end := time.Now().Add(s.minLease)
	for _, r := range batch {
		if r.lease.Before(end) {
			s.finish(ctx, r, errLeaseEnds)
			continue
		}
		rest = append(rest, r)
	}
	return rest
}

// commitSome commits one batch before the earliest of its leases ends.
func (s *telemetryShard) commitSome(ctx context.Context, batch []report) {
	lease := batch[0].lease
	for _, r := range batch {
		lease = earliest(lease, r.lease)
	}
	leased, cancel := context.WithDeadline(meter.WithOperation(ctx, TopicTelemetry), lease)
	defer cancel()
	leased, span := s.sampling.startCommit(leased, batch)
	defer span.End()
	left := batch
	_ = retry(leased, func(attempt context.Context) error { // each report has its own failure
		reports := make([]domain.Telemetry, len(left))
		for i, r := range left {
			reports[i] = r.Telemetry
		}
		var again []report
		var transient error
		for i, err := range s.applier.Apply(attempt, reports) {
			r := left[i]
			if err != nil && s.retryable(err) {
				if r.failure == nil || leased.Err() == nil {
					r.failure = err
				}
				again, transient = append(again, r), err
				continue
			}
			if err == nil {
				s.timeClass(r)
			}
			s.finish(ctx, r, err)
		}
		left = again
		return transient
	}, s.retryable)
	for _, r := range left {
		s.finish(ctx, r, r.failure)
	}
}

// finish settles a report. Dead letters get goroutines of their own, so that one drone with
// a wrong clock delays no other. MaxOutstanding bounds them.
func (s *telemetryShard) finish(ctx context.Context, r report, err error) {
	if poisonReason(err) == "" {
		s.settleReport(ctx, r, err)
		return
	}
	s.letters.Go(func() { s.settleReport(ctx, r, err) })
}

// Kinds of latency, beside the topic's own: the two tiers of telemetry, and that from a report's
// timestamp, which is of the drone's clock, to its commit.
const (
	LatencyStatus   = "telemetry_status"
	LatencyPosition = "telemetry_position"
	LatencySent     = "telemetry_sent"
)

// timeClass records how long an applied report took, by its tier.
func (s *telemetryShard) timeClass(r report) {
	tier := s.position
	if r.urgent {
		tier = s.status
	}
	var traced trace.SpanContext
	if r.span != nil {
		traced = r.span.SpanContext()
	}
	now := s.now()
	record(tier, now.Sub(r.msg.PublishTime), traced)
	record(s.sent, now.Sub(r.Timestamp), traced)
}

// forget drops the activity of drones that no longer report.
func (s *telemetryShard) forget() {
	now := time.Now()
	for id, last := range s.seen {
		if now.Sub(last.reported) > 10*time.Minute {
			delete(s.seen, id)
		}
	}
	s.applier.Forget()
}
