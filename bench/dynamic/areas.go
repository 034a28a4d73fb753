package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/plannersim"
	"github.com/dronefleet/dronefleet/solver"
)

// layout is where a fleet's depots are and how the optimizer groups them.
type layout struct {
	depots     int
	apart      float64 // km from one to the next
	areaRadius float64 // km
}

func (l layout) String() string {
	if l.depots == 1 {
		return "1 depot"
	}
	return fmt.Sprintf("%d depots, %g km apart, area radius %g km", l.depots, l.apart, l.areaRadius)
}

// world is the reference one with its depot repeated along its parallel, and with the
// drones spread over the depots.
func (l layout) world(drones int, seed uint64) (*fleetsim.World, error) {
	w, err := fleetsim.NewWorld(fleetsim.WorldConfig{Drones: drones, Seed: seed})
	if err != nil {
		return nil, err
	}
	centre := w.Depots[0]
	metresPerDegree := centre.Position.DistanceMetres(domain.Position{Lat: centre.Position.Lat, Lon: centre.Position.Lon + 1})
	w.Depots = nil
	for i := range l.depots {
		d := centre
		d.ID, d.Name = domain.DepotID(fmt.Sprintf("DEPOT-%d", i+1)), fmt.Sprintf("Depot %d", i+1)
		d.Position.Lon += (float64(i) - float64(l.depots-1)/2) * l.apart * 1000 / metresPerDegree
		w.Depots = append(w.Depots, d)
	}
	for i := range w.Drones {
		home := w.Depots[i%l.depots]
		w.Drones[i].HomeDepotID, w.Drones[i].Position = home.ID, home.Position
	}
	return w, nil
}

// layouts are those to compare, the single depot first.
func (c *command) layouts() []layout {
	list := []layout{{depots: 1}}
	for _, n := range c.Depots {
		for _, km := range c.Apart {
			for _, radius := range c.AreaRadius {
				list = append(list, layout{n, km, radius})
			}
		}
	}
	return list
}

// areas runs every layout on every seed and prints a row for each, then one for all
// seeds.
func (c *command) areas(ctx context.Context) error {
	fmt.Fprintf(cli.Stdout, "%s of %g orders/min, %d drones in all, without servers\nOn time: of the orders that were delivered or are open past their deadline.\n\n", c.Simulated, c.OrdersPerMinute, c.Drones)
	fmt.Fprintf(cli.Stdout, "%-5s %-42s %9s %9s %9s %10s %10s %10s %10s %7s\n", "seed", "fleet", "decisions", "refused", "handed on", "CRITICAL", "HIGH", "STANDARD", "delivered", "km/del.")
	sums := make([]plannersim.Result, len(c.layouts()))
	for _, seed := range c.Seeds {
		for i, l := range c.layouts() {
			r, err := c.shared(ctx, l, seed)
			if err = errors.Join(err, ctx.Err()); err != nil {
				return fmt.Errorf("%s, seed %d: %w", l, seed, err)
			}
			printShared(fmt.Sprint(seed), l, r)
			sum := &sums[i]
			sum.HandedOver += r.HandedOver
			sum.Missions, sum.Refused, sum.Delivered, sum.FlownKm = sum.Missions+r.Missions, sum.Refused+r.Refused, sum.Delivered+r.Delivered, sum.FlownKm+r.FlownKm
			for p, of := range r.Priorities {
				sum.Priorities[p].OnTime += of.OnTime
				sum.Priorities[p].Late += of.Late
			}
		}
	}
	fmt.Fprintln(cli.Stdout)
	for i, l := range c.layouts() {
		printShared("all", l, sums[i])
	}
	return nil
}

// shared runs one layout on simulated drones. Its hospitals and warehouses are those of
// the single depot, so that every layout has the same orders.
func (c *command) shared(ctx context.Context, l layout, seed uint64) (plannersim.Result, error) {
	day := plannersim.Scenario{
		Duration: c.Simulated, Drones: c.Drones, PerMinute: c.OrdersPerMinute, Burst: c.Burst, Seed: seed, AreaRadius: l.areaRadius,
		World: l.world, Amend: c.Amend, Standby: c.Amend && c.Position,
	}
	cfg := planner.Config{
		Options: solver.Options{Iterations: c.Iterations, Seed: seed},
		Params:  solver.Params{PickupService: fleetsim.Dwell, DeliveryService: fleetsim.Dwell},
		Advance: day.Standby,
	}
	return plannersim.Run(ctx, day, func() *planner.Planner { return planner.New(cfg, time.Now) })
}

// printShared prints how a layout served the orders.
func printShared(seed string, l layout, r plannersim.Result) {
	share := func(p domain.Priority) string {
		of := r.Priorities[p]
		return fmt.Sprintf("%.1f %%", 100*float64(of.OnTime)/float64(max(1, of.OnTime+of.Late)))
	}
	decisions := r.Missions + r.Refused
	fmt.Fprintf(cli.Stdout, "%-5s %-42s %9d %7.1f %% %9d %10s %10s %10s %10d %7.1f\n", seed, l, decisions, 100*float64(r.Refused)/float64(max(1, decisions)), r.HandedOver,
		share(domain.PriorityCritical), share(domain.PriorityHigh), share(domain.PriorityStandard), r.Delivered, r.FlownKm/float64(max(1, r.Delivered)))
}
