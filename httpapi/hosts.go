package httpapi

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

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

// checkHost refuses requests for a host that is not the API's. A web page can point a
// name of its own at every address that its reader's browser reaches, and would then read
// what is served there (DNS rebinding).
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

// isOwnAddress reports whether a host is the very address at which the request arrived, as
// that of a pod's probe is. It is no name that anybody could point elsewhere.
func (a *API) isOwnAddress(r *http.Request, host string) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	address, err := netip.ParseAddr(host)
	return err == nil && local != nil && address.Unmap() == parseAddress(local.String())
}

// publicHost is the host of the site where browsers sign in; empty without sign-in.
func publicHost(access Access) string {
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

// checkPage refuses what a page of another site asks for where no credentials are needed
// or the browser adds them. The page could not read the answer, but would use up what the
// browser's user may ask for. Links lead to the console from everywhere.
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
