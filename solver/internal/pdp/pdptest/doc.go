// Package pdptest makes random pickup-and-delivery instances and replays routes
// from first principles, for the tests of the packages around pdp. It shares no
// formula with pdp. Nothing but tests may import it.
package pdptest
