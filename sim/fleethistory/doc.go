// Package fleethistory reads what a fleet leaves behind in its store and its dead-letter
// topics, in the form that the invariant checker takes. Use it when nothing is in flight
// any more. It must not import policy; an error means that there is nothing to check.
package fleethistory
