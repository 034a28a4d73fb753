package dispatch_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// elsewhere is a depot 7 km away, in an area of its own.
var elsewhere = domain.Depot{ID: "DEPOT-2", Position: domain.Position{Lat: depot.Position.Lat, Lon: depot.Position.Lon + 0.1}}

// moveDrone moves the only drone there.
func (b *bench) moveDrone(t *testing.T) {
	t.Helper()
	if err := b.store.Setup(t.Context(), []domain.Depot{elsewhere}, nil, []domain.Drone{{ID: "D1", HomeDepotID: elsewhere.ID}}); err != nil {
		t.Fatal(err)
	}
	report := domain.Telemetry{DroneID: "D1", Timestamp: time.Now(), Position: elsewhere.Position, Battery: 90, Status: domain.DroneIdle}
	if err := b.store.NewTelemetryApplier().Apply(t.Context(), []domain.Telemetry{report})[0]; err != nil {
		t.Fatal(err)
	}
}

// disturbedStore does something before each hand-over.
type disturbedStore struct {
	*firestoretx.Store
	disturb func(*domain.HandOvers)
}

func (s disturbedStore) HandOver(ctx context.Context, h domain.HandOvers) ([]error, error) {
	s.disturb(&h)
	return s.Store.HandOver(ctx, h)
}

// F-ARE-05: a hand-over that is refused leaves its order as it is, and the cycle's record says
// why it was refused.
func TestRunner_RecordsRefusedHandOvers(t *testing.T) {
	for want, disturb := range map[string]func(*bench, *domain.HandOvers){
		"PLANNED_ELSEWHERE": func(b *bench, _ *domain.HandOvers) { // by a depot that was added meanwhile
			near := domain.Depot{ID: "A-NEAR", Position: depot.Position}
			if err := b.store.Setup(context.Background(), []domain.Depot{near}, nil, nil); err != nil {
				t.Error(err)
			}
		},
		"FENCE_UNKNOWN": func(_ *bench, h *domain.HandOvers) { h.Fence = "000000000000077" },
	} {
		t.Run(want, func(t *testing.T) {
			b := newBench(t)
			b.moveDrone(t)
			cfg := dispatch.Config{Iterations: steps, Limits: policy.Limits{MaxSilence: patient}, AreaRadius: 3}
			runner := b.configured(t, disturbedStore{b.store, func(h *domain.HandOvers) { disturb(b, h) }}, cfg)
			cycle, err := runner.Once(t.Context(), depot.ID, nil)
			if err != nil || cycle.HandedOver != 0 {
				t.Fatalf("cycle %+v, %v", cycle, err)
			}
			stored, err := b.store.Cycle(t.Context(), cycle.ID)
			if err != nil || !slices.ContainsFunc(stored.Unserved, func(u domain.UnservedOrder) bool {
				return u.OrderID == "SERVED" && strings.HasSuffix(u.Reason, "its hand-over to depot DEPOT-2 was refused: "+want)
			}) {
				t.Errorf("recorded %+v, %v", stored.Unserved, err)
			}
			if o, err := b.store.Order(t.Context(), "SERVED"); err != nil || o.PlanningDepotID != depot.ID || o.Revision != 1 {
				t.Errorf("order %+v, %v", o, err)
			}
		})
	}
}

// F-ARE-05, F-ORD-05: an order that its area cannot serve in time is handed over, visibly:
// in its document and events, in the cycle's record, in the reasons why it waits and in the
// metrics. The next cycle of the other area serves it, and nobody else does.
func TestRunner_HandsOverWhatItsAreaCannotServe(t *testing.T) {
	b, other := newBench(t), elsewhere
	b.moveDrone(t)
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
