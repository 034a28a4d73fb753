// Package observe lets others watch a process: traces and metrics pushed to an
// OpenTelemetry collector, the Prometheus page, and trace ids in the log.
//
// Traces. A trace begins with a solve cycle, a sweep, or a message whose sender
// names none, and goes where its effects go: over Pub/Sub in the message's
// attributes, into every Firestore call. What is sampled is the sender's choice
// if it made one. Otherwise Config.Ratio says how many cycles, orders and
// decisions are; there are a few hundred a minute, and all of them is the
// default. Telemetry is a thousand times as much: the worker draws its share
// (pubsubio.Config.TraceTelemetry) before any span is made.
// A sender that has every message sampled gets its way, up to the queue's bound:
// every publisher is trusted that far.
//
// Tracing is handed to whoever needs it and never made the process's default:
// Google's client libraries would then trace the same calls a second time, on
// the real services only.
//
// Metrics are those of package meter and the Go runtime's, the same on the
// Prometheus page and at the collector.
//
// Nothing here can fail the fleet or hold it up. Spans wait in a bounded queue
// and are dropped when it is full; a collector that is away or silent costs a
// line in the log each minute; Close gives up what it cannot deliver in time.
//
// The package must not import adapters, nor anything that decides.
package observe
