package pubsubemu

import (
	"cmp"
	"context"
	"slices"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Per-id results of exactly-once delivery, carried in ErrorInfo.metadata,
// https://cloud.google.com/pubsub/docs/exactly-once-delivery.
const (
	permanentInvalid   = "PERMANENT_FAILURE_INVALID_ACK_ID"
	transientUnordered = "TRANSIENT_FAILURE_UNORDERED_ACK_ID"
	transientRepeat    = "TRANSIENT_FAILURE_REPEAT_WITHOUT_INVALID_ACK_IDS"
)

// ackReport lists the outcome of each ack id of an exactly-once request. It is
// nil without exactly-once delivery, where every well-formed id is accepted.
type ackReport struct{ applied, invalid, unordered []string }

// Acknowledge settles deliveries.
func (s *Server) Acknowledge(_ context.Context, req *pubsubpb.AcknowledgeRequest) (*emptypb.Empty, error) {
	sub, err := s.subscription("subscription", req.Subscription)
	if err != nil {
		return nil, err
	}
	if err := checkSettle(req); err != nil {
		return nil, err
	}
	report, err := sub.acknowledge(req.AckIds)
	if err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, report.failure("acknowledge")
}

// ModifyAckDeadline extends leases, or gives deliveries back with 0 seconds.
func (s *Server) ModifyAckDeadline(_ context.Context, req *pubsubpb.ModifyAckDeadlineRequest) (*emptypb.Empty, error) {
	sub, err := s.subscription("subscription", req.Subscription)
	if err != nil {
		return nil, err
	}
	if err := checkSettle(req); err != nil {
		return nil, err
	}
	if err := checkExtension(req.AckDeadlineSeconds); err != nil {
		return nil, err
	}
	report, err := sub.modify(req.AckIds, func(int) int32 { return req.AckDeadlineSeconds })
	if err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, report.failure("modify ack deadline")
}

func checkExtension(seconds int32) error {
	if seconds < 0 || seconds > maxAckDeadline {
		return invalid("ack_deadline_seconds: %d is out of range; use 0 to %d", seconds, maxAckDeadline)
	}
	return nil
}

// target is one ack id of a request, parsed.
type target struct {
	at    int    // position in the request
	lease uint64 // 0 when the id is from an earlier start or subscription of this name
}

// targets parses ack ids; a malformed one fails the whole request.
func (sub *subscription) targets(ackIDs []string) ([]target, error) {
	out := make([]target, len(ackIDs))
	for i, id := range ackIDs {
		instance, lease, ok := parseAckID(id)
		if !ok {
			return nil, invalid("ack_ids[%d]: %q is not an ack id of this server", i, id)
		}
		if instance != sub.instance {
			lease = 0
		}
		out[i] = target{at: i, lease: lease}
	}
	return out, nil
}

func (sub *subscription) acknowledge(ackIDs []string) (*ackReport, error) {
	return sub.apply(ackIDs, earliestFirst, func(t target, now int64) ackOutcome {
		return sub.backlog.acknowledge(sub.original(t.lease), now)
	})
}

func (sub *subscription) modify(ackIDs []string, seconds func(i int) int32) (*ackReport, error) {
	return sub.apply(ackIDs, latestFirst, func(t target, now int64) ackOutcome {
		if extension := seconds(t.at); extension > 0 {
			return sub.backlog.extend(t.lease, now+int64(time.Duration(extension)*time.Second))
		}
		return sub.backlog.nack(t.lease, now)
	})
}

// The order of the ids of one request on an ordered subscription: acks in the order
// of delivery, as exactly-once requires; nacks in reverse, because the nack of an
// earlier message ends the leases of the later ones.
func earliestFirst(a, b target) int { return cmp.Compare(a.lease, b.lease) }
func latestFirst(a, b target) int   { return cmp.Compare(b.lease, a.lease) }

// apply runs one operation per ack id under the lock.
func (sub *subscription) apply(ackIDs []string, order func(a, b target) int, do func(target, int64) ackOutcome) (*ackReport, error) {
	if len(ackIDs) == 0 {
		return nil, nil
	}
	targets, err := sub.targets(ackIDs)
	if err != nil {
		return nil, err
	}
	sub.mu.Lock()
	defer sub.unlock()
	if sub.ended != nil {
		return nil, sub.ended
	}
	if sub.backlog.rules.ordered {
		slices.SortFunc(targets, order)
	}
	var report *ackReport
	if sub.backlog.rules.exactlyOnce {
		report = &ackReport{}
	}
	now := sub.server.now()
	sub.backlog.advance(now)
	for _, t := range targets {
		outcome := do(t, now)
		if report != nil {
			report.add(ackIDs[t.at], outcome)
		}
	}
	sub.backlog.wakeIdle()
	return report, nil
}

func (r *ackReport) add(id string, outcome ackOutcome) {
	switch outcome {
	case ackApplied:
		r.applied = append(r.applied, id)
	case ackInvalid:
		r.invalid = append(r.invalid, id)
	case ackUnordered:
		r.unordered = append(r.unordered, id)
	}
}

// failure is the status of an exactly-once request in which some ids failed: as the
// service documents it INVALID_ARGUMENT if one is invalid, such as one that has expired.
// Clients treat an id without metadata in a failed request as failed, so applied
// ids are marked transient: the client repeats only those, and the server, which
// remembers them, answers OK.
func (r *ackReport) failure(what string) error {
	if r == nil || len(r.invalid)+len(r.unordered) == 0 {
		return nil
	}
	details := map[string]string{}
	mark := func(ids []string, result string) {
		for _, id := range ids {
			details[id] = result
		}
	}
	mark(r.applied, transientRepeat)
	mark(r.unordered, transientUnordered)
	mark(r.invalid, permanentInvalid)
	code := codes.FailedPrecondition
	if len(r.invalid) > 0 {
		code = codes.InvalidArgument
	}
	failed := status.Newf(code, "%s: %d of %d ack ids failed: %d invalid or expired, %d out of order; see the error details for each",
		what, len(r.invalid)+len(r.unordered), len(details), len(r.invalid), len(r.unordered))
	detailed, err := failed.WithDetails(&errdetails.ErrorInfo{
		Reason: "EXACTLY_ONCE_ACKID_FAILURE", Domain: "pubsub.googleapis.com", Metadata: details,
	})
	if err != nil {
		return failed.Err()
	}
	return detailed.Err()
}
