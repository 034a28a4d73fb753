package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/dronefleet/dronefleet/app/apikeys"
	"github.com/dronefleet/dronefleet/httpapi/ratelimit"
	"github.com/dronefleet/dronefleet/internal/identity"
)

// guard passes requests of callers with the endpoint's role to h, within the caller's
// limits. Every other request counts for its address, even where the endpoint itself has
// no limit.
func (a *API) guard(e endpoint, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		budget, address := ratelimit.Reads, a.payerOf(r, identity.Caller{})
		if e.budget() == ratelimit.Commands {
			budget = ratelimit.Commands
		}
		// Each guess at a key costs a read.
		if key := a.keyOf(r); key != "" && !a.keys.Knows(key) {
			if wait := a.access.Limiter.Wait(address.Caller, budget); wait > 0 {
				a.limit(w, r, address.name, budget, wait)
				return
			}
		}
		caller, err := a.admit(e, w, r)
		if err != nil {
			a.pass(w, r, address, budget, a.rejecting(err))
			return
		}
		a.pass(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)), a.payerOf(r, caller), e.budget(), h)
	})
}

// rejecting logs and answers a request that must not be served.
func (a *API) rejecting(err error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := asProblem(err).Status; status < http.StatusInternalServerError { // refuse logs the others
			a.quiet.request(r.Context(), slog.LevelInfo, "HTTP request rejected", r, status, err)
		}
		a.refuse(w, r, err)
	})
}

// admit identifies the caller and checks its role.
func (a *API) admit(e endpoint, w http.ResponseWriter, r *http.Request) (identity.Caller, error) {
	open := a.access.open() && a.access.Local == "" && a.keyOf(r) == ""
	switch {
	case e.path == healthPath:
		return identity.Anybody(), nil
	case e.role == "":
		return identity.Anybody(), a.checkPage(r)
	case open && e.role != identity.Viewer:
		return identity.Caller{}, problem(http.StatusForbidden, "changes require authentication; send an API key, set --oidc-issuer, or use the command statemanager")
	case open:
		return identity.Anybody(), a.checkPage(r)
	}
	caller, err := a.identify(w, r)
	if refused, is := errors.AsType[*identity.TokenError](err); is {
		p := a.unauthorized("%s", refused)
		p.headers = map[string]string{authenticate: challenge("invalid_token", refused.Reason)}
		return identity.Caller{}, p
	}
	if refused, is := errors.AsType[*apikeys.InvalidError](err); is {
		p := a.unauthorized("%s", refused)
		p.headers = map[string]string{authenticate: challenge("invalid_token", refused.Reason)}
		return identity.Caller{}, p
	}
	if err != nil {
		return identity.Caller{}, err
	}
	if caller.Method != identity.Token && caller.Method != identity.Key { // the browser adds the credentials, whatever page asks
		if err := cmp.Or(a.checkOrigin(r), a.checkPage(r), checkLocal(r, caller)); err != nil {
			return identity.Caller{}, err
		}
	}
	if !e.admits(caller) {
		p := problem(http.StatusForbidden, "%s; ask the administrator of the State Manager for it", caller.Lacks(e.role))
		p.headers = map[string]string{authenticate: challenge("insufficient_scope", "role "+string(e.role)+" is missing")}
		return identity.Caller{}, p
	}
	return caller, nil
}

// checkLocal refuses changes by the user of this machine that no page has sent: a script must say
// who it is.
func checkLocal(r *http.Request, caller identity.Caller) error {
	if caller.Method != identity.Local || isSafe(r.Method) || r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != "" {
		return nil // checkOrigin has judged what a browser says
	}
	return problem(http.StatusForbidden, "only the console makes changes without credentials; send an operator's API key")
}

// identify verifies the credentials of a request: an API key, the proxy's, a token, or a
// session, which is renewed when that is due. An assertion of the proxy comes before a token,
// because the header Authorization may be meant for the proxy; a key cannot be.
func (a *API) identify(w http.ResponseWriter, r *http.Request) (identity.Caller, error) {
	if key := a.keyOf(r); key != "" {
		k, err := a.keys.Check(r.Context(), key)
		return identity.OfKey(k, func(ctx context.Context) error { return a.keys.Recheck(ctx, k) }), err
	}
	if a.access.Local != "" && a.access.open() {
		return identity.OfMachine(a.access.Local), nil
	}
	if assertions := r.Header.Values(assertion); a.access.IAP != nil && (len(assertions) > 0 || a.access.Verifier == nil) {
		if len(assertions) != 1 {
			return identity.Caller{}, a.unauthorized("authentication required: the request has not come through the Identity-Aware Proxy; use its address")
		}
		return a.access.IAP.Identify(r.Context(), assertions[0])
	}
	if len(r.Header.Values("Authorization")) == 0 && a.access.SignIn != nil {
		if kept, err := r.Cookie(a.cookieName(sessionCookie)); err == nil {
			caller, successor, lasts, err := a.access.SignIn.Session(kept.Value)
			if successor != "" {
				a.setCookie(w, sessionCookie, successor, lasts)
			}
			return caller, err
		}
	}
	token, err := a.bearer(r.Header)
	switch {
	case err != nil:
		return identity.Caller{}, err
	case a.access.Verifier == nil:
		return identity.Caller{}, a.unauthorized("the bearer token is not an API key, which begins with %s; send %s", apikeys.Prefix, a.tokens())
	}
	return a.access.Verifier.Identify(r.Context(), token)
}

// keyOf is the API key of a request; empty if it has none or keys are not accepted.
func (a *API) keyOf(r *http.Request) string {
	values := r.Header.Values("Authorization")
	if a.keys == nil || len(values) != 1 {
		return ""
	}
	token, err := a.bearer(r.Header)
	if err != nil || !apikeys.Is(token) {
		return ""
	}
	return token
}

// assertion is the header of Google's Identity-Aware Proxy.
const assertion = "X-Goog-IAP-JWT-Assertion"

// unauthorized is the problem of a request without valid credentials. It tells pages
// where their user can sign in.
func (a *API) unauthorized(format string, args ...any) *Problem {
	p := problem(http.StatusUnauthorized, format, args...)
	p.headers = map[string]string{authenticate: challenge("", "")}
	if a.access.SignIn != nil {
		p.SignIn = signInPath
	}
	return p
}

// bearer is the token of a request (RFC 6750, section 2.1). Tokens in URLs are not
// accepted, because URLs are logged.
func (a *API) bearer(h http.Header) (string, error) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", a.unauthorized("authentication required; send one header \"Authorization: Bearer TOKEN\" with %s", a.tokens())
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", a.unauthorized("the header Authorization has no bearer token; send \"Authorization: Bearer TOKEN\"")
	}
	return token, nil
}

// tokens says which bearer tokens are accepted.
func (a *API) tokens() string {
	switch {
	case a.access.Verifier == nil:
		return "an API key"
	case a.keys == nil:
		return "a token of the OpenID Connect issuer"
	}
	return "a token of the OpenID Connect issuer or an API key"
}

// authenticate is the header that holds a challenge.
const authenticate = "WWW-Authenticate"

// challenge is the value of the header WWW-Authenticate (RFC 6750, section 3).
func challenge(code, description string) string {
	text := `Bearer realm="dronefleet"`
	if code != "" {
		text += fmt.Sprintf(`, error="%s", error_description="%s"`, code, strings.Map(quotable, description))
	}
	return text
}

// quotable keeps the characters that an error_description may have.
func quotable(r rune) rune {
	switch {
	case r == '"':
		return '\''
	case r < ' ' || r > '~' || r == '\\':
		return -1
	}
	return r
}
