package gateway_test

import (
	"errors"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/gateway"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-GW-03, F-TEL-03: a report that State Managers are sure to refuse, because its drone's clock is far
// ahead, is not published: without dead letters it would hold back all drones with its ordering key.
// In doubt about its own clock the gateway lets it pass.
func TestGateway_RefusesReportsFromTheFuture(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	publisher := pubsubio.NewPublisher(b.clients.PubSub)
	t.Cleanup(publisher.Stop)
	for name, c := range map[string]struct {
		ahead, off time.Duration
		measured   bool
		refused    bool
	}{
		"true":                     {0, 0, true, false},
		"within the limit":         {5 * time.Second, 0, true, false},
		"beyond it":                {7 * time.Second, 0, true, true},
		"beyond its own error":     {7 * time.Second, -3 * time.Second, true, false},
		"beyond both":              {10 * time.Second, 3 * time.Second, true, true},
		"a year, not measured yet": {365 * 24 * time.Hour, 0, false, false},
		"behind":                   {-time.Hour, 0, true, false},
	} {
		g := gateway.New(publisher, nil, b.clock, gateway.Config{ClockError: func() (time.Duration, bool) { return c.off, c.measured }}, emutest.Log(t))
		data, attrs, err := wire.EncodeTelemetry(domain.Telemetry{DroneID: "D-1", Timestamp: b.clock.Now().Add(c.ahead), Position: domain.Position{Lat: 48, Lon: 2}, Battery: 50, Status: domain.DroneIdle}, wire.JSON)
		if err != nil {
			t.Fatal(err)
		}
		receipt, err := g.Publish(t.Context(), "D-1", dronelink.Report{Sequence: 3, Data: data, ContentType: attrs[wire.AttrContentType]})
		refused, is := errors.AsType[*dronelink.Refusal](err)
		if is != c.refused || is && (refused.Reason != dronelink.FutureTimestamp || refused.Final || refused.Sequence != 3) || !is && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			if err := receipt.Wait(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
