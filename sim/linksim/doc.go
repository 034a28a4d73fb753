// Package linksim connects simulated drones to gateways over the drone link: each has a
// connection of its own, connects again when that ends, and sends again what was not acked.
// It must not import app: it knows no more of a gateway than a drone does.
package linksim
