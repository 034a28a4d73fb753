package webhooks

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Network is a range of addresses to which webhooks may be sent although it is not public.
type Network struct{ addresses netip.Prefix }

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *Network) UnmarshalText(text []byte) error {
	addresses, err := netip.ParsePrefix(string(text))
	if err != nil || addresses != addresses.Masked() || addresses.Addr().Is4In6() {
		return errors.New("give a range such as 10.20.0.0/16 with no bits set after the prefix")
	}
	n.addresses = addresses
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (n Network) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// String is the network in the form that UnmarshalText takes.
func (n Network) String() string { return n.addresses.String() }

// closed are addresses that are not private and not public either, or that hold another address,
// which a translator on the way would use.
var closed = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("::/96"), netip.MustParsePrefix("fec0::/10"),
}

// checkAddress refuses to connect to an address that is not public, unless it is in one of the
// networks. A host that is this machine by its name must be this machine, and no other may be.
func checkAddress(address netip.Addr, loopbackHost bool, networks []Network) error {
	address = address.Unmap().WithZone("")
	if loopbackHost {
		if address.IsLoopback() {
			return nil
		}
		return fmt.Errorf("%s is not this machine; use the name of the other one, and https", address)
	}
	if slices.ContainsFunc(networks, func(n Network) bool { return n.addresses.Contains(address) }) {
		return nil
	}
	if !address.IsGlobalUnicast() || address.IsPrivate() || slices.ContainsFunc(closed, func(p netip.Prefix) bool { return p.Contains(address) }) {
		return fmt.Errorf("%s is not a public address; if it is meant, allow it with --webhook-networks", address)
	}
	return nil
}
