package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/internal/identity"
)

const (
	signInPath    = "/signin"
	sessionCookie = "dronefleet-session"
	flowCookie    = "dronefleet-signin"
)

// signInEndpoints sign browsers in and out.
func (a *API) signInEndpoints() []endpoint {
	if a.access.SignIn == nil {
		return nil
	}
	return []endpoint{
		{method: http.MethodGet, path: signInPath, answer: answer{do: a.beginSignIn}},
		{method: http.MethodGet, path: identity.CallbackPath, parameters: []parameter{anyParameter}, answer: answer{do: a.finishSignIn}},
		{method: http.MethodPost, path: "/signout", answer: answer{do: a.signOut}},
	}
}

// beginSignIn answers GET /signin by sending the browser to the issuer.
//
// Cost: no RPC.
func (a *API) beginSignIn(ctx context.Context, _ *request) (any, error) {
	location, kept, err := a.access.SignIn.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a.setCookie(w, flowCookie, kept, identity.SignInFor)
		seeOther(w, location)
	}), nil
}

// finishSignIn answers GET /signin/callback, where the issuer sends the browser. Nothing
// in a request chooses where the browser goes next.
//
// Cost: no RPC; a request to the issuer.
func (a *API) finishSignIn(ctx context.Context, r *request) (any, error) {
	kept := ""
	if c, err := r.Cookie(a.cookieName(flowCookie)); err == nil {
		kept = c.Value
	}
	session, lasts, err := a.access.SignIn.Finish(ctx, kept, r.values)
	if refused, is := errors.AsType[*identity.SignInError](err); is {
		a.log.InfoContext(ctx, "sign-in rejected", slog.String("remote", r.RemoteAddr), slog.Any("err", refused))
		return nil, problem(http.StatusForbidden, "%s", refused)
	}
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a.setCookie(w, flowCookie, "", 0)
		a.setCookie(w, sessionCookie, session, lasts)
		w.Header().Set("Referrer-Policy", "no-referrer") // the address has the code
		seeOther(w, "/")
	}), nil
}

// signOut answers POST /signout: the browser forgets its session.
//
// Cost: no RPC.
func (a *API) signOut(_ context.Context, r *request) (any, error) {
	if err := a.checkOrigin(r.Request); err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a.setCookie(w, sessionCookie, "", 0)
		w.WriteHeader(http.StatusNoContent)
	}), nil
}

func seeOther(w http.ResponseWriter, location string) {
	w.Header().Set("Location", location)
	w.WriteHeader(http.StatusSeeOther)
}

// setCookie gives the browser a value to keep; 0 removes it. Scripts cannot read it.
func (a *API) setCookie(w http.ResponseWriter, name, value string, lasts time.Duration) {
	c := &http.Cookie{
		Name: a.cookieName(name), Value: value, Path: "/", MaxAge: int(lasts.Seconds()),
		Secure: a.https(), HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
	if name == flowCookie {
		c.SameSite = http.SameSiteLaxMode // it must come back with the redirect from the issuer
	}
	if lasts <= 0 {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// cookieName is the name that makes browsers refuse a cookie that another host or plain
// HTTP has set.
func (a *API) cookieName(name string) string {
	if a.https() {
		return "__Host-" + name
	}
	return name
}

// https reports whether browsers reach the site by https; otherwise it is on this machine.
func (a *API) https() bool { return strings.HasPrefix(a.access.SignIn.PublicURL(), "https:") }
