// Package search is the solver's local search: ruin and recreate on
// pickup-delivery pairs under simulated annealing, for any pdp.Instance with
// time windows, payloads, distance limits, alternative pickups and optional
// requests.
//
// The search is SISR, slack induction by string removals (Christiaens and Vanden
// Berghe 2020), with more ways to ruin, regret insertion, 2-opt* and a bank of
// unserved requests. A Chain is one such search; Together runs several.
//
// It must not import a clock, a store or the solver's plain values, nor share a
// random stream between chains. An Instance is trusted: its makers validate it.
// No step of a chain allocates.
package search
