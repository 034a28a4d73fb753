// Package clairvoyant serves a day whose orders are all known in advance. It tells how
// much better a planner could be that knew the future.
//
// It is optimistic where a real fleet is slower: decisions take no time, a drone may wait
// at a warehouse before an order arrives, charges for any time at its depot, flies as soon
// as its charge suffices, and never fails. It still respects what no planner can evade: no
// parcel is picked up before its order was created, drones fly one trip after the other,
// with the charge, payload and flight time that they have. A drone lands at its own depot.
//
// The result is what a large neighbourhood search finds in a given number of steps. It is not
// a proven bound: a longer search may find more.
//
// The package must never import the planner that it is compared with, and production code must never
// import it. The only error is that of a context that ends.
package clairvoyant
