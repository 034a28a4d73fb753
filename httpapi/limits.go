package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/httpapi/console"
	"github.com/dronefleet/dronefleet/httpapi/ratelimit"
	"github.com/dronefleet/dronefleet/internal/identity"
)

// budget is the budget that a request to the endpoint counts for; "" if it is not limited. Probes
// are not limited: an orchestrator restarts a process that does not answer. The console's files
// and map are not either: they cost no call of the store.
func (e endpoint) budget() ratelimit.Budget {
	_, file := console.Files[e.path]
	switch {
	case file, slices.Contains([]string{healthPath, "/readyz", "/metrics", console.MapPath, console.PMTilesPath, console.OverlayPath}, e.path):
		return ""
	case e.path == streamPath:
		return ratelimit.Streams
	case e.method == http.MethodGet:
		return ratelimit.Reads
	}
	return ratelimit.Commands
}

// payer is who a request counts for.
type payer struct {
	ratelimit.Caller
	name string
}

// payerOf is the caller or, if it has no credentials, the address that it comes from.
func (a *API) payerOf(r *http.Request, caller identity.Caller) payer {
	if caller.ID == "" {
		name := a.addressOf(r)
		return payer{ratelimit.Caller{ID: name}, name}
	}
	return payer{ratelimit.Caller{ID: caller.ID, Known: true}, caller.Name}
}

// pass has h answer a request unless the caller has used up its budget. Opening a stream
// also counts as a read.
func (a *API) pass(w http.ResponseWriter, r *http.Request, caller payer, b ratelimit.Budget, h http.Handler) {
	counted := b
	if b == ratelimit.Streams {
		counted = ratelimit.Reads
	}
	if b != "" {
		if wait := a.access.Limiter.Take(caller.Caller, counted); wait > 0 {
			a.limit(w, r, caller.name, counted, wait)
			return
		}
	}
	if b == ratelimit.Streams {
		closed := a.access.Limiter.OpenStream(caller.Caller)
		if closed == nil {
			a.limit(w, r, caller.name, b, streamRetry)
			return
		}
		defer closed()
	}
	h.ServeHTTP(w, r)
}

// streamRetry is how long a caller with too many streams is told to wait.
const streamRetry = 10 * time.Second

// limit answers a request that is over a limit. It is counted, not logged: the log must
// not grow with what a caller sends.
func (a *API) limit(w http.ResponseWriter, r *http.Request, caller string, b ratelimit.Budget, wait time.Duration) {
	a.meter.Limited(string(b)).Inc()
	seconds := int(max(1, (wait+time.Second-1)/time.Second))
	var detail string
	switch b {
	case ratelimit.Reads:
		detail = fmt.Sprintf("%s has exceeded the read limit; retry in %d s (--rate-reads)", caller, seconds)
	case ratelimit.Commands:
		detail = fmt.Sprintf("%s has exceeded the command limit; retry in %d s (--rate-commands)", caller, seconds)
	case ratelimit.Streams:
		detail = fmt.Sprintf("%s has reached the limit of open streams; close one (--max-streams)", caller)
	}
	p := problem(http.StatusTooManyRequests, "%s", detail)
	p.headers = map[string]string{"Retry-After": strconv.Itoa(seconds)}
	a.refuse(w, r, p)
}

// addressOf names the address that a request comes from, for limits. An IPv6 client has a
// whole /64 to choose addresses from, so that counts as one.
func (a *API) addressOf(r *http.Request) string {
	address := clientAddress(r, a.access.Proxies)
	if !address.IsValid() {
		return "an unknown address"
	}
	if address.Is6() {
		if network, err := address.WithZone("").Prefix(64); err == nil {
			return "network " + network.String()
		}
	}
	return "address " + address.String()
}

// clientAddress is the address of a request's client. Each trusted proxy appends the address of
// its caller to X-Forwarded-For, so the client is the last address there that is not a trusted
// proxy's.
func clientAddress(r *http.Request, proxies []Proxy) netip.Addr {
	trusted := func(a netip.Addr) bool {
		return slices.ContainsFunc(proxies, func(p Proxy) bool { return p.addresses.Contains(a) })
	}
	address := parseAddress(r.RemoteAddr)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !trusted(address) {
			break
		}
		next := parseAddress(strings.TrimSpace(hop))
		if !next.IsValid() {
			break
		}
		address = next
	}
	return address
}

// parseAddress parses an address with or without a port; it is not valid if text has none.
func parseAddress(text string) netip.Addr {
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}
	}
	return address.Unmap()
}
