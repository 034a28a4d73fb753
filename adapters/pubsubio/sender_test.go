package pubsubio

import (
	"fmt"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/policy"
)

// F-SND-01: with RequireSender a report or order that comes from somebody else, or from nobody
// in particular, becomes a dead letter; without, nobody looks.
func TestWorker_RefusesMessagesOfOtherSenders(t *testing.T) {
	applied := meter.Settlement{Outcome: meter.Applied}
	mismatch := meter.Settlement{Outcome: meter.DeadLetter, Reason: string(policy.ReasonSenderMismatch)}
	missing := meter.Settlement{Outcome: meter.DeadLetter, Reason: string(policy.ReasonSenderMissing)}
	for _, required := range []bool{true, false} {
		t.Run(fmt.Sprint(required), func(t *testing.T) {
			l := newLine(t)
			store, _ := l.store()
			l.work(store, Config{RequireSender: required})
			send := func(topic, data string, attrs map[string]string) {
				t.Helper()
				if _, err := l.world.Publish(t.Context(), topic, []byte(data), attrs, "").Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			report := func(drone, battery string) string {
				return fmt.Sprintf(`{"droneId": %q, "position": {"lat": 48.85, "lon": 2.35}, "batteryPercentage": %s, "status": "IDLE", "timestamp": %q}`,
					drone, battery, time.Now().UTC().Format(time.RFC3339Nano))
			}
			order := func(id, requester string) string {
				return fmt.Sprintf(`{"id": %q, "requesterId": %q, "productType": "BLOOD", "deliveryLocation": {"lat": 48.86, "lon": 2.36}}`, id, requester)
			}
			send(TopicTelemetry, report("D1", "80"), map[string]string{wire.AttrSender: "D1"})
			send(TopicTelemetry, report("D2", "80"), map[string]string{wire.AttrSender: "D1"})
			send(TopicTelemetry, report("D3", "80"), nil)
			send(TopicTelemetry, report("D4", "800"), nil) // what is invalid is said first
			send(TopicOrders, order("O1", "WARD-4"), map[string]string{wire.AttrSender: "WARD-4"})
			send(TopicOrders, order("O2", "WARD-4"), map[string]string{wire.AttrSender: "WARD-5"})
			send(TopicOrders, order("O3", ""), map[string]string{wire.AttrSender: ""})
			send(TopicOrders, order("O4", ""), map[string]string{wire.AttrSender: "WARD-4"})
			invalid := meter.Settlement{Outcome: meter.DeadLetter, Reason: wire.ReasonInvalid}
			reports := map[meter.Settlement]int64{applied: 3, invalid: 1}
			orders := map[meter.Settlement]int64{applied: 4}
			if required {
				reports = map[meter.Settlement]int64{applied: 1, mismatch: 1, missing: 1, invalid: 1}
				orders = map[meter.Settlement]int64{applied: 1, mismatch: 2, missing: 1}
			}
			l.awaitCounts(TopicTelemetry, reports)
			l.awaitCounts(TopicOrders, orders)
			if _, err := store.Drone(t.Context(), "D2"); (err != nil) != required {
				t.Errorf("drone D2, whose report another drone sent: %v", err)
			}
		})
	}
}
