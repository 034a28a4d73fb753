// Package pubsubio connects the fleet to Pub/Sub: it receives telemetry, orders
// and decisions, has them applied by a store, and settles each message; it
// publishes mission commands and dead letters.
//
// Every message takes one way: decode, transaction(policy), settle. Settle is the
// only place that acks or nacks. It acks a message once its effect is committed or
// its refusal recorded. Poison is published to the topic's dead-letter topic, with
// the reason, and then acked. Transient failures are retried while the message's
// lease lasts and then nacked, so that an outage of the store loses nothing.
//
// The package must not import cmd, and must not decide anything that belongs in
// policy.
package pubsubio
