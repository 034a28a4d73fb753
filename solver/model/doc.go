// Package model holds the plain values that the dispatch solver takes and
// returns: a Problem (drones, orders, warehouses, depots at one instant) and a
// Plan (routes, unserved orders with reasons).
//
// It imports only the standard library and computes nothing beyond defaults,
// so that the solver and its independent checker can share it without sharing
// a single formula. It never fails: solver and check judge the values.
package model
