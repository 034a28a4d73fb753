package httpapi

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/internal/meter"
)

// When the work is said to lag.
const (
	// backlogWarning is older than a message gets while all is well: positions
	// wait a second, a failed commit is tried again for a few.
	backlogWarning = 30 * time.Second
	// lockWarning is several times the interval at which the sweeper's lock is
	// asked for (5 s).
	lockWarning = 30 * time.Second
	// cycleWarning is several cycles (10 s), each with its search.
	cycleWarning = time.Minute
)

// checkWork says how the process's work goes, as far as it has any: a State
// Manager holds messages and sweeps, an optimizer runs cycles. It never fails.
//
// Cost: no RPC.
func (r *readiness) checkWork(now time.Time) map[string]Check {
	checks := map[string]Check{}
	if backlogs := r.meter.Backlogs(); len(backlogs) > 0 {
		checks["backlog"] = checkBacklog(backlogs)
	}
	for name, l := range r.meter.Locks() {
		checks["lock-"+name] = r.checkLock(name, l, now)
	}
	if _, plans := checks["lock-"+meter.LockCycle]; plans {
		checks["cycle"] = r.checkCycles(now)
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
			c.Detail = fmt.Sprintf("the oldest of %d messages of %s held is %s old; Firestore is slow or out of reach, or more State Managers are needed",
				b.Messages(), kind, age.Truncate(time.Second))
		}
	}
	return c
}

// checkLock tells of a lock. Only the sweeper's is asked for in short intervals
// for as long as the process lives.
func (r *readiness) checkLock(name string, l *meter.Lock, now time.Time) Check {
	held, ago := l.Held(), now.Sub(r.since(l.LastTried()))
	inMs := ago.Milliseconds()
	c := Check{Status: CheckOK, Held: &held, TriedAgoMs: &inMs}
	if name == meter.LockSweeper && !held && ago > lockWarning {
		c.Status = CheckWarning
		c.Detail = fmt.Sprintf("the lock was last asked for with an answer %s ago; see the log for what keeps sweeps from it", ago.Truncate(time.Second))
	}
	return c
}

func (r *readiness) checkCycles(now time.Time) Check {
	ago := now.Sub(r.since(r.meter.Cycles.LastEnded()))
	inMs := ago.Milliseconds()
	c := Check{Status: CheckOK, EndedAgoMs: &inMs}
	if ago > cycleWarning {
		c.Status = CheckWarning
		c.Detail = fmt.Sprintf("no cycle has ended well for %s; see the log for what fails", ago.Truncate(time.Second))
	}
	return c
}

// since is t, or when the process began if that never was.
func (r *readiness) since(t time.Time) time.Time {
	if t.IsZero() {
		return r.began
	}
	return t
}
