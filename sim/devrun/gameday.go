package devrun

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/internal/simclock"
)

// GameDay makes a run fail on purpose, so that people can practise on it. The zero
// value changes nothing.
type GameDay struct {
	// WithoutOptimizer leaves planning to optimizers that join from other
	// processes, where they can be killed.
	WithoutOptimizer bool
	// OutageAt is when, after the start, Firestore stops answering, for OutageFor;
	// 0 is never. Both are machine time, as Config.Duration is.
	OutageAt, OutageFor time.Duration
	// ClockSkew is how far the clock of the State Manager and the optimizer in
	// this process is ahead of all others, in simulated time; negative is behind.
	ClockSkew time.Duration
}

// maxClockSkew is more than the error of any machine that synchronises its clock.
const maxClockSkew = time.Hour

// Check calls refuse for every setting of dev that does not fit a run of that duration,
// with its name and what is wrong with it.
func (g GameDay) Check(duration time.Duration, refuse func(setting, format string, args ...any)) {
	if g.OutageAt < 0 {
		refuse("outage-at", "is %s; give a positive time, or 0 for no outage", g.OutageAt)
	}
	if duration > 0 && g.OutageAt >= duration {
		refuse("outage-at", "is %s, but the run ends after %s; give less, or a longer --duration", g.OutageAt, duration)
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

// productClock is the clock of the State Manager and the optimizer.
func (run *devRun) productClock() (*simclock.Clock, error) {
	if run.cfg.GameDay.ClockSkew == 0 {
		return run.clock, nil
	}
	rate := run.clock.Shared()
	rate.Ahead += run.cfg.GameDay.ClockSkew
	return simclock.New(rate)
}

// outage stops Firestore for a while, if the game day says so, and prints what
// became of the messages that waited.
func (run *devRun) outage(ctx context.Context) {
	g := run.cfg.GameDay
	if g.OutageAt == 0 || !wait(ctx, g.OutageAt) {
		return
	}
	usual := run.backlog()
	run.announceGameDay("Firestore stops answering for %s%s", g.OutageFor, run.inSimulatedTime(g.OutageFor))
	rule := run.faults.Add(fault.Rule{Do: fault.Fail(codes.Unavailable)})
	ended := wait(ctx, g.OutageFor)
	rule.Remove() // also at the end of the run: the summary reads the store
	if !ended {
		return
	}
	restored := time.Now()
	run.announceGameDay("Firestore answers again; %d messages wait, %d calls failed", run.backlog(), rule.Fired())
	// A position may wait for a second by design, so some messages always wait.
	usual = max(2*usual, int(2*run.cfg.Hz*float64(run.cfg.Drones)))
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for run.backlog() > usual {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
	took := time.Since(restored).Round(100 * time.Millisecond)
	run.announceGameDay("all of them are settled, %s%s after Firestore came back", took, run.inSimulatedTime(took))
}

// wait returns after a duration; false means that ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// inSimulatedTime shows a duration in simulated time; empty at speed 1.
func (run *devRun) inSimulatedTime(d time.Duration) string {
	if run.cfg.Speed == 1 {
		return ""
	}
	return fmt.Sprintf(" (%s simulated)", time.Duration(float64(d)*run.cfg.Speed).Round(100*time.Millisecond))
}

// announceGameDay prints what the game day does, with the simulated time since the
// start, as the status shows it.
func (run *devRun) announceGameDay(format string, args ...any) {
	run.console.print(8, fmt.Sprintf("%6s  game day: %s", run.clock.Since(run.simBegan).Truncate(time.Second), fmt.Sprintf(format, args...)))
}
