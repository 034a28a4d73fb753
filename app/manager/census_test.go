package manager_test

import (
	"fmt"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/observe"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// metric is the value of one series on the page of a process, -1 if it is not there.
func metric(t *testing.T, c *connect.Clients, name string, labels map[string]string) float64 {
	t.Helper()
	families, err := observe.Registry(c.Meter).Gather()
	if err != nil {
		t.Fatal(err)
	}
	matches := func(m *dto.Metric) bool {
		found := 0
		for _, l := range m.GetLabel() {
			if want, asked := labels[l.GetName()]; asked && want == l.GetValue() {
				found++
			}
		}
		return found == len(labels)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && matches(m) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return -1
}

// F-OBS-01, F-CYC-02: of two State Managers, the sweeper shows how many drones and orders there are
// and how long the oldest has waited, and the other does once it sweeps. Both show the counts of
// deliveries before the first.
func TestManager_ShowsTheWholeFleetWhileItIsTheSweeper(t *testing.T) {
	s := newSystem(t)
	var replicas []*connect.Clients
	var stops []func()
	for range 2 {
		c := emutest.Connect(t, s.hosts)
		stops = append(stops, s.runManager(c, manager.Config{PlanUnregistered: true, CensusInterval: 200 * time.Millisecond}))
		replicas = append(replicas, c)
		await(t, "a sweep", func() bool { return replicas[0].Meter.Sweeps.Value() > 0 })
	}
	for i := range 8 {
		s.report(domain.DroneID(fmt.Sprint("D", i)), time.Now(), domain.DroneIdle, "", home)
	}
	old := orderRequest("O-old")
	old.CreatedAt, old.Deadline = time.Now().Add(-10*time.Minute), time.Now().Add(time.Hour)
	for _, req := range []domain.OrderRequest{old, orderRequest("O-new")} {
		data, attrs, err := wire.EncodeOrder(req, wire.Protobuf)
		s.send(pubsubio.TopicOrders, data, attrs, err)
	}
	shows := func(c *connect.Clients) {
		t.Helper()
		emutest.Eventually(t, "the sweeper to show the fleet", func() error {
			got := []float64{
				metric(t, c, "dronefleet_drones", map[string]string{"status": "IDLE"}),
				metric(t, c, "dronefleet_orders", map[string]string{"status": "PENDING"}),
				metric(t, c, "dronefleet_orders_held", nil), metric(t, c, "dronefleet_drones_unregistered", nil),
				metric(t, c, "dronefleet_orders_overdue", map[string]string{"priority": "CRITICAL"}),
			}
			if got[0] != 8 || got[1] != 2 || got[2] != 0 || got[3] != 8 || got[4] != 0 {
				return fmt.Errorf("idle drones, pending and held orders, unregistered drones, overdue orders: %v, want 8, 2, 0, 8, 0", got)
			}
			return nil
		})
		if age := metric(t, c, "dronefleet_oldest_waiting_order_seconds", map[string]string{"priority": "CRITICAL"}); age < 600 || age > 900 {
			t.Errorf("the oldest CRITICAL order has waited %.0f s, want 600 and a little", age)
		}
		if age := metric(t, c, "dronefleet_oldest_waiting_order_seconds", map[string]string{"priority": "HIGH"}); age != 0 {
			t.Errorf("no HIGH order waits, and the oldest has waited %.0f s", age)
		}
		if n := metric(t, c, "dronefleet_orders", map[string]string{"status": "DELIVERED"}); n != -1 {
			t.Errorf("delivered orders are counted in the store: %.0f", n)
		}
	}
	shows(replicas[0])
	for i, c := range replicas {
		if n := metric(t, c, "dronefleet_deliveries_total", map[string]string{"priority": "CRITICAL", "outcome": "late"}); n != 0 {
			t.Errorf("replica %d: %.0f late deliveries before the first", i, n)
		}
	}
	if n := metric(t, replicas[1], "dronefleet_drones", map[string]string{"status": "IDLE"}); n != -1 && replicas[1].Meter.Sweeps.Value() == 0 {
		t.Errorf("a manager that is not the sweeper has counted %.0f drones", n)
	}
	stops[0]()
	shows(replicas[1])
}
