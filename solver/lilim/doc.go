// Package lilim reads the pickup-and-delivery instances of Li and Lim (2001),
// solves them with the dispatch solver's engine and checks solutions.
//
// It exists to measure the engine on a public benchmark: fewest vehicles first,
// then least distance, in double precision. Check shares no formula with the
// engine. The package returns an error for malformed instances, and must not be
// imported by anything in production.
package lilim
