package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

// F-GW-03: a drone whose content type is longer than Pub/Sub takes, or is not text, spoils no report
// of the drones that share its request, or its own.
func TestGateway_OneDroneSpoilsNoReportOfOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	g := b.core()
	publish := func(id domain.DroneID, parameter string) dronelink.Receipt {
		t.Helper()
		data, attrs, err := wire.EncodeTelemetry(domain.Telemetry{DroneID: id, Timestamp: b.clock.Now(), Position: domain.Position{Lat: 48, Lon: 2}, Battery: 50, Status: domain.DroneIdle}, wire.JSON)
		if err != nil {
			t.Fatal(err)
		}
		receipt, err := g.Publish(t.Context(), id, dronelink.Report{Data: data, ContentType: attrs[wire.AttrContentType] + parameter})
		if err != nil {
			t.Fatal(err)
		}
		return receipt
	}
	receipts := map[string]dronelink.Receipt{
		"the one with a long content type": publish("LONG", `; x="`+strings.Repeat("x", 2000)+`"`),
		"the one that sends no text":       publish("BYTES", "; x=\"\xff\""),
	}
	for i := range 100 { // more than there are ordering keys
		id := domain.DroneID(fmt.Sprint("D-", i))
		receipts[string(id)] = publish(id, "")
	}
	for name, r := range receipts {
		if err := r.Wait(t.Context()); err != nil {
			t.Errorf("report of %s: %v", name, err)
		}
	}
}
