package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/firestore"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/apikeys"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/devca"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/linksim"
)

var (
	depot  = domain.Position{Lat: 48.85, Lon: 2.35}
	clinic = domain.Position{Lat: 48.95, Lon: 2.35}
)

// setOut is a drone with an API key and a mission.
type setOut struct {
	id      domain.DroneID
	link    *linksim.Drone
	key     string // its hash
	mission domain.MissionID
	told    chan struct{} // of its mission
	revoked chan time.Time
	ended   chan time.Time // the session, by the key's end
}

// pace is the time between two revocations.
const pace = 20 * time.Millisecond

// patience is how long a drone may take to learn something.
const patience = 30 * time.Second

// revoke gives each drone a mission, and measures how soon it learns that the mission was
// recalled, and after that how soon its session ends because its key was revoked.
func (c *command) revoke(ctx context.Context, ca *devca.CA, gateway *process, store *firestoretx.Store, documents *firestore.Client) error {
	if err := c.prepare(ctx, store, documents); err != nil {
		return err
	}
	flying, land := context.WithCancel(ctx)
	var aloft sync.WaitGroup
	defer aloft.Wait()
	defer land()
	drones := make([]*setOut, c.Drones)
	setting, setCtx := errgroup.WithContext(ctx)
	setting.SetLimit(16)
	for i := range drones {
		d := &setOut{id: droneID(i), told: make(chan struct{}, 1), revoked: make(chan time.Time, 1), ended: make(chan time.Time, 1)}
		drones[i] = d
		setting.Go(func() error {
			token, err := d.register(setCtx, store)
			if err != nil {
				return err
			}
			d.link = linksim.New(linksim.Config{
				Drone: d.id, Address: func() string { return gateway.addr }, Pause: time.Second, Token: token,
				Dial: dial(&tls.Config{RootCAs: ca.Roots(), MinVersion: tls.VersionTLS12}), Command: d.command,
				Ended: func(reason string) {
					if reason == string(dronelink.Revoked) {
						note(d.ended, time.Now())
					}
				},
			})
			aloft.Go(func() { d.link.Run(flying) })
			return d.depart(setCtx, store)
		})
	}
	if err := setting.Wait(); err != nil {
		return err
	}
	for _, measured := range []struct {
		what   string
		revoke func(*setOut) error
		seen   func(*setOut) chan time.Time
	}{
		{"mission", func(d *setOut) error {
			return store.RecallMission(firestoretx.By(ctx, "bench"), d.mission, "to measure")
		}, func(d *setOut) chan time.Time { return d.revoked }},
		{"API key", func(d *setOut) error { _, err := store.RevokeKey(ctx, d.key, "bench", "to measure"); return err }, func(d *setOut) chan time.Time { return d.ended }},
	} {
		var took []time.Duration
		var began []time.Time
		for _, d := range drones {
			began = append(began, time.Now())
			if err := measured.revoke(d); err != nil {
				return err
			}
			time.Sleep(pace)
		}
		for i, d := range drones {
			select {
			case at := <-measured.seen(d):
				took = append(took, at.Sub(began[i]))
			case <-time.After(patience):
				return fmt.Errorf("drone %s did not learn within %s that its %s was revoked", d.id, patience, measured.what)
			}
		}
		slices.Sort(took)
		fmt.Fprintf(cli.Stdout, "%d drones: %s revoked until the drone is told p50 %s p99 %s\n", len(took), measured.what, quantile(took, 0.5), quantile(took, 0.99))
	}
	return nil
}

// prepare makes a depot whose lock has issued a fence.
func (c *command) prepare(ctx context.Context, store *firestoretx.Store, documents *firestore.Client) error {
	if _, err := store.ApplyDepot(ctx, domain.Depot{ID: "DEPOT", Name: "Depot", Position: depot}, by); err != nil {
		return err
	}
	key := domain.CycleLockKey("DEPOT")
	counter, err := firestorelock.Config{}.CounterPath(key)
	if err == nil {
		_, err = documents.Doc(counter).Set(ctx, map[string]any{"fence": "1", "keyDebug": key})
	}
	return err
}

var by = firestoretx.Change{By: "bench", Why: "to measure"}

// register makes the drone known, and returns a key of its own.
func (d *setOut) register(ctx context.Context, store *firestoretx.Store) (token string, err error) {
	own := domain.DroneProperties{PayloadCapacityKg: 5, ConsumptionPerKm: 1, MaxFlightTimeMinutes: 60}
	if _, err := store.ApplyDrone(ctx, domain.DroneRegistration{ID: d.id, HomeDepotID: "DEPOT", Own: own}, by); err != nil {
		return "", err
	}
	token, now := apikeys.NewText(), time.Now()
	d.key = apikeys.Hash(token)
	return token, store.CreateKey(ctx, domain.APIKey{
		Hash: d.key, Role: domain.KeyDrone, Subject: string(d.id), CreatedAt: now, CreatedBy: by.By, Why: by.Why, ExpiresAt: now.Add(time.Hour),
	})
}

// depart reports, and waits until the drone has a mission and knows it.
func (d *setOut) depart(ctx context.Context, store *firestoretx.Store) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reported, err := d.link.ReportState(domain.Telemetry{DroneID: d.id, Timestamp: time.Now(), Position: depot, Battery: 90, Status: domain.DroneIdle})
	if err == nil {
		_, err = reported.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("drone %s reports: %w", d.id, err)
	}
	for known := (domain.Drone{}); known.Status != domain.DroneIdle; time.Sleep(10 * time.Millisecond) {
		if known, err = store.Drone(ctx, d.id); err != nil {
			return err
		}
	}
	order := domain.OrderID("ORDER-" + d.id)
	content := domain.OrderContent{Priority: domain.PriorityHigh, ProductType: "BLOOD", Pickup: &depot, Delivery: clinic}
	if err := store.IngestOrder(ctx, domain.OrderRequest{ID: order, OrderContent: content}, time.Now()); err != nil {
		return err
	}
	entry, err := store.AssignMission(ctx, domain.Decision{
		ID: domain.DecisionID("DECISION-" + d.id), Fence: "1", DroneID: d.id, OrderIDs: []domain.OrderID{order}, SnapshotTime: time.Now().Add(time.Minute),
		EstimatedBatteryConsumption: 20, EstimatedDurationMinutes: 20,
		Route: []domain.Waypoint{{Type: domain.WaypointWarehousePickup, OrderID: order, Position: depot}, {Type: domain.WaypointHospitalDelivery, OrderID: order, Position: clinic}},
	}, policy.Delivery{MessageID: string(d.id)})
	if err != nil {
		return err
	}
	if entry.Outcome != domain.OutcomeApplied {
		return fmt.Errorf("drone %s gets no mission: %s %s", d.id, entry.Reason, entry.Detail)
	}
	d.mission = entry.MissionID
	select {
	case <-d.told:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("drone %s was not told its mission: %w", d.id, ctx.Err())
	}
}

// command takes a command.
func (d *setOut) command(c domain.Command) {
	if c.Revoke {
		note(d.revoked, time.Now())
		return
	}
	note(d.told, struct{}{})
}

// note keeps the first of what happens.
func note[T any](in chan T, v T) {
	select {
	case in <- v:
	default:
	}
}
