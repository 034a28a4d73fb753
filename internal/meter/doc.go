// Package meter counts what the binaries do: messages settled by outcome and
// reason, what is held and how old it is, latencies, solve cycles, locks, and
// every Firestore round trip with the documents it read and wrote, by the
// operation it served. One meter feeds the live status, the final report, the
// readiness report, the Prometheus page and what is pushed to a collector, so
// they cannot disagree. Descriptions lists every metric.
//
// It imports nothing of the fleet and never fails: what it cannot attribute it
// counts under the operation "other".
package meter
