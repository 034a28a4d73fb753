package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/httpapi/identity"
	"github.com/dronefleet/dronefleet/internal/config"
)

// access holds the flags that say who may use the HTTP API.
type access struct {
	OIDCIssuer    string                `help:"OpenID Connect issuer whose tokens the HTTP API requires; if empty, it requires none and is read-only." placeholder:"URL" name:"oidc-issuer"`
	OIDCAudience  []string              `help:"Accepted token audiences." placeholder:"NAME" name:"oidc-audience"`
	OIDCViewer    []identity.Grant      `help:"Who may read: CLAIM=VALUE, or * for everybody with a token. Operators may too." placeholder:"GRANT" name:"oidc-viewer"`
	OIDCOperator  []identity.Grant      `help:"Who may also change things: CLAIM=VALUE such as email=ann@example.org, groups=fleet or realm_access.roles=fleet." placeholder:"GRANT" name:"oidc-operator"`
	OIDCLeeway    time.Duration         `help:"Clock difference that is tolerated when a token's times are checked." default:"1m" check:"min 0s max 5m" name:"oidc-leeway"`
	MetricsAccess httpapi.MetricsAccess `help:"Who may read /metrics: ${enum}." enum:"open,viewer,off" default:"open"`
	InsecureHTTP  bool                  `help:"Serve the HTTP API without credentials where others reach it; only behind something that checks who asks." name:"insecure-http"`
}

// check refuses an API that nobody could use, or that is open by mistake.
func (a *access) check(r *config.Report, addr string) {
	if a.OIDCIssuer == "" {
		a.checkOpen(r, addr)
		return
	}
	if err := identity.CheckIssuer(a.OIDCIssuer); err != nil {
		r.Refuse("oidc-issuer", "%s", err) // without the URL, which may hold a password
	}
	if len(a.OIDCAudience) == 0 {
		r.Refuse("oidc-audience", "is missing; give the name that the issuer's tokens for this API carry")
	}
	if len(a.OIDCViewer)+len(a.OIDCOperator) == 0 {
		r.Refuse("oidc-viewer", "is missing, and so is oidc-operator: nobody could use the API; give one, or * for everybody with a token")
	}
	if a.InsecureHTTP {
		r.Refuse("insecure-http", "allows access without credentials, but oidc-issuer requires them; give only one")
	}
}

// checkOpen refuses flags that require an issuer when there is none.
func (a *access) checkOpen(r *config.Report, addr string) {
	for _, s := range []struct {
		name  string
		given bool
	}{
		{"oidc-audience", len(a.OIDCAudience) > 0}, {"oidc-viewer", len(a.OIDCViewer) > 0}, {"oidc-operator", len(a.OIDCOperator) > 0},
		{"metrics-access", a.MetricsAccess == httpapi.MetricsViewer},
	} {
		if s.given {
			r.Refuse(s.name, "requires oidc-issuer, which is missing; give both")
		}
	}
	if err := httpapi.CheckOpenAddress(addr); err != nil && !a.InsecureHTTP {
		r.Refuse("http-addr", "%s, or --oidc-issuer", err)
	}
}

// open builds the API's access control from the flags. An issuer that does not answer is
// logged; only requests with tokens fail.
func (a *access) open(ctx context.Context, log *slog.Logger) (httpapi.Access, error) {
	access := httpapi.Access{Metrics: a.MetricsAccess, AnyHost: a.InsecureHTTP}
	if a.OIDCIssuer == "" {
		return access, nil
	}
	var err error
	access.Verifier, err = identity.New(identity.Config{
		Issuer: a.OIDCIssuer, Audiences: a.OIDCAudience, Viewers: a.OIDCViewer, Operators: a.OIDCOperator, Leeway: a.OIDCLeeway, Log: log,
	})
	if err != nil {
		return access, err
	}
	if err := access.Verifier.Prepare(ctx); err != nil {
		log.WarnContext(ctx, "token issuer does not answer; the HTTP API answers 503 to tokens until it does", slog.Any("err", err))
	}
	return access, nil
}
