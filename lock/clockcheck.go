package lock

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Clock policy: the skew between a client's clock and the server's, either way.
// Synchronised clocks (NTP) are a precondition of every client.
const (
	SkewTarget = 100 * time.Millisecond // keep every client within
	SkewWarn   = 200 * time.Millisecond // alert from here
	SkewBlock  = 500 * time.Millisecond // fail the deployment from here
)

// ClockLevel grades a skew.
type ClockLevel string

// The levels.
const (
	ClockOK    ClockLevel = "ok"
	ClockWarn  ClockLevel = "warn"
	ClockBlock ClockLevel = "block"
)

// ClockSkewError is the cause of the Error with which a backend refuses to take or extend a
// lock because the local clock is wrong. Match it with errors.As.
type ClockSkewError struct {
	Offset      time.Duration // server's clock minus local clock
	Uncertainty time.Duration // the true offset is within this of Offset
	Limit       time.Duration // the skew from which the backend refuses
}

// Error says how far the clock is off and what to do.
func (e *ClockSkewError) Error() string {
	direction := "behind"
	if e.Offset < 0 {
		direction = "ahead of"
	}
	off := e.Offset.Abs().Round(time.Millisecond)
	if off > 10*time.Second {
		off = off.Round(time.Second)
	}
	return fmt.Sprintf("the local clock is %s %s the store's, %s or more; synchronise it (NTP)", off, direction, e.Limit)
}

// SafeText implements SafeTexter.
func (e *ClockSkewError) SafeText() string { return e.Error() }

// ClockReport is the outcome of a ClockChecker.
type ClockReport struct {
	Offset      time.Duration // server's clock minus local clock
	Uncertainty time.Duration // the true offset is within this of Offset
	Level       ClockLevel
}

// ClockChecker is a Backend that can compare the local clock with the store's.
type ClockChecker interface {
	// CheckClock measures the skew between the local and the store's clock. A
	// deployment should refuse to start on ClockBlock and alert on ClockWarn.
	CheckClock(ctx context.Context) (ClockReport, error)
}

// clockReads is how often MeasureClock asks: the quickest answer counts.
const clockReads = 5

// MeasureClock compares a clock with that of a store, which read asks for its time. Backends
// answer ClockChecker with it.
func MeasureClock(clock Clock, read func() (time.Time, error)) (ClockReport, error) {
	best := ClockReport{Uncertainty: math.MaxInt64}
	for range clockReads {
		asked := clock.Now()
		at, err := read()
		if err != nil {
			return ClockReport{}, err
		}
		if half := clock.Now().Sub(asked) / 2; half < best.Uncertainty {
			best.Offset, best.Uncertainty = at.Sub(asked.Add(half)), half
		}
	}
	best.Level = ClockLevelOf(best.Offset, best.Uncertainty)
	return best, nil
}

// ClockLevelOf grades a skew that is known up to an uncertainty. It is ClockBlock
// only if the skew is at least SkewBlock even after subtracting the uncertainty.
func ClockLevelOf(offset, uncertainty time.Duration) ClockLevel {
	switch skew := offset.Abs(); {
	case skew-uncertainty >= SkewBlock:
		return ClockBlock
	case skew >= SkewWarn:
		return ClockWarn
	default:
		return ClockOK
	}
}
