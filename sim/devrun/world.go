package devrun

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

func subdirectory(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// status keeps the user informed until ctx ends.
func (run *devRun) status(ctx context.Context) {
	status{
		console: run.console, meter: run.product.Meter, store: run.manager.Store,
		now: run.clock.Now, began: run.simBegan, speed: run.cfg.Speed, pace: run.pace,
	}.run(ctx)
}

func (run *devRun) close() error {
	var errs []error
	if run.link != nil {
		errs = append(errs, run.link.close())
	}
	if run.product != nil {
		errs = append(errs, run.product.Close())
	}
	if run.outside != nil {
		errs = append(errs, run.outside.clients.Close())
	}
	return errors.Join(append(errs, run.servers.close())...)
}

// resumed is what an earlier run in the data directory left; zero if there was none.
type resumed struct {
	drones   int // that go on in this run
	stored   int // drones in the store
	missions int // under way
	orders   map[domain.OrderStatus]int64
}

// print says what a run with a data directory starts with.
func (r resumed) print(dir string, drones int) string {
	if r.stored == 0 {
		return fmt.Sprintf("Keeps the fleet in %s; start again with the same --data-dir to go on.", dir)
	}
	created := int64(0)
	for _, n := range r.orders {
		created += n
	}
	text := fmt.Sprintf("Resumes the fleet in %s: %d drones, %d missions under way, %d orders (%d pending, %d assigned, %d aboard, %d delivered).",
		dir, r.stored, r.missions, created, r.orders[domain.OrderPending], r.orders[domain.OrderAssigned], r.orders[domain.OrderInDelivery], r.orders[domain.OrderDelivered])
	if grounded := r.stored - r.drones; grounded > 0 {
		text += fmt.Sprintf(" %d of the drones stay silent, because --drones is %d.", grounded, drones)
	}
	return text
}

// resume continues an earlier run in the data directory: drones stand where they
// last reported, with the charge that they had, and time does not go back. It
// returns the commands that put drones back on their missions, from the next stop
// on: a real drone would not have forgotten its mission. And it returns the open orders,
// whose parcels drones carry or will.
func (run *devRun) resume(ctx context.Context, store *firestoretx.Store, world *fleetsim.World) (before past, _ error) {
	if run.cfg.DataDir == "" {
		return before, nil
	}
	known, err := store.Drones(ctx, "", firestoretx.Page{})
	if err != nil {
		return before, err
	}
	for _, d := range known {
		run.clock.NotBefore(d.LastUpdate)
		run.clock.NotBefore(d.SeenAt)
	}
	byID := byID(known)
	run.resumed.drones = placeDrones(world, byID)
	active, err := store.Missions(ctx, domain.MissionActive, firestoretx.Page{})
	if err != nil {
		return before, err
	}
	for _, open := range []domain.OrderStatus{domain.OrderPending, domain.OrderAssigned, domain.OrderInDelivery} {
		orders, err := store.Orders(ctx, open, firestoretx.Page{})
		if err != nil {
			return before, err
		}
		before.orders = append(before.orders, orders...)
	}
	if run.resumed.orders, err = store.OrderCounts(ctx); err != nil {
		return before, err
	}
	run.resumed.stored, run.resumed.missions = len(known), len(active)
	before.missions = commandsAgain(active, byID, run.clock.Now())
	return before, nil
}
