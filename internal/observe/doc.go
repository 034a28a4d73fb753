// Package observe lets others watch a process: traces and metrics pushed to an
// OpenTelemetry collector, the Prometheus page, and trace ids in the log.
//
// Traces. A trace begins with a solve cycle, a sweep, or a message that carries no
// trace. It follows the effects: over Pub/Sub in message attributes and into every
// Firestore call. If the sender made a sampling decision, it holds. Otherwise
// Config.Ratio is the sampled share of cycles, orders and decisions. There are a few
// hundred a minute, so the default is all. Telemetry has a thousand times that volume:
// the worker samples its share (pubsubio.Config.TraceTelemetry) before it creates a
// span. A publisher may have every message sampled, up to the queue's bound; publishers
// are trusted that far.
//
// The tracer provider is passed as a parameter and never made the process's default:
// Google's client libraries would then trace the same calls a second time, on the real
// services only.
//
// Metrics are those of package meter and the Go runtime's, the same on the Prometheus
// page and at the collector.
//
// Nothing here can fail or delay the fleet. Spans wait in a bounded queue and are
// dropped when it is full. A collector that is down or silent costs one log line a
// minute. Close drops what it cannot deliver in time.
//
// The package must not import adapters, nor anything that decides.
package observe
