package gateway_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/gateway"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-GW-07, F-OBS-01: the metrics show who is connected, why sessions ended and what became of
// reports and commands.
func TestGateway_CountsWhatPasses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	counts := meter.New()
	publisher := pubsubio.NewPublisher(b.clients.PubSub)
	t.Cleanup(publisher.Stop)
	g := gateway.New(publisher, firestoretx.New(b.clients.Firestore, firestoretx.Config{}), b.clock, gateway.Config{MaxSessions: 2, Meter: &counts.Link}, emutest.Log(t))
	ready := make(chan struct{})
	go g.Run(t.Context(), b.clients.PubSub, uuid.NewString(), func() { close(ready) })
	<-ready
	first, told := b.open(g, "D-1")
	second, _ := b.open(g, "D-2")
	if _, err := g.Open(t.Context(), dronelink.Identity{Drone: "D-3"}, dronelink.Hello{Drone: "D-3"}, &outlet{}); err == nil {
		t.Error("a full gateway takes another drone")
	}
	report := func(s dronelink.Session, sequence uint32, battery float64) {
		t.Helper()
		data, attrs, err := wire.EncodeTelemetry(domain.Telemetry{DroneID: "D-1", Timestamp: b.clock.Now(), Position: domain.Position{Lat: 48, Lon: 2}, Battery: battery, Status: domain.DroneIdle}, wire.Protobuf)
		if err == nil {
			err = s.Report(t.Context(), dronelink.Report{Sequence: sequence, Data: data, ContentType: attrs[wire.AttrContentType]})
		}
		if err != nil {
			t.Error(err)
		}
	}
	report(first, 1, 90)
	report(first, 2, 900)
	emutest.Eventually(t, "the resume", func() error {
		if !told.has(func(m dronelink.Message) bool { return m.Resume != nil }) {
			return errors.New("not told")
		}
		return nil
	})
	g.Deliver(domain.Command{Mission: domain.Mission{ID: "M-1", DroneID: "D-1"}, ExpiresAt: b.clock.Now().Add(time.Minute)})
	g.Deliver(domain.Command{Mission: domain.Mission{ID: "M-1", DroneID: "D-1"}, Revoke: true})
	second.Close(nil)
	<-second.Ended()
	want := map[string]float64{
		"sessions": 1, "sessions_opened_total": 2, "sessions_ended_total DISCONNECTED": 1, "sessions_ended_total GOODBYE": 0,
		"connections_refused_total FULL": 1, "reports_total acked ": 1, "reports_total failed ": 0, "reports_total refused INVALID": 1,
		"reports_pending": 0, "ack_seconds": 1, "commands_total mission": 1, "commands_total revocation": 1, "states_total OPENED": 2,
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(counts)
	emutest.Eventually(t, "the counts", func() error {
		families, err := registry.Gather()
		if err != nil {
			return err
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				name := f.GetName()[len("dronefleet_"):]
				for _, l := range m.GetLabel() {
					name += " " + l.GetValue()
				}
				got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
		for name, n := range want {
			if got["link_"+name] != n {
				return fmt.Errorf("%s is %v, want %v", name, got["link_"+name], n)
			}
		}
		return nil
	})
}
