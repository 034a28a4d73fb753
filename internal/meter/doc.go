// Package meter counts what the binaries do: messages settled by outcome and reason,
// backlogs and their age, latencies, solve cycles, locks, and every Firestore call with
// the documents it read and wrote, by the operation it served. One meter feeds the live
// status, the final report, the readiness report, the Prometheus page and the OTLP
// export, so they cannot disagree. Descriptions lists every metric.
//
// It must not import any other package of this module, and never fails. Calls of an
// unknown operation count as "other".
package meter
