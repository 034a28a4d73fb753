package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/dronefleet/dronefleet/httpapi/identity"
)

// Access says who may ask for what. The zero value asks for no credentials,
// shows the fleet to requests that name this machine, and lets nobody change
// anything: a change must name who wanted it.
type Access struct {
	// Verifier, if set, makes every path but /healthz, /readyz and, unless
	// Metrics says otherwise, /metrics ask for a bearer token: of a viewer to
	// read, of an operator to change.
	Verifier *identity.Verifier
	// Metrics is who may read /metrics.
	Metrics MetricsAccess
	// AnyHost answers without credentials under any name, not only under those
	// of this machine. It has no effect beside a Verifier.
	AnyHost bool
}

// MetricsAccess is who may read /metrics.
type MetricsAccess string

const (
	MetricsOpen   MetricsAccess = "open"   // everybody; the default
	MetricsViewer MetricsAccess = "viewer" // who may read the fleet
	MetricsOff    MetricsAccess = "off"    // nobody
)

// CheckOpenAddress says what is wrong with listening at an address without
// credentials: others than this machine could read the fleet.
func CheckOpenAddress(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || isThisMachine(host) {
		return nil // an address that is none is found when it is listened at
	}
	return fmt.Errorf("is %s, where others can read the fleet without credentials; give an address of this machine such as 127.0.0.1:8080, or --insecure-http if something in front checks who asks", addr)
}

// isThisMachine reports whether a host can only be this machine. Names other
// than localhost may be anybody's.
func isThisMachine(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

type callerKey struct{}

// callerOf is who sent the request, if that was asked.
func callerOf(ctx context.Context) identity.Caller {
	c, _ := ctx.Value(callerKey{}).(identity.Caller) // without one, nobody
	return c
}

// guard lets those with a role pass to h.
func (a *API) guard(role identity.Role, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := a.admit(role, r)
		if err != nil {
			if p := asProblem(err); p.Status < http.StatusInternalServerError {
				a.log.InfoContext(r.Context(), "HTTP request not admitted", slog.String("path", r.URL.EscapedPath()),
					slog.Int("status", p.Status), slog.String("remote", r.RemoteAddr), slog.Any("err", err))
			}
			a.refuse(w, r, err)
			return
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)))
	})
}

// admit finds out who asks, and refuses who may not.
func (a *API) admit(role identity.Role, r *http.Request) (identity.Caller, error) {
	if a.access.Verifier == nil {
		return identity.Caller{}, a.admitUnknown(role, r)
	}
	token, err := bearer(r.Header)
	if err != nil {
		return identity.Caller{}, err
	}
	caller, err := a.access.Verifier.Identify(r.Context(), token)
	if refused, is := errors.AsType[*identity.TokenError](err); is {
		p := problem(http.StatusUnauthorized, "%s", refused)
		p.challenge = challenge("invalid_token", refused.Reason)
		return identity.Caller{}, p
	}
	if err != nil {
		return identity.Caller{}, err
	}
	if !caller.May(role) {
		p := problem(http.StatusForbidden, "%s has not the role %s, which this needs; ask whoever configures the State Manager", caller.Name, role)
		p.challenge = challenge("insufficient_scope", "role "+string(role)+" is missing")
		return identity.Caller{}, p
	}
	return caller, nil
}

// admitUnknown judges a request when nobody is asked for credentials. One that
// names another host comes from a browser that some web page has sent here, by
// a name it owns: on a machine's own address that page could read the fleet.
func (a *API) admitUnknown(role identity.Role, r *http.Request) error {
	if role != identity.Viewer {
		return problem(http.StatusForbidden, "nothing can be changed here, for nobody could tell who did it: give the State Manager --oidc-issuer, or use the command statemanager")
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if !a.access.AnyHost && !isThisMachine(host) {
		return problem(http.StatusForbidden, "the request is for %.128q, and without credentials only this machine is answered; ask for localhost, or give the State Manager --oidc-issuer or --insecure-http", r.Host)
	}
	return nil
}

// bearer is the token of a request (RFC 6750, section 2.1). In URLs tokens get
// into logs, so they are not looked for there.
func bearer(h http.Header) (string, error) {
	refuse := func(text string) error {
		p := problem(http.StatusUnauthorized, "%s", text)
		p.challenge = challenge("", "")
		return p
	}
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", refuse("this needs a token: send one header \"Authorization: Bearer TOKEN\" with a token of the OpenID Connect issuer")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", refuse("the header Authorization holds no bearer token; send \"Authorization: Bearer TOKEN\"")
	}
	return token, nil
}

// challenge is the value of a header WWW-Authenticate (RFC 6750, section 3).
func challenge(code, description string) string {
	text := `Bearer realm="dronefleet"`
	if code != "" {
		text += fmt.Sprintf(`, error="%s", error_description="%s"`, code, strings.Map(quotable, description))
	}
	return text
}

// quotable keeps the characters that a description may have.
func quotable(r rune) rune {
	switch {
	case r == '"':
		return '\''
	case r < ' ' || r > '~' || r == '\\':
		return -1
	}
	return r
}
