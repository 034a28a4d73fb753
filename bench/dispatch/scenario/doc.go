// Package scenario generates seeded dispatch problems for benchmarks: real
// hospital sites (sites.go names the sources) or synthetic towns, with varied
// stock, batteries, drone types, order ages and bursts.
//
// The same parameters give the same problem on every machine. It must import the
// solver's plain values only, and does not fail: every parameter gives a problem.
package scenario
