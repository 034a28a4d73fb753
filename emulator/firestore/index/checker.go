package index

import (
	"log/slog"

	"github.com/dronefleet/dronefleet/emulator/firestore/query"
	"github.com/dronefleet/dronefleet/emulator/firestore/value"
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
