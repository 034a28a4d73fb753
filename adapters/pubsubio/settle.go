package pubsubio

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"go.opentelemetry.io/otel/trace"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/policy"
)

// settler ends the life of messages of one topic.
type settler struct {
	topic       string
	log         *slog.Logger
	meter       *meter.Meter
	tracer      trace.Tracer
	backlog     *meter.Backlog
	work        *inWork
	applied     *meter.Counter
	latency     *meter.Histogram
	deadLetters *deadLetters
	refusals    *refusals
	now         func() time.Time
	retryable   func(error) bool
}

// hold counts in a message that settle will count out.
func (s *settler) hold(msg *pubsub.Message) {
	s.work.begin()
	s.backlog.Hold(msg.PublishTime)
}

// settle is the only place that acks or nacks. err is nil when the effect is committed, a
// *policy.Rejection when the message is refused for good, a poison error when it can never
// be applied, and anything else when it may succeed later. The caller ends the span in ctx.
// Poison is nacked if its dead letter is not published before ctx ends.
func (s *settler) settle(ctx context.Context, msg *pubsub.Message, err error) {
	defer s.work.end()
	defer s.backlog.Release(msg.PublishTime)
	if by := msg.Attributes[AttrReplayedBy]; by != "" {
		s.log.InfoContext(ctx, "replayed message received", slog.String("operator", by), slog.String("message_id", msg.ID),
			slog.String("replay_of", msg.Attributes[AttrReplayOf]), slog.String("topic", s.topic))
	}
	if err == nil {
		s.applied.Inc()
		record(s.latency, s.now().Sub(msg.PublishTime), trace.SpanContextFromContext(ctx))
		conclude(ctx, meter.Applied, "", nil)
		msg.Ack()
		return
	}
	log := s.log.With(slog.String("message_id", msg.ID), slog.String("topic", s.topic))
	outcome, reason, failure := meter.Nacked, poisonReason(err), err
	rejection, rejected := policy.ReasonOf(err)
	switch {
	case reason != "":
		if failure = s.deadLetters.publish(ctx, s.topic, msg, reason, err); failure != nil {
			log.ErrorContext(ctx, "dead letter not published; the message will be redelivered", slog.String("reason", reason), slog.Any("err", failure))
			break
		}
		s.refusals.record(ctx, s.topic, msg, reason, err)
		outcome, failure = meter.DeadLetter, err
		log.WarnContext(ctx, "message dead-lettered", slog.String("reason", reason), slog.Any("err", err))
	case rejected: // final: redelivery cannot change it
		outcome, reason, failure = meter.Rejected, string(rejection), nil
		log.DebugContext(ctx, "message rejected", slog.String("reason", reason), slog.Any("err", err))
	default:
		log.WarnContext(ctx, "message failed; it will be redelivered", slog.Any("err", err))
	}
	s.meter.Settle(meter.Settlement{Kind: s.topic, Outcome: outcome, Reason: reason})
	conclude(ctx, outcome, reason, failure)
	if outcome == meter.Nacked {
		msg.Nack()
		return
	}
	msg.Ack()
}

// record records a latency, with its trace if that is sampled.
func record(h *meter.Histogram, took time.Duration, of trace.SpanContext) {
	if of.IsSampled() {
		h.RecordTraced(took, of.TraceID().String())
		return
	}
	h.Record(took)
}

// Reasons for dead letters, beside those of the wire and the policies.
const (
	reasonMalformedDocument = "MALFORMED_DOCUMENT" // the stored document must be corrected first
	reasonRefusedByStore    = "REFUSED_BY_STORE"   // the store will never accept the result
)

// deadLettered are the rejections that somebody must look into: the sender is wrong, not late.
var deadLettered = []policy.Reason{
	policy.ReasonFutureTimestamp, policy.ReasonTooManyStops, policy.ReasonUnknownRevision, policy.ReasonDecisionConflict,
	policy.ReasonSenderMismatch, policy.ReasonSenderMissing,
}

// poisonReason says why a message can never be applied and belongs in the
// dead-letter topic; "" if it may be applied later, or is merely rejected.
func poisonReason(err error) string {
	var invalid *wire.ValidationError
	var undecodable *wire.UndecodableError
	var malformed *firestoretx.MalformedError
	var stranger *firestoretx.StrangerError
	reason, rejected := policy.ReasonOf(err)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &invalid):
		return wire.ReasonInvalid
	case errors.As(err, &undecodable):
		return wire.ReasonUndecodable
	case errors.As(err, &malformed):
		return reasonMalformedDocument
	case errors.As(err, &stranger), rejected && slices.Contains(deadLettered, reason):
		return string(reason)
	case rejected, firestoretx.Retryable(err), errors.Is(err, context.Canceled):
		return ""
	}
	return reasonRefusedByStore
}
