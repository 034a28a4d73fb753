package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/dronefleet/dronefleet/domain"
)

// Config says which tokens to accept and what they grant.
type Config struct {
	// Issuer is the URL of the OpenID Connect issuer exactly as in its tokens: https,
	// or http on this machine.
	Issuer string
	// Audiences are the accepted audiences; a token must name one of them.
	Audiences []string
	// Viewers, Auditors, Operators and Requesters are who has these roles.
	Viewers, Auditors, Operators, Requesters []Grant
	// RequesterClaim holds the id of the requester for whom a token with the role
	// Requester speaks.
	RequesterClaim string
	// Leeway is how far the issuer's clock may differ when a token's times are checked.
	Leeway time.Duration

	Now func() time.Time // nil for time.Now
	Log *slog.Logger
}

// CheckIssuer returns what is wrong with an issuer's URL, without the URL: it may
// hold a password.
func CheckIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("is not an issuer's URL; give one such as https://accounts.example.org")
	case !protected(u):
		return errors.New("is not https, so its keys could be replaced in transit; give an https URL")
	}
	return nil
}

// protected reports whether what a URL answers cannot be changed in transit.
func protected(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	loopback := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	return u.Scheme == "https" || u.Scheme == "http" && loopback
}

// Verifier verifies tokens. It is safe for concurrent use.
type Verifier struct {
	cfg    Config
	client *http.Client

	method     Method   // of the callers
	algorithms []string // accepted for signatures
	keysURL    string   // where the keys are; empty to discover it

	discovery singleflight.Group
	mu        sync.Mutex
	found     *provider // nil until discovery has succeeded
	triedAt   time.Time
	failure   error // of the last discovery
}

// provider is what discovery finds.
type provider struct {
	tokens   *oidc.IDTokenVerifier
	endpoint oauth2.Endpoint
}

// issuerTimeout is how long the issuer may take to answer.
const issuerTimeout = 5 * time.Second

// algorithms are the asymmetric ones. With a symmetric one the public key would do
// as the secret.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// New returns a verifier. It contacts the issuer when the first token comes; see
// Prepare.
func New(cfg Config) (*Verifier, error) {
	if err := CheckIssuer(cfg.Issuer); err != nil {
		return nil, fmt.Errorf("issuer %w", err)
	}
	if len(cfg.Audiences) == 0 {
		return nil, errors.New("no audience: tokens for any other service would be accepted; set one")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	transport := &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		ForceAttemptHTTP2: true,
		DisableKeepAlives: true, // requests are minutes apart
	}
	return &Verifier{cfg: cfg, method: Token, algorithms: algorithms, client: &http.Client{
		Transport: transport, Timeout: issuerTimeout,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if !protected(r.URL) || len(via) > 3 {
				return fmt.Errorf("redirect from %s to %s not followed", via[0].URL, r.URL)
			}
			return nil
		},
	}}, nil
}

// Prepare contacts the issuer, so that the first request need not wait and a mistake
// is noticed early. The error is an *UnavailableError; the verifier tries again when
// a token comes.
func (v *Verifier) Prepare(ctx context.Context) error {
	_, err := v.issuer(ctx)
	return err
}

// compact is the form of a token (RFC 7519, section 3). The library would accept
// other forms, which no issuer sends.
var compact = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$`)

// Identify verifies a token and returns its caller. The error is a *TokenError if the
// token is not valid, an *UnavailableError if it cannot be verified now.
func (v *Verifier) Identify(ctx context.Context, token string) (Caller, error) {
	verified, c, err := v.verify(ctx, token, v.cfg.Audiences)
	if err != nil {
		return Caller{}, err
	}
	caller := v.caller(c, verified.Subject)
	caller.Until = verified.Expiry.Add(v.cfg.Leeway)
	return caller, nil
}

// verify verifies a token for one of some audiences and returns its claims. Errors are
// those of Identify.
func (v *Verifier) verify(ctx context.Context, token string, audiences []string) (*oidc.IDToken, claims, error) {
	if !compact.MatchString(token) {
		return nil, nil, &TokenError{"it is malformed; send the JWT as the issuer returned it"}
	}
	issuer, err := v.issuer(ctx)
	if err != nil {
		return nil, nil, err
	}
	var outage error
	verified, err := issuer.tokens.Verify(context.WithValue(ctx, outageKey{}, &outage), token)
	switch {
	case outage != nil:
		return nil, nil, &UnavailableError{v.cfg.Issuer, outage}
	case ctx.Err() != nil:
		return nil, nil, &UnavailableError{v.cfg.Issuer, ctx.Err()}
	case err != nil:
		return nil, nil, &TokenError{reason(err)}
	}
	var payload json.RawMessage
	if err := verified.Claims(&payload); err != nil {
		return nil, nil, &TokenError{reason(err)}
	}
	c, err := readClaims(payload)
	if err != nil {
		return nil, nil, err
	}
	if verified.Expiry, err = c.times(v.cfg.Now(), v.cfg.Leeway); err != nil {
		return nil, nil, err
	}
	switch {
	case !slices.ContainsFunc(verified.Audience, func(a string) bool { return slices.Contains(audiences, a) }):
		return nil, nil, &TokenError{fmt.Sprintf("its audience is %.128q, not one of %q", verified.Audience, audiences)}
	case verified.Subject == "":
		return nil, nil, &TokenError{"it has no subject"}
	}
	return verified, c, nil
}

// caller is the token's bearer, with the roles that the claims grant.
func (v *Verifier) caller(c claims, subject string) Caller {
	if v.method == IAP { // it asserts addresses that Google has verified
		c["email_verified"] = true
	}
	caller := Caller{Name: nameOf(c, subject), ID: idOf(v.cfg.Issuer, subject), Method: v.method}
	if slices.ContainsFunc(v.cfg.Viewers, c.meet) {
		caller.roles = append(caller.roles, Viewer)
	}
	if slices.ContainsFunc(v.cfg.Auditors, c.meet) {
		caller.roles = append(caller.roles, Auditor)
	}
	if slices.ContainsFunc(v.cfg.Operators, c.meet) {
		caller.roles = append(caller.roles, Operator)
	}
	if slices.ContainsFunc(v.cfg.Requesters, c.meet) {
		id := c.text(v.cfg.RequesterClaim)
		if err := domain.CheckID(id); err != nil {
			caller.lacking = fmt.Sprintf("the claim %q of the token, which must be a requester's id, %s", v.cfg.RequesterClaim, err)
		} else {
			caller.Requester, caller.roles = id, append(caller.roles, Requester)
		}
	}
	return caller
}

// reason is the library's error on one line, without the library's name.
func reason(err error) string {
	text := strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "oidc: ")
	if len(text) > 256 {
		text = strings.ToValidUTF8(text[:256], "")
	}
	return text
}

// issuer is what is known of the issuer from its discovery document (OpenID Connect
// Discovery 1.0, section 4), which is fetched when it is first needed.
func (v *Verifier) issuer(ctx context.Context) (*provider, error) {
	if found, err, known := v.known(); known {
		return found, err
	}
	// Concurrent callers share one discovery.
	discovered := v.discovery.DoChan("", func() (any, error) {
		if found, err, known := v.known(); known {
			return found, err
		}
		// A caller that gives up must not fail the others; the client has a timeout.
		found, err := v.discover(context.WithoutCancel(ctx))
		v.mu.Lock()
		defer v.mu.Unlock()
		v.found, v.triedAt, v.failure = found, v.cfg.Now(), nil
		if err != nil {
			v.failure = &UnavailableError{v.cfg.Issuer, err}
		}
		return v.found, v.failure
	})
	select {
	case <-ctx.Done():
		return nil, &UnavailableError{v.cfg.Issuer, ctx.Err()}
	case r := <-discovered:
		found, _ := r.Val.(*provider) // nil beside an error
		return found, r.Err
	}
}

// known is the outcome of the last discovery; known is false if it is time for
// another.
func (v *Verifier) known() (found *provider, err error, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	again := v.found == nil && (v.triedAt.IsZero() || v.cfg.Now().Sub(v.triedAt) >= retryAfter)
	return v.found, v.failure, !again
}

func (v *Verifier) discover(ctx context.Context) (*provider, error) {
	if v.keysURL != "" {
		return &provider{tokens: v.trust(v.keysURL)}, nil
	}
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, v.client), v.cfg.Issuer)
	if err != nil {
		return nil, fmt.Errorf("discovery: %s", reason(err))
	}
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := found.Claims(&document); err != nil {
		return nil, fmt.Errorf("discovery: %s", reason(err))
	}
	if err := checkProtected("jwks_uri", document.Keys); err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	return &provider{v.trust(document.Keys), found.Endpoint()}, nil
}

// checkProtected refuses a URL of a discovery document that is not protected.
func checkProtected(name, text string) error {
	if u, err := url.Parse(text); err != nil || u.Host == "" || !protected(u) {
		return fmt.Errorf("%s %.128q is not an https URL", name, text)
	}
	return nil
}

// trust is the verifier of tokens that are signed with the keys at a URL.
func (v *Verifier) trust(keysURL string) *oidc.IDTokenVerifier {
	set := &keySet{url: keysURL, client: v.client, now: v.cfg.Now, log: v.cfg.Log}
	return oidc.NewVerifier(v.cfg.Issuer, set, &oidc.Config{
		SkipClientIDCheck:    true, // verify accepts several audiences
		SkipExpiryCheck:      true, // verify checks all times with one leeway
		SupportedSigningAlgs: v.algorithms,
	})
}
