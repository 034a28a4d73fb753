// Package pubsubio connects the fleet to Pub/Sub: it receives telemetry, orders
// and decisions, has them applied by a store, and settles each message; it
// publishes mission commands and dead letters.
//
// Every message takes the same way: decode, transaction(policy), settle. Settle
// is the only place that acks or nacks, and it acks only what has its effect
// committed or its refusal recorded. Poison goes to the topic's dead-letter
// topic, with its reason, before it is acked. Transient failures are retried
// while the message's lease lasts and then nacked, so that an outage of the
// store loses nothing.
//
// The package must not import cmd, nor decide anything that policy should.
package pubsubio
