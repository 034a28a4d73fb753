package pubsubio

import (
	"context"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"go.opentelemetry.io/otel/attribute"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/policy"
)

// OrderStore applies order messages.
type OrderStore interface {
	IngestOrder(ctx context.Context, req domain.OrderRequest, published time.Time) error
}

// DecisionStore applies decisions.
type DecisionStore interface {
	AssignMission(ctx context.Context, d domain.Decision, via policy.Delivery) (domain.LedgerEntry, error)
}

// LinkStore applies messages about drones' sessions.
type LinkStore interface {
	ApplyLinkState(ctx context.Context, s domain.LinkState) error
}

// linkHandler applies the messages of topic links.
type linkHandler struct {
	store LinkStore
	*settler
}

// handle decodes one message about a session, has the store apply it, and settles it.
func (h *linkHandler) handle(ctx context.Context, msg *pubsub.Message) {
	h.hold(msg)
	ctx, span := startProcessing(meter.WithOperation(ctx, TopicLinks), h.tracer, TopicLinks, msg)
	defer span.End()
	s, err := wire.DecodeLinkState(msg.Data, msg.Attributes)
	if err == nil {
		span.SetAttributes(attribute.String("dronefleet.drone_id", string(s.DroneID)))
		err = retry(ctx, func(ctx context.Context) error { return h.store.ApplyLinkState(ctx, s) }, h.retryable)
	}
	h.settle(ctx, msg, err)
}

// orderHandler applies the messages of topic orders.
type orderHandler struct {
	store   OrderStore
	senders senders
	*settler
}

// handle decodes one order message, has the store apply it, and settles it.
func (h *orderHandler) handle(ctx context.Context, msg *pubsub.Message) {
	h.hold(msg)
	ctx, span := startProcessing(meter.WithOperation(ctx, TopicOrders), h.tracer, TopicOrders, msg)
	defer span.End()
	req, err := wire.DecodeOrder(msg.Data, msg.Attributes)
	if err == nil {
		span.SetAttributes(attribute.String("dronefleet.order_id", string(req.ID)))
		err = h.senders.check(msg.Attributes, "requester_id", req.RequesterID)
	}
	if err == nil {
		err = retry(ctx, func(ctx context.Context) error { return h.store.IngestOrder(ctx, req, published(msg)) }, h.retryable)
	}
	h.settle(ctx, msg, err)
}

// decisionHandler applies the messages of topic decisions.
type decisionHandler struct {
	store DecisionStore
	*settler
}

// handle decodes one decision, lets the store judge it, and settles it. When the store
// answers, the verdict is in the ledger.
func (h *decisionHandler) handle(ctx context.Context, msg *pubsub.Message) {
	h.hold(msg)
	ctx, span := startProcessing(meter.WithOperation(ctx, TopicDecisions), h.tracer, TopicDecisions, msg)
	defer span.End()
	received := h.now()
	d, err := wire.DecodeDecision(msg.Data, msg.Attributes)
	if err == nil {
		if d.ID == "" {
			d.ID = domain.DecisionID(msg.ID)
		}
		if d.SnapshotTime.IsZero() {
			d.SnapshotTime = published(msg)
		}
		span.SetAttributes(attribute.String("dronefleet.decision_id", string(d.ID)), attribute.String("dronefleet.cycle_id", string(d.CycleID)),
			attribute.String("dronefleet.drone_id", string(d.DroneID)))
		via := policy.Delivery{MessageID: msg.ID, PublishedAt: published(msg), ReceivedAt: received}
		err = retry(ctx, func(ctx context.Context) error {
			entry, err := h.store.AssignMission(ctx, d, via)
			if err == nil && entry.Outcome == domain.OutcomeRejected {
				err = &policy.Rejection{Reason: policy.Reason(entry.Reason), Subject: string(d.ID), Detail: entry.Detail}
			}
			return err
		}, h.retryable)
	}
	h.settle(ctx, msg, err)
}
