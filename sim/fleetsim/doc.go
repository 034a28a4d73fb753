// Package fleetsim simulates the fleet's outside world: drones that fly and
// report, hospitals that order. It stands where the real ones would stand,
// behind Pub/Sub: it publishes telemetry and orders, and hears of missions only
// through the commands it is given.
//
// Its drones know no more than real ones. They learn their mission from the
// command, may have a wrong clock, may fall silent or break, and must leave the
// State Manager's rules intact while they do so. All choices follow from a seed
// and all time from an injected clock.
//
// It imports domain, the wire format and the invariant checker's message type;
// it must never import policy, a store or the State Manager's handlers: a
// simulation that shares code with what it exercises proves nothing. A publish
// that fails is counted and not retried beyond what the publisher does itself.
package fleetsim
