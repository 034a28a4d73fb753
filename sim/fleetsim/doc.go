// Package fleetsim simulates the world outside the product: drones that fly and
// report, hospitals that order. It stands where the real ones would stand,
// behind Pub/Sub: it publishes telemetry and orders, and learns of missions only
// from the commands it is given.
//
// Simulated drones know no more than real ones. They learn their mission from the
// command, may have a wrong clock, may fall silent or break. All choices follow
// from a seed, and all time comes from an injected clock.
//
// The package imports domain, the wire format and the invariant checker's message
// type. It must not import policy, a store or the State Manager's handlers: a
// simulation that shares code with what it exercises proves nothing. A publish
// that fails is counted; only the publisher itself retries.
package fleetsim
