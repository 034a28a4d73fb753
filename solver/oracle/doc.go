// Package oracle solves tiny dispatch problems by exhaustive enumeration, so that
// tests can compare the solver with the optimum.
//
// It imports only the plain values of solver/model and shares no formula with
// the solver. It returns an error for problems above MaxOrders or MaxDrones, and
// trusts its input to be valid otherwise. Nothing in production may import it.
package oracle
