// Package scenario generates seeded dispatch problems for benchmarks: real
// hospital sites (sites.go names the sources) or synthetic towns, with varied
// stock, batteries, drone types, order ages and bursts.
//
// The same parameters give the same problem on every machine. It imports the
// solver's plain values only.
package scenario
