package webhooks

import "net/netip"

// Signatures is signatures.
var Signatures = signatures

// CheckAddress is checkAddress.
func CheckAddress(address string, loopback bool, networks ...Network) error {
	return checkAddress(netip.MustParseAddr(address), loopback, networks)
}
