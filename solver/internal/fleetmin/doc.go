// Package fleetmin serves all requests of a pickup-and-delivery problem with the
// fewest identical vehicles, then the least distance: the objective of the Li
// and Lim benchmark (2001). Dispatch has other aims, so nothing that the product
// runs may import this package.
//
// Vehicles are saved by guided ejection search, distance by the local search of
// package search with a penalty on unserved requests. The package must not
// import a clock; it panics only on a malformed instance.
package fleetmin
