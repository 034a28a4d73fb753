package httpapi

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/internal/meter"
)

// When readiness warns.
const (
	// backlogWarning is more than a message waits in normal operation: positions wait
	// a second, failed commits are retried for a few seconds.
	backlogWarning = 30 * time.Second
	// lockWarning is several intervals of the sweeper (5 s), which tries to acquire its
	// lock in each.
	lockWarning = 30 * time.Second
	// cycleInterval is the optimizer's interval unless it says another.
	cycleInterval = 10 * time.Second
	// rampWarning is how long a warning lasts after writes were held back.
	rampWarning = time.Minute
	// cyclesMissed is how many intervals a cycle may take to end before the process is
	// not ready.
	cyclesMissed = 3
)

// work is what readiness checks of a process beside its connections: messages, sweeps and
// solve cycles.
type work struct {
	meter  *meter.Meter
	began  time.Time
	depots func() error // which depots have no cycles; nil if it watches none
}

// check reports on the process's work: a State Manager's messages, sweeps and the
// depots that it watches, an optimizer's cycles.
//
// Cost: no RPC.
func (w *work) check(now time.Time) map[string]Check {
	checks := map[string]Check{}
	if backlogs := w.meter.Backlogs(); len(backlogs) > 0 {
		checks["backlog"] = checkBacklog(backlogs)
	}
	for name, l := range w.meter.Locks() {
		checks["lock-"+name] = w.checkLock(name, l, now)
	}
	if _, plans := checks["lock-"+meter.LockCycle]; plans {
		checks["cycle"] = w.checkCycles(now)
	}
	if last := w.meter.RampHeldLast.Last(); now.Sub(last) < rampWarning {
		checks["ramp"] = Check{Status: CheckWarning, Detail: "writes are held back because a new database takes few at first; messages wait in Pub/Sub. If it is used to this fleet, set --ramp off"}
	}
	if w.depots != nil {
		checks["depots"] = checkDepots(w.depots())
	}
	return checks
}

func checkBacklog(backlogs map[string]*meter.Backlog) Check {
	c := Check{Status: CheckOK, AgeMs: map[string]int64{}}
	for _, kind := range slices.Sorted(maps.Keys(backlogs)) {
		b := backlogs[kind]
		age := b.Age()
		c.AgeMs[kind] = age.Milliseconds()
		if age > backlogWarning && c.Status == CheckOK {
			c.Status = CheckWarning
			c.Detail = fmt.Sprintf("the oldest of %d %s messages in memory is %s old; Firestore is slow or unreachable, or more State Managers are needed",
				b.Messages(), kind, age.Truncate(time.Second))
		}
	}
	return c
}

// checkLock reports on a lock. Only the sweeper's can be late: it is the only one that
// is acquired at short intervals for as long as the process runs.
func (w *work) checkLock(name string, l *meter.Lock, now time.Time) Check {
	held, ago := l.Held(), now.Sub(w.since(l.LastTried()))
	inMs := ago.Milliseconds()
	c := Check{Status: CheckOK, Held: &held, TriedAgoMs: &inMs}
	if name == meter.LockSweeper && !held && ago > lockWarning {
		c.Status = CheckWarning
		c.Detail = fmt.Sprintf("the last answered attempt to acquire the lock was %s ago; the log says what prevents sweeps", ago.Truncate(time.Second))
	}
	return c
}

func (w *work) checkCycles(now time.Time) Check {
	ago := now.Sub(w.since(w.meter.Cycles.LastEnded()))
	inMs := ago.Milliseconds()
	c := Check{Status: CheckOK, EndedAgoMs: &inMs}
	interval := cmp.Or(w.meter.Cycles.Period(), cycleInterval)
	if ago > cyclesMissed*interval {
		c.Status = CheckFailing
		why := cmp.Or(w.meter.Cycles.Obstacle(), "the log says what fails")
		c.Detail = fmt.Sprintf("no cycle has ended for %s, more than %d intervals of %s: %s", ago.Truncate(time.Second), cyclesMissed, interval, why)
	}
	if late := w.meter.Cycles.Late(); late > interval && c.Status == CheckOK {
		c.Status = CheckWarning
		c.Detail = fmt.Sprintf("a cycle waited %s for its turn to search, more than the interval of %s; run more optimizers, or give this one more processors", late.Truncate(time.Second), interval)
	}
	return c
}

func checkDepots(err error) Check {
	if err != nil {
		return Check{Status: CheckFailing, Detail: err.Error()}
	}
	return Check{Status: CheckOK}
}

// since is t, or when the process began if t is zero.
func (w *work) since(t time.Time) time.Time {
	if t.IsZero() {
		return w.began
	}
	return t
}
