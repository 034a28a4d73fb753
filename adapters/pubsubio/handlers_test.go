package pubsubio

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/policy"
)

// post sends a message in JSON that was first published then, and waits until
// the server has it.
func (l *line) post(topic, data string, first time.Time) (id string) {
	l.t.Helper()
	attrs := map[string]string{wire.AttrContentType: "application/json", AttrPublishTime: first.Format(timeLayout)}
	id, err := l.world.Publish(l.t.Context(), topic, []byte(data), attrs, "").Wait(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return id
}

// awaitCounts waits until as many messages of a topic are settled as want says,
// and fails unless they are settled as it says.
func (l *line) awaitCounts(topic string, want map[meter.Settlement]int64) {
	l.t.Helper()
	var all int64
	for _, n := range want {
		all += n
	}
	counts := func() map[meter.Settlement]int64 {
		got := map[meter.Settlement]int64{}
		for key, n := range l.meter.Settled() {
			if key.Kind == topic && n > 0 {
				key.Kind = ""
				got[key] = n
			}
		}
		return got
	}
	eventually(l.t, "every message is settled", func() bool {
		var n int64
		for _, count := range counts() {
			n += count
		}
		return n >= all
	})
	if got := counts(); !maps.Equal(got, want) {
		l.t.Errorf("%s settled: %v, want %v", topic, got, want)
	}
}

// judged is what a store of decisions was asked.
type judged struct {
	decision domain.Decision
	via      policy.Delivery
}

// judge is a store of decisions that answers by drone. It notes what it is
// asked.
type judge struct {
	mu    sync.Mutex
	asked map[domain.DroneID][]judged
}

func (j *judge) AssignMission(_ context.Context, d domain.Decision, via policy.Delivery) (domain.LedgerEntry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked[d.DroneID] = append(j.asked[d.DroneID], judged{d, via})
	switch d.DroneID {
	case "REJECTED":
		return domain.LedgerEntry{ID: d.ID, Outcome: domain.OutcomeRejected, Reason: string(policy.ReasonLowBattery)}, nil
	case "LATER":
		if len(j.asked[d.DroneID]) < 3 {
			return domain.LedgerEntry{}, status.Error(codes.Aborted, "another was faster")
		}
	case "CONFLICT":
		return domain.LedgerEntry{}, &policy.Rejection{Reason: policy.ReasonDecisionConflict, Subject: string(d.ID)}
	case "MALFORMED":
		return domain.LedgerEntry{}, &firestoretx.MalformedError{Err: errors.New("its status is a number")}
	case "REFUSED":
		return domain.LedgerEntry{}, status.Error(codes.OutOfRange, "never")
	}
	return domain.LedgerEntry{ID: d.ID, Outcome: domain.OutcomeApplied}, nil
}

// F-DEC-03, F-DEC-04, F-DLQ-01: a decision is judged under its own id and
// snapshot time, or under the message's id and publish time if it has none; it
// is settled as it was judged, a rejection under its reason; and what is no
// decision is not judged at all.
func TestDecisionHandler_SettlesByTheVerdict(t *testing.T) {
	l := newLine(t)
	store := &judge{asked: map[domain.DroneID][]judged{}}
	s := l.settler(TopicDecisions)
	received := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s.now = func() time.Time { return received }
	handler := decisionHandler{store: store, settler: s}
	l.receive(TopicDecisions, handler.handle)

	first := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
	post := func(fields string) string {
		return l.post(TopicDecisions, `{`+fields+`,
			"orderIds": ["O1"], "route": [{"type": "HOSPITAL_DELIVERY", "position": {"lat": 48.86, "lon": 2.36}, "relatedOrderId": "O1"}]}`, first)
	}
	bare := post(`"droneId": "BARE"`)
	snapshot := first.Add(-time.Minute)
	full := post(`"droneId": "FULL", "decisionId": "DEC", "snapshotTime": "` + snapshot.Format(time.RFC3339Nano) + `"`)
	post(`"droneId": "REJECTED"`)
	post(`"droneId": "LATER"`)
	letters := []string{
		post(`"droneId": "CONFLICT"`),
		post(`"droneId": "MALFORMED"`),
		post(`"droneId": "REFUSED"`),
		post(`"droneId": `),
		post(`"droneId": "INVALID", "fence": "-1"`),
	}
	l.awaitCounts(TopicDecisions, map[meter.Settlement]int64{
		{Outcome: meter.Applied}: 3,
		{Outcome: meter.Rejected, Reason: string(policy.ReasonLowBattery)}:         1,
		{Outcome: meter.DeadLetter, Reason: string(policy.ReasonDecisionConflict)}: 1,
		{Outcome: meter.DeadLetter, Reason: reasonMalformedDocument}:               1,
		{Outcome: meter.DeadLetter, Reason: reasonRefusedByStore}:                  1,
		{Outcome: meter.DeadLetter, Reason: wire.ReasonUndecodable}:                1,
		{Outcome: meter.DeadLetter, Reason: wire.ReasonInvalid}:                    1,
	})
	l.awaitSettlements("every decision is acked", 9, 0)
	slices.Sort(letters)
	if got := l.letters(TopicDecisions); !slices.Equal(got, letters) {
		t.Errorf("letters %v, want %v", got, letters)
	}
	eventually(t, "none is held", func() bool { return s.backlog.Messages() == 0 })

	times := map[domain.DroneID]int{}
	for drone, asked := range store.asked {
		times[drone] = len(asked)
	}
	if want := map[domain.DroneID]int{"BARE": 1, "FULL": 1, "REJECTED": 1, "LATER": 3, "CONFLICT": 1, "MALFORMED": 1, "REFUSED": 1}; !maps.Equal(times, want) {
		t.Fatalf("judged %v, want %v", times, want)
	}
	for _, tt := range []struct {
		drone    domain.DroneID
		id       domain.DecisionID
		snapshot time.Time
		message  string
	}{
		{"BARE", domain.DecisionID(bare), first, bare},
		{"FULL", "DEC", snapshot, full},
	} {
		got := store.asked[tt.drone][0]
		if got.decision.ID != tt.id || !got.decision.SnapshotTime.Equal(tt.snapshot) {
			t.Errorf("%s is judged as decision %s on the snapshot of %v, want %s and %v", tt.drone, got.decision.ID, got.decision.SnapshotTime, tt.id, tt.snapshot)
		}
		if want := (policy.Delivery{MessageID: tt.message, PublishedAt: first, ReceivedAt: received}); got.via != want {
			t.Errorf("%s came by %+v, want %+v", tt.drone, got.via, want)
		}
	}
}

// orderBook is a store of orders that answers by id. It notes what it is
// told, and when that was published.
type orderBook struct {
	mu   sync.Mutex
	told map[domain.OrderID][]time.Time
}

func (b *orderBook) IngestOrder(_ context.Context, req domain.OrderRequest, published time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told[req.ID] = append(b.told[req.ID], published)
	switch req.ID {
	case "REJECTED":
		return &policy.Rejection{Reason: policy.ReasonCancelTooLate, Subject: string(req.ID)}
	case "LATER":
		if len(b.told[req.ID]) < 3 {
			return status.Error(codes.Unavailable, "not now")
		}
	}
	return nil
}

// F-ACK-01, F-DLQ-01: an order is told to the store as published when it first
// was, and settled as the store says; what is no order is told to nobody.
func TestOrderHandler_SettlesByTheStoresAnswer(t *testing.T) {
	l := newLine(t)
	store := &orderBook{told: map[domain.OrderID][]time.Time{}}
	s := l.settler(TopicOrders)
	handler := orderHandler{store: store, settler: s}
	l.receive(TopicOrders, handler.handle)
	first := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
	post := func(fields string) string {
		return l.post(TopicOrders, `{`+fields+`, "productType": "BLOOD", "deliveryLocation": {"lat": 48.86, "lon": 2.36}}`, first)
	}
	post(`"id": "APPLIED"`)
	post(`"id": "REJECTED"`)
	post(`"id": "LATER"`)
	letters := []string{post(`"id": `), post(`"id": "INVALID", "packageWeightKg": -1`)}
	l.awaitCounts(TopicOrders, map[meter.Settlement]int64{
		{Outcome: meter.Applied}: 2,
		{Outcome: meter.Rejected, Reason: string(policy.ReasonCancelTooLate)}: 1,
		{Outcome: meter.DeadLetter, Reason: wire.ReasonUndecodable}:           1,
		{Outcome: meter.DeadLetter, Reason: wire.ReasonInvalid}:               1,
	})
	l.awaitSettlements("every order is acked", 5, 0)
	slices.Sort(letters)
	if got := l.letters(TopicOrders); !slices.Equal(got, letters) {
		t.Errorf("letters %v, want %v", got, letters)
	}
	eventually(t, "none is held", func() bool { return s.backlog.Messages() == 0 })
	want := map[domain.OrderID][]time.Time{"APPLIED": {first}, "REJECTED": {first}, "LATER": {first, first, first}}
	if !maps.EqualFunc(store.told, want, slices.Equal) {
		t.Errorf("told %v, want %v", store.told, want)
	}
}

// F-ACK-01, F-DLQ-01: what a shutdown or an outage cut short comes again; only
// what nobody can ever apply gets a dead letter.
func TestPoisonReason_SparesWhatMaySucceedLater(t *testing.T) {
	for _, row := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{context.Canceled, ""},
		{context.DeadlineExceeded, ""},
		{status.Error(codes.Unavailable, "not now"), ""},
		{&policy.Rejection{Reason: policy.ReasonStaleTelemetry}, ""},
		{&policy.Rejection{Reason: policy.ReasonFutureTimestamp}, string(policy.ReasonFutureTimestamp)},
		{&policy.Rejection{Reason: policy.ReasonDecisionConflict}, string(policy.ReasonDecisionConflict)},
		{&firestoretx.MalformedError{Err: errors.New("no number")}, reasonMalformedDocument},
		{status.Error(codes.InvalidArgument, "too large"), reasonRefusedByStore},
		{&policy.Rejection{Reason: policy.ReasonDroneUnknown}, ""},                                                                 // of a decision
		{&firestoretx.StrangerError{Err: &policy.Rejection{Reason: policy.ReasonDroneUnknown}}, string(policy.ReasonDroneUnknown)}, // F-REG-11
	} {
		err := row.err
		if err != nil {
			err = fmt.Errorf("order O1: %w", err)
		}
		if got := poisonReason(err); got != row.want {
			t.Errorf("%v: %q, want %q", err, got, row.want)
		}
	}
}
