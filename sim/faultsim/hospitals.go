package faultsim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// hospitals order, change their orders, cancel them and publish duplicates. They
// also publish messages that must be dead-lettered.
type hospitals struct {
	source        *fleetsim.OrderSource
	publisher     *pubsubio.Publisher
	confirmations *fleetsim.Confirmations
	clock         *simclock.Clock
	random        *rand.Rand // of run alone
	perMinute     float64    // orders, of simulated time
	answers       sync.WaitGroup
}

// poisonAttr marks the messages that are meant to be refused.
const poisonAttr = "faultsim-poison"

// run orders until ctx ends, then waits for the servers' answers.
func (h *hospitals) run(ctx context.Context) {
	defer h.answers.Wait()
	opening := h.source.Opening()
	for {
		var req domain.OrderRequest
		if len(opening) > 0 && h.random.IntN(2) == 0 {
			req, opening = opening[0], opening[1:] // a short flight
			req.CreatedAt, req.Deadline = h.clock.Now().UTC().Truncate(time.Microsecond), time.Time{}
		} else {
			req = h.source.Next()
		}
		if len(opening) == 0 {
			opening = h.source.Opening()
		}
		for _, m := range h.publications(req) {
			h.answers.Go(func() { h.publishLater(ctx, m) })
		}
		select {
		case <-ctx.Done():
			return
		case <-h.clock.After(time.Duration(h.random.ExpFloat64() / h.perMinute * float64(time.Minute))):
		}
	}
}

// publication is a message to be published after a while.
type publication struct {
	domain.OrderRequest
	after time.Duration
}

// publications lists all messages about one order. A cancellation may overtake
// the order it is for.
func (h *hospitals) publications(req domain.OrderRequest) []publication {
	within := func(upTo time.Duration) time.Duration { return time.Duration(h.random.Int64N(int64(upTo))) }
	all := []publication{{req, 0}}
	switch h.random.IntN(8) {
	case 0: // the same again
		all = append(all, publication{req, within(2 * time.Minute)})
	case 1: // other content under the same id
		other := req
		other.WeightKg++
		all = append(all, publication{other, within(90 * time.Second)})
	case 2:
		cancel := req
		cancel.Cancel = true
		all = append(all, publication{cancel, within(2 * time.Minute)})
	case 3: // cancelled before it is ordered
		cancel := req
		cancel.Cancel = true
		all = []publication{{cancel, 0}, {req, within(20 * time.Second)}}
	case 4: // cancelled by somebody else, perhaps before it is ordered
		cancel := req
		cancel.Cancel, cancel.RequesterID = true, "somebody else"
		all = []publication{{cancel, within(20 * time.Second)}, {req, within(20 * time.Second)}}
	}
	return all
}

// publishLater publishes p when it is due, unless ctx ends before that.
func (h *hospitals) publishLater(ctx context.Context, p publication) {
	select {
	case <-ctx.Done():
		return
	case <-h.clock.After(p.after):
	}
	data, attrs, err := wire.EncodeOrder(p.OrderRequest, wire.Protobuf)
	if err != nil {
		return // the source makes none that cannot be encoded
	}
	attrs[wire.AttrSender] = p.RequesterID
	h.publish(ctx, pubsubio.TopicOrders, data, attrs, invariant.Message{
		Topic: pubsubio.TopicOrders, OrderID: p.ID, Timestamp: p.CreatedAt, Cancel: p.Cancel,
		ContentHash: p.Hash(), SentAt: h.clock.Now(),
	})
}

// publish publishes a message and adds it to the confirmed ones if the server
// took it, even if the answer comes after the end of ctx. It returns the message's id, "" if the
// server did not take it.
func (h *hospitals) publish(ctx context.Context, topic string, data []byte, attrs map[string]string, m invariant.Message) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	id, err := h.publisher.Publish(ctx, topic, data, attrs, "").Wait(ctx)
	if err != nil {
		return "" // not confirmed, so no effect is owed
	}
	m.ID = id
	h.confirmations.Add(m)
	return id
}

// poison publishes one of many messages that must end as dead letters.
func (h *hospitals) poison(ctx context.Context, which int) {
	now := h.clock.Now()
	json := func(format string, args ...any) []byte { return fmt.Appendf(nil, format, args...) }
	all := []struct {
		topic string
		data  []byte
	}{
		{pubsubio.TopicTelemetry, []byte{0xff, 0xff, 0xff}},
		{pubsubio.TopicTelemetry, nil},
		{pubsubio.TopicTelemetry, json(`{"droneId":"DRONE-001","timestamp":%q,"position":{"lat":200,"lon":2},"batteryPercentage":50}`, now.UTC().Format(time.RFC3339Nano))},
		{pubsubio.TopicTelemetry, json(`{"droneId":"DRONE-002","timestamp":%q,"position":{"lat":48.8,"lon":2.3},"batteryPercentage":50,"status":"IDLE"}`, now.Add(time.Hour).UTC().Format(time.RFC3339Nano))},
		{pubsubio.TopicTelemetry, json(`{"droneId":"a/b","timestamp":%q,"position":{"lat":48.8,"lon":2.3}}`, now.UTC().Format(time.RFC3339Nano))},
		{pubsubio.TopicOrders, json(`{"id":`)},
		{pubsubio.TopicOrders, json(`{"id":"__x__","deliveryLocation":{"lat":48.8,"lon":2.3}}`)},
		{pubsubio.TopicOrders, json(`{}`)},
		{pubsubio.TopicDecisions, []byte("mission for everybody")},
		{pubsubio.TopicDecisions, json(`{"droneId":"DRONE-001","orderIds":[]}`)},
		{pubsubio.TopicDecisions, json(`{"droneId":"DRONE-001","orderIds":["O-1","O-1"],"route":[]}`)},
	}
	p := all[which%len(all)]
	h.answers.Go(func() {
		h.publish(ctx, p.topic, p.data, map[string]string{poisonAttr: "yes"}, invariant.Message{Topic: p.topic})
	})
}
