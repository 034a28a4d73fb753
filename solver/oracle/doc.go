// Package oracle solves tiny dispatch problems by trying everything, so that
// tests can compare the solver with the truth.
//
// It imports only the plain values of solver/model and shares no formula with
// the solver. It refuses problems above MaxOrders and MaxDrones and trusts its
// input to be valid. Nothing in production may import it.
package oracle
