package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/cli"
)

// learnedCommand is about what the optimizers learned.
type learnedCommand struct {
	Show  learnedShow  `cmd:"" default:"withargs" help:"Show what was learned, and the estimates that plans use."`
	Reset learnedReset `cmd:"" help:"Forget everything learned, and learn only from missions that end and orders that come from now on."`
}

type learnedShow struct {
	cli.Connection
	stopFlags
	confidenceFlag
	JSON bool `name:"json" help:"Print JSON."`
}

type learnedReset struct{ cli.Connection }

// Run prints what was learned.
func (c *learnedShow) Run(ctx context.Context) error {
	clients, clock, err := c.Open(ctx)
	if err != nil {
		return err
	}
	defer clients.Close()
	learned, malformed, err := firestoretx.New(clients.Firestore, firestoretx.Config{Now: clock.Now}).Learned(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(malformed...); err != nil {
		return fmt.Errorf("%w\nCorrect the document, or forget all with: optimizer learned reset", err)
	}
	if c.JSON {
		encoder := json.NewEncoder(cli.Stdout)
		encoder.SetIndent("", " ")
		return encoder.Encode(learned)
	}
	return writeLearned(cli.Stdout, learned, planner.Assumed(c.params()), c.Confidence)
}

// Run forgets what was learned.
func (c *learnedReset) Run(ctx context.Context) error {
	clients, clock, err := c.Open(ctx)
	if err != nil {
		return err
	}
	defer clients.Close()
	now := clock.Now()
	if err := firestoretx.New(clients.Firestore, firestoretx.Config{Now: clock.Now}).ForgetLearned(ctx, now); err != nil {
		return err
	}
	tell("forgot what was learned; missions that end and orders that come after %s count", now.UTC().Format(time.RFC3339))
	return nil
}

// mostListed bounds the drones and places that are listed.
const mostListed = 20

func writeLearned(out io.Writer, l domain.Learned, assumed learning.Assumed, confidence float64) error {
	e := learning.Estimate(l, assumed, confidence)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	writeEstimates(w, l, e, assumed, confidence)
	writeSpeeds(w, l, e)
	writeDemand(w, l.Demand)
	return w.Flush()
}

func writeEstimates(w io.Writer, l domain.Learned, e learning.Estimates, assumed learning.Assumed, confidence float64) {
	t, d := l.Travel, l.Demand
	fmt.Fprintf(w, "missions counted\t%d, up to %s\n", t.Missions, instant(t.Until))
	fmt.Fprintf(w, "legs\t%d, and %d left out as implausible\n", t.Legs, t.Refused)
	fmt.Fprintf(w, "speed\t%.1f km/h (assumed: %.1f)\n", cmp.Or(e.SpeedKmh, assumed.SpeedKmh), assumed.SpeedKmh)
	fmt.Fprintf(w, "stay at a pickup\t%s (assumed: %s)\n", learnedOr(e, e.Pickup, assumed.Pickup), assumed.Pickup)
	fmt.Fprintf(w, "stay at a delivery\t%s (assumed: %s)\n", learnedOr(e, e.Deliver, assumed.Deliver), assumed.Deliver)
	fmt.Fprintf(w, "margin before deadlines\t%.0f %% of the time left, so that %.0f %% of deliveries are in time\n",
		100-100/(1+e.Margin), 100*confidence)
	fmt.Fprintf(w, "orders counted\t%d, up to %s\n", d.Seen, instant(d.Until))
}

// writeSpeeds lists the drones, the slowest first.
func writeSpeeds(w io.Writer, l domain.Learned, e learning.Estimates) {
	fmt.Fprintf(w, "\ndrone\tlegs\tkm/h\n")
	drones := slices.SortedFunc(maps.Keys(l.Drones), func(a, b domain.DroneID) int {
		return cmp.Or(cmp.Compare(e.SpeedOf(a), e.SpeedOf(b)), cmp.Compare(a, b))
	})
	for _, id := range drones[:min(len(drones), mostListed)] {
		fmt.Fprintf(w, "%s\t%.0f\t%.1f\n", id, l.Drones[id].Flight.Weight, e.SpeedOf(id))
	}
	more(w, len(drones)-mostListed)
}

func writeDemand(w io.Writer, d domain.Demand) {
	fmt.Fprintf(w, "\norders an hour, by hour (UTC)")
	columns(w, func(i int) string { return domain.Priorities[i].String() })
	fmt.Fprintf(w, "\thours observed\n")
	for hour, of := range d.Hours {
		if of.Hours <= 0 {
			continue
		}
		fmt.Fprintf(w, "%02d", hour)
		columns(w, func(i int) string { return fmt.Sprintf("%.1f", of.Orders[i]/of.Hours) })
		fmt.Fprintf(w, "\t%.1f\n", of.Hours)
	}
	fmt.Fprintf(w, "\norders by delivery point")
	columns(w, func(i int) string { return domain.Priorities[i].String() })
	for _, p := range d.Points[:min(len(d.Points), mostListed)] {
		fmt.Fprintf(w, "\n%.4f, %.4f", p.Position.Lat, p.Position.Lon)
		columns(w, func(i int) string { return fmt.Sprintf("%.1f", p.Orders[i]) })
	}
	fmt.Fprintln(w)
	more(w, len(d.Points)-mostListed)
}

// columns writes a column for each priority, the most urgent first.
func columns(w io.Writer, text func(priority int) string) {
	for i := range slices.Backward(domain.Priorities[:]) {
		fmt.Fprintf(w, "\t%s", text(i))
	}
}

func more(out io.Writer, n int) {
	if n > 0 {
		fmt.Fprintf(out, "and %d more\n", n)
	}
}

func learnedOr(e learning.Estimates, stay, assumed time.Duration) time.Duration {
	if e.SpeedKmh == 0 {
		return assumed
	}
	return stay
}

func instant(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}
