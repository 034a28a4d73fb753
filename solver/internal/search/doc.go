// Package search is the solver's engine: ruin and recreate on pickup-delivery
// pairs over flat arrays, for any instance with time windows, payloads,
// distance caps, alternative pickups and optional requests.
//
// It knows distances, seconds and numbers only, never orders or drones. It must
// not import a clock, a store or the plain values. An Instance is trusted: its
// makers (solver, solver/lilim) validate. No step of the search allocates; only
// Pack, once at the end, does.
package search
