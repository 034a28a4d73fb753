// Package meter counts what the binaries do: messages settled by outcome and
// reason, latencies, solve cycles, and every Firestore round trip with the
// documents it read and wrote, by the operation it served. One meter feeds the
// live status, the final report and the Prometheus page, so they cannot
// disagree. It imports nothing of the fleet.
package meter
