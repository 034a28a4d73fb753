package devrun

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/internal/simclock"
)

// GameDay makes a run go wrong on purpose, so that people can practise on it.
// The zero value leaves the run alone. Durations are simulated time.
type GameDay struct {
	// WithoutOptimizer leaves planning to optimizers that join from other
	// processes, where they can be killed.
	WithoutOptimizer bool
	// OutageAt is when Firestore stops answering anybody, for OutageFor; 0 is
	// never.
	OutageAt, OutageFor time.Duration
	// ClockSkew is how far the clock of the State Manager and the optimizer in
	// this process is ahead of everybody else's; negative is behind.
	ClockSkew time.Duration
}

// maxClockSkew is more than any machine whose time is kept at all is off by.
const maxClockSkew = time.Hour

// Check has every setting of dev refused that cannot be used, by its name, with
// what is wrong with it, for a run of that duration and speed.
func (g GameDay) Check(duration time.Duration, speed float64, refuse func(setting, format string, args ...any)) {
	if g.OutageAt < 0 {
		refuse("outage-at", "is %s; give a positive time, or 0 for no outage", g.OutageAt)
	}
	if duration > 0 && float64(g.OutageAt) >= float64(duration)*speed {
		refuse("outage-at", "is %s, when a run of %s at speed %g is over; give less, or a longer --duration", g.OutageAt, duration, speed)
	}
	if g.OutageAt > 0 && g.OutageFor <= 0 {
		refuse("outage-for", "is %s; give how long the outage of --outage-at lasts", g.OutageFor)
	}
	if g.OutageAt == 0 && g.OutageFor != 0 {
		refuse("outage-for", "is %s, but nothing says when; give --outage-at", g.OutageFor)
	}
	if g.ClockSkew.Abs() > maxClockSkew {
		refuse("clock-skew", "is %s; give at most %s either way", g.ClockSkew, maxClockSkew)
	}
}

// productClock is what the State Manager and the optimizer take for the time.
func (f *fleet) productClock() (*simclock.Clock, error) {
	if f.cfg.GameDay.ClockSkew == 0 {
		return f.clock, nil
	}
	rate := f.clock.Shared()
	rate.Ahead += f.cfg.GameDay.ClockSkew
	return simclock.New(rate)
}

// outage stops Firestore for a while, if the game day says so, and tells what
// became of the messages that waited.
func (f *fleet) outage(ctx context.Context) {
	g := f.cfg.GameDay
	if g.OutageAt == 0 || !f.wait(ctx, g.OutageAt) {
		return
	}
	usual := f.backlog()
	f.announceGameDay("Firestore answers nobody for %s", g.OutageFor)
	rule := f.faults.Add(fault.Rule{Do: fault.Fail(codes.Unavailable)})
	ended := f.wait(ctx, g.OutageFor)
	rule.Remove() // also when the run is over: the report reads
	if !ended {
		return
	}
	restored := f.clock.Now()
	f.announceGameDay("Firestore answers again; %d messages wait, %d calls failed", f.backlog(), rule.Fired())
	// A position may wait for a second by design, so some messages always do.
	usual = max(2*usual, int(2*f.cfg.Hz*float64(f.cfg.Drones)))
	ticker := f.clock.Clock.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for f.backlog() > usual {
		select {
		case <-ctx.Done():
			return
		case <-ticker.Chan():
		}
	}
	f.announceGameDay("all of them are settled, %s after Firestore came back", f.clock.Since(restored).Round(100*time.Millisecond))
}

// wait returns after a simulated duration; false says that ctx ended first.
func (f *fleet) wait(ctx context.Context, d time.Duration) bool {
	timer := f.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.Chan():
		return true
	}
}

// announceGameDay prints what the game day does, with the time since the start.
func (f *fleet) announceGameDay(format string, args ...any) {
	fmt.Fprintf(f.cfg.Out, "%s%6s  game day: %s\n", clearing(f.cfg.Terminal), f.clock.Since(f.simBegan).Truncate(time.Second), fmt.Sprintf(format, args...))
}
