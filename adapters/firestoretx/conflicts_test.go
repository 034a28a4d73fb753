package firestoretx_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-OBS-01: a guarded commit that another writer made impossible is counted by its
// operation.
func TestStore_CountsRefusedGuards(t *testing.T) {
	clients := emutest.Clients(t)
	store := firestoretx.New(clients.Firestore, firestoretx.Config{PlanUnregistered: true, Conflicted: clients.Meter.CommitRetried})
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

// F-OBS-01: so is a transaction that was retried. Only the embedded server can be told to
// abort one.
func TestStore_CountsTransactionsRunAgain(t *testing.T) {
	faults := fault.New(1)
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	clients := emutest.Clients(t)
	store := firestoretx.New(clients.Firestore, firestoretx.Config{PlanUnregistered: true, Conflicted: clients.Meter.CommitRetried})
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

// F-DEC-02, F-ORD-02: a change of an order is dated when it is decided, but a snapshot sees
// it only after its commit. A plan from a snapshot between the two goes to the old address
// and is rejected.
func TestStore_PlanFromBeforeAChangeCommittedIsRefused(t *testing.T) {
	faults := fault.New(1)
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	client := emutest.Clients(t).Firestore
	store := firestoretx.New(client, firestoretx.Config{PlanUnregistered: true})
	emutest.IssueFences(t, client, "1", depot.ID)
	if err := store.Setup(t.Context(), []domain.Depot{depot}, nil, []domain.Drone{{ID: "D1", HomeDepotID: depot.ID}}); err != nil {
		t.Fatal(err)
	}
	if err := store.NewTelemetryApplier().Apply(t.Context(), []domain.Telemetry{idle("D1", time.Now())})[0]; err != nil {
		t.Fatal(err)
	}
	req := domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{
		Priority: domain.PriorityHigh, ProductType: "BLOOD", Pickup: &depot.Position, Delivery: domain.Position{Lat: 48.86, Lon: 2.36},
	}}
	if err := store.IngestOrder(t.Context(), req, time.Now()); err != nil {
		t.Fatal(err)
	}

	gate := fault.NewGate()
	defer gate.Open()
	faults.Add(fault.Rule{RPC: "Commit", Times: 1, Do: fault.Pause(gate)})
	moved := req
	moved.Delivery = domain.Position{Lat: 48.90, Lon: 2.30}
	changed := make(chan error, 1)
	go func() { changed <- store.IngestOrder(t.Context(), moved, time.Now()) }()
	if err := gate.Arrived(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	snap, err := store.Snapshot(t.Context(), firestoretx.SnapshotRequest{Depot: depot.ID, Limits: policy.Limits{MaxSilence: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	gate.Open()
	if err := <-changed; err != nil {
		t.Fatal(err)
	}
	o, err := store.Order(t.Context(), "O1")
	if err != nil || len(snap.Orders) != 1 || snap.Orders[0].Delivery != req.Delivery || o.Delivery != moved.Delivery || o.PendingSince.After(snap.ReadTime) {
		t.Fatalf("order %+v, %v; snapshot at %s of %+v", o, err, snap.ReadTime, snap.Orders)
	}
	plan := func(id domain.DecisionID, s domain.Snapshot) domain.LedgerEntry {
		t.Helper()
		entry, err := store.AssignMission(t.Context(), domain.Decision{
			ID: id, Fence: "1", DroneID: "D1", OrderIDs: []domain.OrderID{"O1"}, SnapshotTime: s.ReadTime, PayloadHash: string(id),
			Route: []domain.Waypoint{
				{Type: domain.WaypointWarehousePickup, OrderID: "O1", Position: depot.Position},
				{Type: domain.WaypointHospitalDelivery, OrderID: "O1", Position: s.Orders[0].Delivery},
			},
		}, policy.Delivery{MessageID: string(id), PublishedAt: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		return entry
	}
	if e := plan("DEC-1", snap); e.Reason != string(policy.ReasonOrderChanged) {
		t.Fatalf("the plan to the old address: %s %s, want %s", e.Outcome, e.Reason, policy.ReasonOrderChanged)
	}
	if snap, err = store.Snapshot(t.Context(), firestoretx.SnapshotRequest{Depot: depot.ID, Limits: policy.Limits{MaxSilence: time.Minute}}); err != nil {
		t.Fatal(err)
	}
	if e := plan("DEC-2", snap); e.Outcome != domain.OutcomeApplied {
		t.Errorf("the next plan: %s %s %s", e.Outcome, e.Reason, e.Detail)
	}
}

// F-OPT-02: a snapshot blocks no writer and has one read time: changes that commit between
// its queries are not in it.
func TestStore_SnapshotTakesNoLocks(t *testing.T) {
	faults := fault.New(1)
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	store := firestoretx.New(emutest.Clients(t).Firestore, firestoretx.Config{PlanUnregistered: true})
	if err := store.Setup(t.Context(), []domain.Depot{depot}, nil, []domain.Drone{{ID: "D1", HomeDepotID: depot.ID}}); err != nil {
		t.Fatal(err)
	}
	applier := store.NewTelemetryApplier()
	for _, query := range []string{firestoretx.Drones, firestoretx.Orders, firestoretx.Warehouses} {
		t.Run("before "+query, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			gate := fault.NewGate()
			defer gate.Open()
			faults.Add(fault.Rule{RPC: "RunQuery", NamePrefix: query, Times: 1, Do: fault.Pause(gate)})
			type answer struct {
				snap domain.Snapshot
				err  error
			}
			answered := make(chan answer, 1)
			go func() {
				snap, err := store.Snapshot(ctx, firestoretx.SnapshotRequest{Depot: depot.ID, Limits: policy.Limits{MaxSilence: time.Hour}})
				answered <- answer{snap, err}
			}()
			if err := gate.Arrived(ctx, 1); err != nil {
				t.Fatal(err)
			}
			id := domain.OrderID("DURING-" + query)
			if err := store.IngestOrder(ctx, domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{ProductType: "BLOOD"}}, time.Now()); err != nil {
				t.Fatalf("an order waited for the snapshot: %v", err)
			}
			if err := applier.Apply(ctx, []domain.Telemetry{idle("D1", time.Now())})[0]; err != nil {
				t.Fatalf("a report waited for the snapshot: %v", err)
			}
			gate.Open()
			got := <-answered
			if got.err != nil || slices.ContainsFunc(got.snap.Orders, func(o domain.Order) bool { return o.ID == id }) {
				t.Errorf("%+v, %v", got.snap.Orders, got.err)
			}
		})
	}
}

// F-ACK-01: two deliveries of a message may share a commit. If it fails, neither counts as applied,
// because the ack of either settles the message. Rejected reports stay rejected.
func TestStore_FailedCommitAnswersNoDeliveryByAnother(t *testing.T) {
	for name, knows := range map[string]bool{"knows the drone": true, "knows nothing": false} {
		t.Run(name, func(t *testing.T) {
			faults := fault.New(1)
			emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
			store := firestoretx.New(emutest.Clients(t).Firestore, firestoretx.Config{PlanUnregistered: true})
			applier := store.NewTelemetryApplier()
			began := time.Now()
			old := idle("D1", began.Add(-time.Minute))
			if err := applier.Apply(t.Context(), []domain.Telemetry{old})[0]; err != nil {
				t.Fatal(err)
			}
			if !knows {
				applier = store.NewTelemetryApplier()
			}
			report := idle("D1", began)
			reports := []domain.Telemetry{report, old, report, idle("D1", began.Add(time.Hour))}
			faults.Add(fault.Rule{RPC: "Commit", Times: 1, Do: fault.Fail(codes.DeadlineExceeded)})
			errs := applier.Apply(t.Context(), reports)
			for _, i := range []int{0, 2} {
				if !firestoretx.Retryable(errs[i]) {
					t.Errorf("delivery %d of what was not committed: %v, want a transient error", i, errs[i])
				}
			}
			wantReason(t, errs[1], policy.ReasonStaleTelemetry)
			wantReason(t, errs[3], policy.ReasonFutureTimestamp)

			errs = applier.Apply(t.Context(), reports)
			if errs[0] != nil {
				t.Errorf("the next attempt: %v", errs[0])
			}
			wantReason(t, errs[2], policy.ReasonStaleTelemetry)
		})
	}
}

// F-BAT-01: drones that only move share a commit without reads; one that the server refuses
// does not affect the others.
func TestStore_RefusedDroneDoesNotAffectKnownOnes(t *testing.T) {
	faults := fault.New(1)
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	store := firestoretx.New(emutest.Clients(t).Firestore, firestoretx.Config{PlanUnregistered: true})
	applier := store.NewTelemetryApplier()
	began := time.Now().Add(-time.Minute).Truncate(time.Microsecond)
	drones := []domain.DroneID{"D1", "D2", "D3"}
	say := func(at time.Time) []error {
		reports := make([]domain.Telemetry, len(drones))
		for i, id := range drones {
			reports[i] = idle(id, at)
			reports[i].Status = domain.DroneCharging
		}
		return applier.Apply(t.Context(), reports)
	}
	for i, err := range say(began) {
		if err != nil {
			t.Fatalf("%s: %v", drones[i], err)
		}
	}
	faults.Add(fault.Rule{RPC: "Commit", NamePrefix: "drones/D2", Do: fault.Fail(codes.OutOfRange)})
	at := began.Add(time.Second)
	for i, err := range say(at) {
		if refused := drones[i] == "D2"; (err != nil) != refused || firestoretx.Retryable(err) {
			t.Errorf("%s: %v", drones[i], err)
		}
		d, err := store.Drone(t.Context(), drones[i])
		if err != nil {
			t.Fatal(err)
		}
		if moved := d.LastUpdate.Equal(at); moved == (drones[i] == "D2") {
			t.Errorf("%s was last updated %s", drones[i], d.LastUpdate)
		}
	}
}

// F-DEC-05: a mission whose commit failed is not offered to the outbox.
func TestStore_OffersOnlyWhatIsCommitted(t *testing.T) {
	faults := fault.New(1)
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	f := newFleet(t)
	f.noteOffers()
	f.mustReport(t, idle("D1", f.now))
	f.mustOrder(t, "O1")
	faults.Add(fault.Rule{RPC: "Commit", Times: 1, Do: fault.Fail(codes.OutOfRange)})
	decision := f.decision("DEC-1", "D1", "O1")
	if _, err := f.AssignMission(t.Context(), decision, policy.Delivery{}); err == nil || len(f.offered) != 0 {
		t.Errorf("error %v, offered %+v", err, f.offered)
	}
	if f.assign(t, decision); len(f.offered) != 1 {
		t.Errorf("offered %+v", f.offered)
	}
}

// F-BAT-01, F-TEL-01: a cached drone whose document has changed or is gone is read again at
// once, whichever error the server gives.
func TestStore_RereadsADroneThatDiffersFromTheCache(t *testing.T) {
	for _, code := range []codes.Code{codes.FailedPrecondition, codes.NotFound} {
		t.Run(code.String(), func(t *testing.T) {
			faults := fault.New(1)
			emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
			f := newFleet(t)
			f.mustReport(t, idle("D1", f.now))
			if _, err := f.client.Doc("drones/D1").Delete(t.Context()); err != nil {
				t.Fatal(err)
			}
			faults.Add(fault.Rule{RPC: "Commit", Times: 1, Do: fault.Fail(code)})
			next := idle("D1", f.now.Add(time.Second))
			f.mustReport(t, next)
			if d := f.drone(t, "D1"); d.Status != domain.DroneIdle || !d.LastUpdate.Equal(next.Timestamp) {
				t.Errorf("drone %+v", d)
			}
		})
	}
}

// F-TEL-09: a sweep that could not read everything returns an error.
func TestStore_SweepReportsMissionsItCannotRead(t *testing.T) {
	faults := fault.New(1)
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	f := newFleet(t)
	mission := f.deliverFirst(t)
	if err := f.CancelOrder(firestoretx.By(t.Context(), "ann"), "O2", "obsolete"); err != nil { // D1 is on its way home
		t.Fatal(err)
	}
	faults.Add(fault.Rule{RPC: "BatchGetDocuments", NamePrefix: "missions/" + string(mission), Times: 1, Do: fault.Fail(codes.OutOfRange)})
	if _, err := f.Sweep(t.Context(), nil); err == nil {
		t.Error("the sweep returns no error")
	}
}

// F-ACK-01, F-AMD-04: an applier that cached the drone before an amendment rejects none of
// its reports while the store cannot be read.
func TestStore_RejectsNothingByAnOldCacheWhileTheStoreFails(t *testing.T) {
	faults := fault.New(1)
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	f := newFleet(t)
	id := f.inFlight(t, "O1", "O2")
	f.assign(t, f.amendment("DEC-2", id, 1, "O1"))
	stale := f.names("M-UNKNOWN", 0, -time.Second, 0) // a mission that may hold the drone by now
	faults.Add(fault.Rule{RPC: "BatchGetDocuments", Times: 1, Do: fault.Fail(codes.ResourceExhausted)})
	for i, err := range f.applier.Apply(t.Context(), []domain.Telemetry{stale, f.names(id, 2, 2*time.Second, 0)}) {
		if !firestoretx.Retryable(err) {
			t.Errorf("report %d came to %v", i, err)
		}
	}
}
