// Package leasetable remembers the leases that a backend was granted, by lock id.
//
// It must not import a backend.
package leasetable
