// Package dispatch runs solve cycles: under a fenced lock it takes a consistent
// snapshot, has it solved, checks the plan, publishes one decision per mission
// and records the cycle for auditors. At most one cycle of a depot runs at a
// time, and one that loses its lease publishes nothing more; should it publish
// late all the same, its fence is refused.
//
// It decides nothing about the fleet: decisions become missions only if the
// assignment policy agrees.
package dispatch
