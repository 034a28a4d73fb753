package dispatch_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// F-ARE-05, F-ORD-05: an order that its area cannot serve in time is handed over, visibly:
// in its document and events, in the cycle's record, in the reasons why it waits and in the
// metrics. The next cycle of the other area serves it, and nobody else does.
func TestRunner_HandsOverWhatItsAreaCannotServe(t *testing.T) {
	b := newBench(t)
	other := domain.Depot{ID: "DEPOT-2", Position: domain.Position{Lat: depot.Position.Lat, Lon: depot.Position.Lon + 0.1}} // 7 km
	if err := b.store.Setup(t.Context(), []domain.Depot{other}, nil, []domain.Drone{{ID: "D1", HomeDepotID: other.ID}}); err != nil {
		t.Fatal(err)
	}
	report := domain.Telemetry{DroneID: "D1", Timestamp: time.Now(), Position: other.Position, Battery: 90, Status: domain.DroneIdle}
	if err := b.store.NewTelemetryApplier().Apply(t.Context(), []domain.Telemetry{report})[0]; err != nil {
		t.Fatal(err)
	}
	runner := b.runner(t, b.store, 15*time.Second)
	if cycle, err := runner.Once(t.Context(), other.ID, nil); err != nil || cycle.Orders != 0 {
		t.Fatalf("the other area plans the order: %+v, %v", cycle, err)
	}
	cycle, err := runner.Once(t.Context(), depot.ID, nil)
	if err != nil || cycle.HandedOver != 1 || cycle.Missions != 0 {
		t.Fatalf("cycle %+v, %v", cycle, err)
	}
	stored, err := b.store.Cycle(t.Context(), cycle.ID)
	handedOver := slices.ContainsFunc(stored.Unserved, func(u domain.UnservedOrder) bool {
		return u.OrderID == "SERVED" && strings.HasSuffix(u.Reason, "handed over to depot DEPOT-2")
	})
	if err != nil || stored.HandedOver != 1 || !handedOver {
		t.Errorf("recorded %d handed over: %+v, %v", stored.HandedOver, stored.Unserved, err)
	}
	if got := b.clients.Meter.Cycles.HandedOver.Value(); got != 1 {
		t.Errorf("%d hand-overs counted", got)
	}
	o, err := b.store.Order(t.Context(), "SERVED")
	if err != nil || o.PlanningDepotID != other.ID || !slices.Equal(o.HandedOverBy, []domain.DepotID{depot.ID}) {
		t.Errorf("order %+v, %v", o, err)
	}
	events, err := b.store.EventsOf(t.Context(), "cycleId", string(cycle.ID))
	if err != nil || len(events.Items) != 1 || events.Items[0].Cause != domain.CauseCycle || !strings.Contains(events.Items[0].Reason, "handed over by depot DEPOT-1 to DEPOT-2: no_drone_free") {
		t.Errorf("events %+v, %v", events.Items, err)
	}
	waits, _, err := b.store.Waits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if why := waits.Of(o); len(why) != 1 || why[0].DepotID != other.ID || why[0].Reason != domain.WaitNoCycle && why[0].Reason != domain.WaitNotSeen {
		t.Errorf("waits %+v", why)
	}
	if cycle, err = runner.Once(t.Context(), depot.ID, nil); err != nil || cycle.Orders != 1 {
		t.Errorf("the area plans on: %+v, %v", cycle, err)
	}
	if cycle, err = runner.Once(t.Context(), other.ID, nil); err != nil || cycle.Missions != 1 || len(b.published) != 1 || b.published[0].OrderIDs[0] != "SERVED" {
		t.Errorf("the other area's cycle %+v publishes %+v, %v", cycle, b.published, err)
	}
}
