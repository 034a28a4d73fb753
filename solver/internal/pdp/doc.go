// Package pdp is the pickup-and-delivery problem with time windows in flat
// arrays, and the arithmetic of its routes: timetables, feasibility, and the
// cheapest insertion of a request into a route in O(1) per pair of positions.
//
// It knows distances, seconds and numbers only, never orders or drones. It
// imports only the standard library and must not import a clock, a store or
// the solver's plain values. An Instance is trusted: the packages that build
// one (solver, solver/lilim) validate it, and a malformed one panics or gives
// wrong routes.
package pdp
