package main

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/httpapi/ratelimit"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/identity"
)

// access holds the flags that say who may use the HTTP API.
type access struct {
	OIDCIssuer       string                `help:"OpenID Connect issuer whose tokens the HTTP API accepts; without it and iap-audience, reading needs no credentials and changing needs an API key." placeholder:"URL" name:"oidc-issuer"`
	OIDCAudience     []string              `help:"Accepted token audiences." placeholder:"NAME" name:"oidc-audience"`
	OIDCViewer       []identity.Grant      `help:"Who of oidc-issuer may read: CLAIM=VALUE, or * for everyone with a token. Operators may too." placeholder:"GRANT" name:"oidc-viewer"`
	OIDCAuditor      []identity.Grant      `help:"Who of oidc-issuer may read and never change anything, not even as an operator, as in oidc-viewer." placeholder:"GRANT" name:"oidc-auditor"`
	OIDCOperator     []identity.Grant      `help:"Who of oidc-issuer may also change things: CLAIM=VALUE such as email=ann@example.org, groups=fleet or realm_access.roles=fleet." placeholder:"GRANT" name:"oidc-operator"`
	OIDCRequester    []identity.Grant      `help:"Who of oidc-issuer may order, and see and change the orders of the requester that requester-claim names: a grant as in oidc-viewer." placeholder:"GRANT" name:"oidc-requester"`
	OIDCLeeway       time.Duration         `help:"Clock difference that is tolerated when a token's times are checked." default:"1m" check:"min 0s max 5m" name:"oidc-leeway"`
	OIDCClientID     string                `help:"Client id of this API at oidc-issuer; with it browsers can sign in." placeholder:"ID" name:"oidc-client-id"`
	OIDCClientSecret string                `help:"Secret of the client; empty for a public client." placeholder:"SECRET" name:"oidc-client-secret" secret:""`
	OIDCScope        []string              `help:"Scopes that are requested when a browser signs in." default:"openid,email,profile" name:"oidc-scope"`
	PublicURL        string                `help:"Address of the site in browsers: https://HOST, or http on this machine." placeholder:"URL" name:"public-url"`
	SessionKey       []identity.SessionKey `help:"Keys of browsers' sessions, 32 bytes in base64 each; the first one seals, all are accepted. Without one, sessions end with the process and no other replica accepts them." placeholder:"KEY" name:"session-key" secret:""`
	IAPAudience      string                `help:"Audience of Google's Identity-Aware Proxy in front of the HTTP API; with it the proxy's signed header is accepted." placeholder:"AUDIENCE" name:"iap-audience"`
	IAPViewer        []identity.Grant      `help:"Who may read through the proxy, as in oidc-viewer; * for everyone it admits." placeholder:"GRANT" name:"iap-viewer"`
	IAPAuditor       []identity.Grant      `help:"Who may read through the proxy and never change anything, as in oidc-auditor." placeholder:"GRANT" name:"iap-auditor"`
	IAPOperator      []identity.Grant      `help:"Who may also change things through the proxy, as in oidc-operator." placeholder:"GRANT" name:"iap-operator"`
	IAPRequester     []identity.Grant      `help:"Who may order through the proxy, as in oidc-requester." placeholder:"GRANT" name:"iap-requester"`
	RequesterClaim   string                `help:"Claim of a token that holds the requester's id; dots lead into nested claims, as in gcip.requester." default:"requester" placeholder:"CLAIM" name:"requester-claim"`
	APIKeys          httpapi.KeyAccess     `help:"What API keys are for: accept them beside other credentials, require one where there are no others, or off." enum:"accept,require,off" default:"accept" name:"api-keys"`
	RateReads        float64               `help:"Reads that each caller may send a second on average, with bursts of up to 10 s of that rate. 0 means no limit." default:"20" check:"min 0 max 100000" name:"rate-reads"`
	RateCommands     float64               `help:"Commands that each caller may send a second on average, with bursts of up to 10 s of that rate. 0 means no limit." default:"2" check:"min 0 max 100000" name:"rate-commands"`
	MaxStreams       int                   `help:"Streams that each caller may have open. 0 means no limit." default:"20" check:"min 0 max 100000" name:"max-streams"`
	TrustedProxies   []httpapi.Proxy       `help:"Proxies whose X-Forwarded-For header is trusted; callers without credentials are limited by their address." placeholder:"ADDRESS" name:"trusted-proxies"`
	CORSOrigins      []httpapi.Origin      `help:"Origins of other sites whose pages may use the HTTP API with a bearer token." placeholder:"ORIGIN" name:"cors-origins"`
	MetricsAccess    httpapi.MetricsAccess `help:"Who may read /metrics: open for everyone, viewer, local for collectors on the same machine or in the same pod, or off." enum:"open,viewer,local,off" default:"local"`
	HTTPHosts        []httpapi.Host        `help:"Host names and addresses by which the HTTP API may be reached, such as fleet.example.org, or *.example.org for all below one; besides localhost and the host of public-url." placeholder:"HOST" name:"http-hosts"`
	InsecureHTTP     bool                  `help:"Serve the HTTP API without credentials on an address that others can reach; only behind something that checks callers." name:"insecure-http"`
}

// check refuses an API that nobody can use, or that is open by mistake.
func (a *access) check(r *config.Refuser, addr string) {
	a.checkSignIn(r)
	if a.OIDCIssuer == "" && a.IAPAudience == "" && a.APIKeys != httpapi.KeysRequired {
		a.checkOpen(r, addr)
		return
	}
	if a.OIDCIssuer != "" {
		if err := identity.CheckIssuer(a.OIDCIssuer); err != nil {
			r.Refuse("oidc-issuer", "%s", err) // without the URL, which may hold a password
		}
		if len(a.OIDCAudience) == 0 {
			r.Refuse("oidc-audience", "is missing; give the name that the issuer's tokens for this API carry")
		}
	}
	a.checkGrants(r)
	if a.InsecureHTTP {
		r.Refuse("insecure-http", "allows access without credentials, but oidc-issuer, iap-audience or api-keys requires them; give only one")
	}
}

// checkGrants refuses grants of a sign-in that is off, and a sign-in that admits nobody. With two
// sign-ins the grant * is ambiguous.
func (a *access) checkGrants(r *config.Refuser) {
	for _, way := range []struct {
		on                 bool
		setting, name, all string
		grants             map[string][]identity.Grant
	}{
		{a.OIDCIssuer != "", "oidc-issuer", "oidc", "with a token", map[string][]identity.Grant{
			"viewer": a.OIDCViewer, "auditor": a.OIDCAuditor, "operator": a.OIDCOperator, "requester": a.OIDCRequester,
		}},
		{a.IAPAudience != "", "iap-audience", "iap", "whom the proxy admits", map[string][]identity.Grant{
			"viewer": a.IAPViewer, "auditor": a.IAPAuditor, "operator": a.IAPOperator, "requester": a.IAPRequester,
		}},
	} {
		given := 0
		for role, grants := range way.grants {
			given += len(grants)
			name := way.name + "-" + role
			switch {
			case !way.on && len(grants) > 0:
				r.Refuse(name, "requires %s, which is missing; give both", way.setting)
			case a.OIDCIssuer != "" && a.IAPAudience != "" && slices.ContainsFunc(grants, identity.Grant.Everybody):
				r.Refuse(name, "has *, which does not say who may come by oidc-issuer and who by iap-audience; give CLAIM=VALUE")
			}
		}
		if way.on && given == 0 {
			r.Refuse(way.name+"-viewer", "is missing, and so is %s-operator: nobody could use the API; give one, or * for everybody %s", way.name, way.all)
		}
	}
	if a.RequesterClaim == "" && len(a.OIDCRequester)+len(a.IAPRequester) > 0 {
		r.Refuse("requester-claim", "is empty; name the claim that holds the requester's id")
	}
	if a.OIDCIssuer == "" && len(a.OIDCAudience) > 0 {
		r.Refuse("oidc-audience", "requires oidc-issuer, which is missing; give both")
	}
}

// checkSignIn refuses incomplete flags for browsers.
func (a *access) checkSignIn(r *config.Refuser) {
	if a.OIDCClientID == "" {
		for _, s := range []struct {
			name  string
			given bool
		}{{"oidc-client-secret", a.OIDCClientSecret != ""}, {"public-url", a.PublicURL != ""}, {"session-key", len(a.SessionKey) > 0}} {
			if s.given {
				r.Refuse(s.name, "requires oidc-client-id, which is missing; give both")
			}
		}
		return
	}
	if a.OIDCIssuer == "" {
		r.Refuse("oidc-client-id", "requires oidc-issuer, which is missing; give both")
	}
	if err := identity.CheckPublicURL(a.PublicURL); err != nil {
		r.Refuse("public-url", "%s", err)
	}
	if !slices.Contains(a.OIDCScope, "openid") {
		r.Refuse("oidc-scope", "lacks openid; add it")
	}
}

// checkOpen refuses flags that require an issuer when there is none.
func (a *access) checkOpen(r *config.Refuser, addr string) {
	a.checkGrants(r)
	if a.MetricsAccess == httpapi.MetricsViewer {
		r.Refuse("metrics-access", "requires oidc-issuer, iap-audience or --api-keys=require; give one")
	}
	if err := httpapi.CheckOpenAddress(addr); err != nil && !a.InsecureHTTP {
		r.Refuse("http-addr", "%s, or --oidc-issuer, or --api-keys=require", err)
	}
}

// open builds the API's access control from the flags. If the issuer does not answer, it logs that;
// only requests with tokens fail.
func (a *access) open(ctx context.Context, log *slog.Logger) (httpapi.Access, error) {
	access := httpapi.Access{
		APIKeys: a.APIKeys, Metrics: a.MetricsAccess, Hosts: a.HTTPHosts, Proxies: a.TrustedProxies, Origins: a.CORSOrigins,
		Limiter: ratelimit.New(ratelimit.Config{Reads: a.RateReads, Commands: a.RateCommands, Streams: a.MaxStreams}, time.Now),
	}
	cfg := identity.Config{
		Issuer: a.OIDCIssuer, Audiences: a.OIDCAudience, Viewers: a.OIDCViewer, Auditors: a.OIDCAuditor, Operators: a.OIDCOperator,
		Requesters: a.OIDCRequester, RequesterClaim: a.RequesterClaim, Leeway: a.OIDCLeeway, Log: log,
	}
	var err error
	if a.OIDCIssuer != "" {
		if access.Verifier, err = identity.New(cfg); err != nil {
			return access, err
		}
		if err := access.Verifier.Prepare(ctx); err != nil {
			log.WarnContext(ctx, "token issuer does not answer; the HTTP API answers 503 to tokens until it does", slog.Any("err", err))
		}
	}
	if a.OIDCClientID != "" {
		if len(a.SessionKey) == 0 {
			log.WarnContext(ctx, "browsers' sessions end with this process, and other replicas do not accept them; set --session-key")
		}
		access.SignIn, err = identity.NewSignIn(access.Verifier, identity.SignInConfig{
			ClientID: a.OIDCClientID, ClientSecret: a.OIDCClientSecret, PublicURL: a.PublicURL, Scopes: a.OIDCScope, Keys: a.SessionKey,
		})
		if err != nil {
			return access, err
		}
	}
	if a.IAPAudience != "" {
		cfg.Audiences, cfg.Viewers, cfg.Auditors = []string{a.IAPAudience}, a.IAPViewer, a.IAPAuditor
		cfg.Operators, cfg.Requesters = a.IAPOperator, a.IAPRequester
		access.IAP, err = identity.NewIAP(cfg, identity.IAPKeysURL)
	}
	return access, err
}
