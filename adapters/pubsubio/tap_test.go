package pubsubio

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-LIVE-02: while reports wait, batches are received side by side: one that takes long does not hold up the next.
func TestTap_ReceivesBatchesSideBySide(t *testing.T) {
	if os.Getenv("PUBSUB_EMULATOR_HOST") != "" {
		t.Skip("Google's emulator returns a part of what waits, so that no batch is full")
	}
	clients := emutest.Clients(t)
	if err := Ensure(t.Context(), clients.PubSub); err != nil {
		t.Fatal(err)
	}
	p := NewPublisher(clients.PubSub)
	defer p.Stop()
	const reports = 5 * tapBatch
	publish := func() {
		var pending []Published
		for i := range reports {
			id := domain.DroneID(fmt.Sprint("DRONE-", i))
			data, attrs, err := wire.EncodeTelemetry(domain.Telemetry{DroneID: id, Timestamp: time.Unix(1, 0), Battery: 80, Status: domain.DroneIdle}, wire.Protobuf)
			if err != nil {
				t.Error(err)
			}
			pending = append(pending, p.Publish(t.Context(), TopicTelemetry, data, attrs, ""))
		}
		for _, one := range pending {
			if _, err := one.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	batches, release, ended := make(chan int), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- Tap(ctx, clients.PubSub, meter.New(), "side-by-side", publish, func(list []domain.Telemetry) {
			select {
			case batches <- len(list):
				<-release
			case <-ctx.Done(): // it was delivered twice
			}
		})
	}()
	all := 0
	for side := 0; side < 2; { // two batches that nobody has let go of
		n := <-batches
		if all += n; all == n { // the first one shows that more wait
			release <- struct{}{}
			continue
		}
		side++
	}
	close(release)
	for all < reports {
		all += <-batches
	}
	stop()
	if err := <-ended; err != context.Canceled {
		t.Errorf("ended with %v", err)
	}
}
