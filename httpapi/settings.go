package httpapi

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"github.com/dronefleet/dronefleet/httpapi/ratelimit"
	"github.com/dronefleet/dronefleet/internal/identity"
)

// Access says who may call what. The zero value requires no credentials to read, and an
// API key to change: a change must name who made it.
type Access struct {
	// Verifier, if set, makes every path require a bearer token: a viewer's to
	// read, an operator's to change. /healthz and /readyz stay open; Metrics says who
	// may read /metrics.
	Verifier *identity.Verifier
	// SignIn, if set beside a Verifier, lets browsers sign in at the same issuer.
	SignIn *identity.SignIn
	// IAP, if set, accepts the assertions of Google's Identity-Aware Proxy. Beside a
	// Verifier either will do.
	IAP *identity.Verifier
	// APIKeys says what API keys are for; "" is KeysAccepted.
	APIKeys KeyAccess
	// Metrics is who may read /metrics.
	Metrics MetricsAccess
	// Local, if set, names the user of this machine: whoever sends no credentials is an operator of
	// that name, and changes the fleet from the site's own pages only. It needs a loopback address,
	// no Hosts and no proxy.
	Local string
	// Limiter bounds what each caller may ask; nil for no limits.
	Limiter *ratelimit.Limiter
	// Proxies are those whose header X-Forwarded-For is believed.
	Proxies []Proxy
	// Origins are those whose pages may read answers, besides the API's own.
	Origins []Origin
	// Hosts are those that requests may name, besides this machine's names and the
	// site's own. /healthz answers for all.
	Hosts []Host
}

// open reports whether no credentials are required.
func (a Access) open() bool {
	return a.Verifier == nil && a.IAP == nil && a.APIKeys != KeysRequired
}

// KeyAccess says what API keys are for.
type KeyAccess string

const (
	KeysAccepted KeyAccess = "accept"  // a request may have one; the default
	KeysRequired KeyAccess = "require" // as accept, and a request without any credentials is refused
	KeysOff      KeyAccess = "off"     // no key is accepted
)

// MetricsAccess is who may read /metrics.
type MetricsAccess string

const (
	MetricsOpen   MetricsAccess = "open"   // everybody
	MetricsViewer MetricsAccess = "viewer" // viewers and operators
	MetricsLocal  MetricsAccess = "local"  // collectors on the same machine or in the same pod; the default
	MetricsOff    MetricsAccess = "off"    // nobody
)

// Proxy is an address, or a range of them, of proxies in front of the API.
type Proxy struct{ addresses netip.Prefix }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Proxy) UnmarshalText(text []byte) error {
	value := string(text)
	if address, err := netip.ParseAddr(value); err == nil && address.Zone() == "" {
		address = address.Unmap()
		p.addresses = netip.PrefixFrom(address, address.BitLen())
		return nil
	}
	addresses, err := netip.ParsePrefix(value)
	if err != nil || addresses != addresses.Masked() {
		return errors.New("give an address such as 203.0.113.7, or a range such as 169.254.0.0/16 with no bits set after the prefix")
	}
	p.addresses = addresses
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (p Proxy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// String is the proxy in the form that UnmarshalText takes.
func (p Proxy) String() string { return p.addresses.String() }

// Origin is the origin of a web page, such as https://board.example.org.
type Origin string

// UnmarshalText implements encoding.TextUnmarshaler. Browsers send an origin in exactly
// one form, and no other is accepted.
func (o *Origin) UnmarshalText(text []byte) error {
	const fix = "give each origin in full, such as https://board.example.org or http://localhost:3000, in lower case and without * or a path"
	u, err := url.Parse(string(text))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || strings.Contains(u.Host, "*") {
		return errors.New(fix)
	}
	defaultPort := map[string]string{"https": "443", "http": "80"}[u.Scheme]
	if exact := u.Scheme + "://" + strings.ToLower(u.Host); exact != string(text) || strings.HasSuffix(u.Host, ":") || u.Port() == defaultPort {
		return errors.New(fix)
	}
	*o = Origin(text)
	return nil
}

// Host is a name or an address by which callers reach the API: fleet.example.org, or
// *.example.org for all names below one.
type Host string

var (
	hostName     = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)
	hostWildcard = regexp.MustCompile(`^\*\.[^.]+\.[^*]+$`)
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Host) UnmarshalText(text []byte) error {
	name := strings.ToLower(string(text))
	if ip, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil && ip.Zone() == "" {
		*h = Host(ip.String())
		return nil
	}
	if !hostName.MatchString(strings.TrimPrefix(name, "*.")) || strings.HasPrefix(name, "*") && !hostWildcard.MatchString(name) {
		return errors.New("give a name such as fleet.example.org, *.example.org for all names below one, or an address, without a scheme or port")
	}
	*h = Host(name)
	return nil
}

// matches reports whether a request's host, in lower case, is this one.
func (h Host) matches(host string) bool {
	if below, wildcard := strings.CutPrefix(string(h), "*"); wildcard {
		return strings.HasSuffix(host, below)
	}
	return host == string(h)
}
