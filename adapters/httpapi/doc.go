// Package httpapi shows the fleet to people, dashboards and outside optimizers
// over HTTP: entities, the optimizer's snapshot, health, readiness, metrics. It
// only reads; whoever wants something changed publishes a message or uses the
// operators' commands.
//
// It must not import cmd, nor decide anything that policy should. It holds no
// state but the last readiness report.
//
// Every failure is a problem document of RFC 9457 that names the parameter and
// the fix: 400 for a request that cannot be right, 404 for an entity or a path
// that does not exist, 405 for a method other than GET and HEAD, 503 with
// Retry-After when the store is out of reach, 500 when a document must be
// corrected by a person. It checks no credentials: keep it on the loopback
// address, or behind something that does.
package httpapi
