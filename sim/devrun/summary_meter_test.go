package devrun

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-OBS-01: the summary and the dashboards name the same price.
func TestSummary_CostsAgreeWithTheMetrics(t *testing.T) {
	clients := emutest.Clients(t)
	ctx := meter.WithOperation(t.Context(), "telemetry")
	for range 3 {
		if _, err := clients.Firestore.Doc("drones/D1").Set(ctx, map[string]any{"status": "IDLE"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := clients.Firestore.Doc("drones/D1").Get(ctx); err != nil {
		t.Fatal(err)
	}
	clients.Meter.Settle(meter.Settlement{Kind: "telemetry", Outcome: meter.Applied})
	clients.Meter.Settle(meter.Settlement{Kind: "telemetry", Outcome: meter.Rejected, Reason: "STALE_TELEMETRY"})
	clients.Meter.Settle(meter.Settlement{Kind: "telemetry", Outcome: meter.Nacked}) // comes again

	var r Summary
	r.addMeter(clients.Meter, 1)
	cost := r.FirestorePerThousand["telemetry"]
	if cost != (meter.Cost{RPCs: 2000, Reads: 500, Writes: 1500}) {
		t.Errorf("reported %+v", cost)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(clients.Meter)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"dronefleet_firestore_reads_per_thousand_messages": cost.Reads, "dronefleet_firestore_writes_per_thousand_messages": cost.Writes}
	for _, f := range families {
		if price, is := want[f.GetName()]; is {
			if got := f.GetMetric()[0].GetGauge().GetValue(); got != price {
				t.Errorf("%s is %v, the summary says %v", f.GetName(), got, price)
			}
			delete(want, f.GetName())
		}
	}
	if len(want) > 0 {
		t.Errorf("not exported: %v", want)
	}
}
