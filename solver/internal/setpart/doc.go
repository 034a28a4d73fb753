// Package setpart solves small pickup-and-delivery problems by set partitioning:
// of the routes that local search has tried, and of routes close to them, it
// finds the combination that leaves out the least prize and then costs least.
// Every vehicle drives at most one route, every request is in one route or left
// out.
//
// Duals of the requests come from subgradient ascent, columns (routes) are
// generated where their reduced cost allows, and the choice among them is made
// by branch and bound. Sartori and Buriol (2020) combine local search and set
// partitioning over a route pool in this way for large instances; here the
// problems are so small that the answer is mostly optimal.
//
// It must not import the local search, a clock or the solver's plain values. A
// run that is out of budget or time keeps the best it has found.
package setpart
