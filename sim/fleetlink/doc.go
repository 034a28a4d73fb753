// Package fleetlink joins the simulated drones and hospitals of fleetsim to the product's
// topics, for the runs with real servers (devrun and faultsim). It must not import policy
// or app/manager: it only carries messages, and confirms to the checker what a server took.
package fleetlink
