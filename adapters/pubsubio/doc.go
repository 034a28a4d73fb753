// Package pubsubio connects the fleet to Pub/Sub. It receives telemetry, orders and
// decisions, lets a store apply them, and settles each message. It publishes mission
// commands and dead letters.
//
// Every message takes one path: decode, transaction(policy), settle. Settle alone acks or
// nacks. It acks a message once its effect is committed or its refusal recorded. Poison
// goes to the topic's dead-letter topic, with the reason, then into the collection
// refusals, and is then acked. Transient failures are retried while the message's lease
// lasts and then nacked, so an outage of the store loses nothing.
//
// The package must not import cmd, and must not decide what belongs in policy.
package pubsubio
