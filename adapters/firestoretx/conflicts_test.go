package firestoretx_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/emutest"
	"github.com/dronefleet/dronefleet/internal/firestoreemu"
	"github.com/dronefleet/dronefleet/internal/firestoreemu/fault"
	"github.com/dronefleet/dronefleet/internal/meter"
)

// F-OBS-01: a guarded commit that another writer made impossible counts, by the
// operation it served.
func TestStore_CountsRefusedGuards(t *testing.T) {
	clients := emutest.Clients(t)
	store := firestoretx.New(clients.Firestore, firestoretx.Config{Conflicted: clients.Meter.CommitRetried})
	ctx := meter.WithOperation(t.Context(), "telemetry")
	began := time.Now().Add(-10 * time.Second)
	one, other := store.NewTelemetryApplier(), store.NewTelemetryApplier()
	for i, applier := range []*firestoretx.TelemetryApplier{one, one, other, other, one} {
		report := idle("D1", began.Add(time.Duration(i)*time.Second))
		report.Status = domain.DroneCharging
		if err := applier.Apply(ctx, []domain.Telemetry{report})[0]; err != nil {
			t.Fatalf("report %d: %v", i, err)
		}
	}
	// Only the last report met a version that its applier did not know.
	if got := clients.Meter.CommitRetries(); len(got) != 1 || got["telemetry"] != 1 {
		t.Errorf("retries %v, want one of telemetry", got)
	}
}

// F-OBS-01: so does a transaction that ran again. Only the embedded server can
// be told to abort one.
func TestStore_CountsTransactionsRunAgain(t *testing.T) {
	faults := fault.New(1)
	server, err := firestoreemu.Start(firestoreemu.Options{Faults: faults})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	hosts := emutest.Hosts(t)
	hosts.FirestoreHost = server.Addr()
	t.Setenv(connect.FirestoreHost, "") // or the library goes there
	clients := emutest.Connect(t, hosts)
	store := firestoretx.New(clients.Firestore, firestoretx.Config{Conflicted: clients.Meter.CommitRetried})
	faults.Add(fault.Rule{RPC: "Commit", Times: 2, Do: fault.Fail(codes.Aborted)})
	ctx := meter.WithOperation(context.Background(), "orders")
	req := domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{
		Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: domain.Position{Lat: 48.86, Lon: 2.36},
	}}
	if err := store.IngestOrder(ctx, req, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := clients.Meter.CommitRetries(); len(got) != 1 || got["orders"] != 2 {
		t.Errorf("retries %v, want two of orders", got)
	}
}
