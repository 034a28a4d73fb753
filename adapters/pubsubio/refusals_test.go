package pubsubio

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// poison sends messages that cannot be decoded, and returns their ids.
func (l *line) poison(topic string, n int) (ids []string) {
	l.t.Helper()
	for i := range n {
		id, err := l.world.Publish(l.t.Context(), topic, fmt.Appendf(nil, "{ %d", i), map[string]string{AttrReplayOf: "17"}, "").Wait(l.t.Context())
		if err != nil {
			l.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// refused is the records of refused messages by id.
func (l *line) refused() map[string]map[string]any {
	l.t.Helper()
	docs, err := emutest.Connect(l.t, l.hosts).Firestore.Collection(firestoretx.Refusals).Documents(l.t.Context()).GetAll()
	if err != nil {
		l.t.Fatal(err)
	}
	found := map[string]map[string]any{}
	for _, doc := range docs {
		found[doc.Ref.ID] = doc.Data()
	}
	return found
}

// F-AUD-05, F-AUD-15: a message that is refused for good has its dead letter and its record
// when it is acked.
func TestWorker_RecordsRefusalsBeforeTheAck(t *testing.T) {
	l := newLine(t)
	store, _ := l.store()
	l.work(store, Config{})
	id := l.poison(TopicOrders, 1)[0]
	l.awaitSettlements("the poison is acked", 1, 0)
	r := l.refused()["orders-"+id]
	for field, want := range map[string]any{
		"topic": TopicOrders, "messageId": id, "reason": "UNDECODABLE", "outcome": "WAITING", "replayOf": "17", "bytes": int64(3),
	} {
		if r[field] != want {
			t.Errorf("%s is %v, want %v", field, r[field], want)
		}
	}
	refusedAt, _ := r["refusedAt"].(time.Time)
	expire, _ := r["expireAt"].(time.Time)
	if text, _ := r["error"].(string); text == "" || refusedAt.IsZero() || expire.Sub(refusedAt) != 90*24*time.Hour {
		t.Errorf("record %v; want an error and the times of its refusal and of its end", r)
	}
	if letters := l.letters(TopicOrders); len(letters) != 1 {
		t.Errorf("dead letters %v, want one", letters)
	}
	if n := l.meter.RefusalsRecorded.Value(); n != 1 {
		t.Errorf("%d refusals counted as recorded, want 1", n)
	}
}

// F-AUD-15: a record that cannot be written, at once or ever, costs no ack and no dead letter.
func TestWorker_AcksWithoutRecordWhileTheStoreFails(t *testing.T) {
	t.Run("refuses", func(t *testing.T) {
		faults := &fault.Injector{}
		faults.Add(fault.Rule{NamePrefix: firestoretx.Refusals + "/", Do: fault.Fail(codes.PermissionDenied)})
		emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
		l := newLine(t)
		store, _ := l.store()
		l.work(store, Config{})
		l.poison(TopicOrders, 3)
		l.awaitSettlements("the poison is acked", 3, 0)
		if n := len(l.letters(TopicOrders)); n != 3 || l.meter.RefusalsLost.Value() != 3 {
			t.Errorf("%d dead letters and %d lost records, want 3 of each", n, l.meter.RefusalsLost.Value())
		}
	})
	t.Run("hangs", func(t *testing.T) {
		l := newLine(t)
		store, stall := l.store()
		w := NewWorker(l.client, store, l.world, Config{}, emutest.Log(t), l.meter)
		w.refusals.timeout, w.refusals.patience = time.Second, time.Millisecond
		stall()
		s := w.settler(TopicOrders)
		l.receive(TopicOrders, func(ctx context.Context, msg *pubsub.Message) {
			s.hold(msg)
			s.settle(ctx, msg, errors.New("never valid"))
		})
		l.poison(TopicOrders, 3)
		l.awaitSettlements("the poison is acked", 3, 0)
		w.refusals.finish(t.Context())
		if lost := l.meter.RefusalsLost.Value(); lost != 3 || !w.refusals.behind.Load() {
			t.Errorf("%d lost records, want 3", lost)
		}
	})
}

// keeper is a store of refusals in memory.
type keeper struct {
	recorded []domain.Refusal
	counted  []domain.Refusal
}

func (k *keeper) RecordRefusal(_ context.Context, r domain.Refusal) error {
	k.recorded = append(k.recorded, r)
	return nil
}

func (k *keeper) CountRefusals(_ context.Context, r domain.Refusal) error {
	k.counted = append(k.counted, r)
	return nil
}

// F-AUD-15: a flood writes 100 records at once and 5 a second; the rest is one number for each
// minute, topic and reason. No refusal is missing.
func TestRefusals_BoundTheirWrites(t *testing.T) {
	now := time.Date(2026, 11, 24, 14, 5, 58, 0, time.UTC)
	k, m := &keeper{}, meter.New()
	r := newRefusals(k, func() time.Time { return now }, emutest.Log(t), m)
	r.patience = time.Hour // each record waits for the store, which is quick
	sent := 0
	send := func(n int, topic, reason string) {
		for range n {
			sent++
			r.record(t.Context(), topic, &pubsub.Message{ID: fmt.Sprint(sent), PublishTime: now}, reason, errors.New("bad"))
		}
	}
	send(130, TopicOrders, "UNDECODABLE")
	send(7, TopicTelemetry, "INVALID")
	if len(k.recorded) != refusalsAtOnce || len(k.counted) != 0 {
		t.Fatalf("%d records and %d numbers, want %d and none yet", len(k.recorded), len(k.counted), refusalsAtOnce)
	}
	now = now.Add(3 * time.Second) // in the next minute
	send(20, TopicOrders, "UNDECODABLE")
	if got, want := len(k.recorded), refusalsAtOnce+3*refusalsPerSecond; got != want {
		t.Errorf("%d records after 3 s, want %d", got, want)
	}
	r.finish(t.Context())
	numbers := map[string]int{}
	total := len(k.recorded)
	for _, c := range k.counted {
		numbers[fmt.Sprintf("%s %s", c.ID, c.RefusedAt.Format(time.TimeOnly))] = c.Count
		total += c.Count
	}
	want := map[string]int{
		"orders-UNDECODABLE-2026-11-24T14:05Z 14:05:00": 30, "telemetry-INVALID-2026-11-24T14:05Z 14:05:00": 7, "orders-UNDECODABLE-2026-11-24T14:06Z 14:06:00": 5,
	}
	if fmt.Sprint(numbers) != fmt.Sprint(want) || total != sent {
		t.Errorf("numbers %v, want %v; %d refusals of %d", numbers, want, total, sent)
	}
	if r.flush(t.Context()); len(k.counted) != len(want) {
		t.Error("the numbers were written twice")
	}
	if n := m.RefusalsRecorded.Value() + m.RefusalsCounted.Value(); n != int64(sent) {
		t.Errorf("%d refusals in the metrics, want %d", n, sent)
	}
}

// F-AUD-15: two State Managers add to one number, and a message that is redelivered has one
// record.
func TestRefusals_AreRecordedOnce(t *testing.T) {
	l := newLine(t)
	store, _ := l.store()
	minute := time.Date(2026, 11, 24, 14, 5, 0, 0, time.UTC)
	number := domain.Refusal{ID: "orders-INVALID-2026-11-24T14:05Z", Topic: TopicOrders, Reason: "INVALID", RefusedAt: minute}
	for i, count := range []int{3, 4} {
		number.Count = count
		record := domain.Refusal{ID: "orders-17", Topic: TopicOrders, MessageID: "17", Reason: "INVALID", Error: strings.Repeat("x", i+1), RefusedAt: minute}
		if err := errors.Join(store.CountRefusals(t.Context(), number), store.RecordRefusal(t.Context(), record)); err != nil {
			t.Fatal(err)
		}
	}
	found := l.refused()
	if n := found[string(number.ID)]["count"]; len(found) != 2 || n != int64(7) {
		t.Errorf("%d records, with the number %v; want 2 and 7", len(found), n)
	}
	if text := found["orders-17"]["error"]; text != "x" {
		t.Errorf("the record of a redelivered message is %v, want the first one", text)
	}
}
