package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// CheckOpenAddress returns an error if another machine can reach an address: an API
// without credentials must not listen there.
func CheckOpenAddress(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || isThisMachine(host) {
		return nil // Listen reports an address that cannot be parsed
	}
	return fmt.Errorf("is %s, where other machines can read the fleet without credentials; give a loopback address such as 127.0.0.1:8080, or --insecure-http if a proxy in front checks credentials", addr)
}

// isThisMachine reports whether a host can only be this machine. A name other than
// localhost can belong to anybody.
func isThisMachine(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// checkHost refuses requests for a host that is not the API's. Otherwise a web page could point a
// name of its own at the API's address and read the fleet through its reader's browser (DNS
// rebinding).
func (a *API) checkHost(r *http.Request) error {
	if r.URL.Path == healthPath { // for probes of every kind; it says nothing
		return nil
	}
	host := hostOf(r.Host)
	if isThisMachine(host) || a.isOwnAddress(r, host) || host != "" && host == a.publicHost || slices.ContainsFunc(a.access.Hosts, func(h Host) bool { return h.matches(host) }) {
		return nil
	}
	return problem(http.StatusForbidden, "host %.128q is not served here; use localhost, or add the host to --http-hosts", r.Host)
}

// hostOf is a Host header's name or address, in lower case and without the port.
func hostOf(header string) string {
	if name, _, err := net.SplitHostPort(header); err == nil {
		header = name
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(header, "[]")), ".")
}

// isOwnAddress reports whether a host is the address at which the request arrived, as in a
// pod's probe. An address, unlike a name, cannot be pointed elsewhere.
func (a *API) isOwnAddress(r *http.Request, host string) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	address, err := netip.ParseAddr(host)
	return err == nil && local != nil && address.Unmap() == parseAddress(local.String())
}

// siteHost is the host of the site where browsers sign in; empty without sign-in.
func siteHost(access Access) string {
	if access.SignIn == nil {
		return ""
	}
	u, err := url.Parse(access.SignIn.PublicURL())
	if err != nil {
		panic(err) // NewSignIn has checked it
	}
	return strings.ToLower(u.Hostname())
}

// ownOrigin tells requests of the site's own pages, and of more origins, from those of
// other sites.
func ownOrigin(access Access, more []Origin) *http.CrossOriginProtection {
	origin := http.NewCrossOriginProtection()
	trusted := slices.Clone(more)
	if access.SignIn != nil {
		// A proxy in front may change the Host.
		trusted = append(trusted, Origin(access.SignIn.PublicURL()))
	}
	for _, o := range trusted {
		if err := origin.AddTrustedOrigin(string(o)); err != nil {
			panic(err) // UnmarshalText or NewSignIn has checked it
		}
	}
	return origin
}

// checkOrigin refuses changes that a page of another site asks for.
func (a *API) checkOrigin(r *http.Request) error {
	if err := a.changes.Check(r); err != nil {
		return problem(http.StatusForbidden, "%s; only pages of this site can make changes with a session", err)
	}
	return nil
}

// checkPage refuses requests of other sites' pages where no credentials are needed or the browser
// adds them. Such a page could not read the answer, but would use up the limits of the browser's
// user. Links to the console are allowed.
func (a *API) checkPage(r *http.Request) error {
	follows := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	if follows && isSafe(r.Method) && !strings.HasPrefix(r.URL.Path, "/api/") {
		return nil
	}
	asked := *r
	asked.Method = http.MethodPost // it lets pass what changes nothing
	if err := a.reads.Check(&asked); err != nil {
		return problem(http.StatusForbidden, "%s; open the console itself, or add the page's origin to --cors-origins", err)
	}
	return nil
}

func isSafe(method string) bool { return method == http.MethodGet || method == http.MethodHead }
