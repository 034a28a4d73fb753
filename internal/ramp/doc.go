// Package ramp keeps the writes to each collection of a new database to what Firestore advises while it
// splits its data: 500 a second, and half more every five minutes. Whoever writes asks before, and reports
// after. The caller leaves what must wait where it came from.
//
// The package must not import anything of the fleet.
package ramp
