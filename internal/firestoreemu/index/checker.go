package index

import (
	"fmt"
	"log/slog"

	"github.com/dronefleet/dronefleet/internal/firestoreemu/query"
	"github.com/dronefleet/dronefleet/internal/firestoreemu/value"
)

// Mode says what a Checker does about a query without an index.
type Mode int

const (
	// Strict fails the query. It is the default.
	Strict Mode = iota
	// Warn logs what Strict would say and lets the query pass.
	Warn
	// Off checks nothing.
	Off
)

// ParseMode reads "strict", "warn" or "off".
func ParseMode(s string) (Mode, error) {
	switch s {
	case "strict":
		return Strict, nil
	case "warn":
		return Warn, nil
	case "off":
		return Off, nil
	default:
		return Strict, fmt.Errorf("index mode %q: use strict, warn or off", s)
	}
}

// String is the form ParseMode reads.
func (m Mode) String() string {
	switch m {
	case Strict:
		return "strict"
	case Warn:
		return "warn"
	case Off:
		return "off"
	default:
		return fmt.Sprintf("Mode(%d)", int(m))
	}
}

// Checker applies a Set in a Mode.
type Checker struct {
	set  *Set
	mode Mode
	log  *slog.Logger
}

// NewChecker checks against set, which may be nil when mode is Off; log
// receives Warn's warnings.
func NewChecker(set *Set, mode Mode, log *slog.Logger) *Checker {
	return &Checker{set: set, mode: mode, log: log}
}

// Check is Set.Check, tempered by the mode.
func (c *Checker) Check(plan *query.Plan, aggregated []value.FieldPath) error {
	if c.mode == Off {
		return nil
	}
	err := c.set.Check(plan, aggregated)
	if err != nil && c.mode == Warn {
		c.log.Warn("firestore query without an index", slog.Any("err", err))
		return nil
	}
	return err
}
