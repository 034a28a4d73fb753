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
	"golang.org/x/sync/singleflight"
)

// Config says whom to believe.
type Config struct {
	// Issuer is the URL of the OpenID Connect issuer, exactly as its tokens
	// name it: https, or http on this machine.
	Issuer string
	// Audiences are the names tokens may be meant for; a token names one.
	Audiences []string
	// Viewers and Operators grant roles.
	Viewers, Operators []Grant
	// Leeway is how far clocks may be apart when a token's expiry is judged.
	Leeway time.Duration

	Now func() time.Time // the true time, nil for time.Now
	Log *slog.Logger
}

// CheckIssuer says what is wrong with an issuer's URL.
func CheckIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("is no URL of an issuer; give one such as https://accounts.example.org")
	case !private(u):
		return errors.New("is not https, so that anybody on the way could replace its keys; give an https URL")
	}
	return nil
}

// private reports whether nobody on the network can change what a URL answers.
func private(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	loopback := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	return u.Scheme == "https" || u.Scheme == "http" && loopback
}

// Verifier verifies tokens. It is safe for concurrent use.
type Verifier struct {
	cfg    Config
	client *http.Client

	discovery singleflight.Group
	mu        sync.Mutex
	tokens    *oidc.IDTokenVerifier // nil until the issuer was found
	triedAt   time.Time
	failure   error // of the last try to find it
}

// issuerTimeout is how long the issuer may take to answer.
const issuerTimeout = 5 * time.Second

// algorithms are those of which the verifying side holds no secret.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// New returns a verifier. The issuer is asked when the first token comes; see
// Prepare.
func New(cfg Config) (*Verifier, error) {
	if err := CheckIssuer(cfg.Issuer); err != nil {
		return nil, fmt.Errorf("issuer %w", err) // without the URL, in which a password may be
	}
	if len(cfg.Audiences) == 0 {
		return nil, errors.New("no audience: tokens meant for anybody else would be good here too")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	transport := &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		ForceAttemptHTTP2: true,
		DisableKeepAlives: true, // a request every few minutes needs no connection between
	}
	return &Verifier{cfg: cfg, client: &http.Client{
		Transport: transport, Timeout: issuerTimeout,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if !private(r.URL) || len(via) > 3 {
				return fmt.Errorf("%s leads to %s, which is not followed", via[0].URL, r.URL)
			}
			return nil
		},
	}}, nil
}

// Prepare finds the issuer, so that the first request need not wait and a
// mistake is known early. The error is an *UnavailableError; the verifier tries
// again when it has to.
func (v *Verifier) Prepare(ctx context.Context) error {
	_, err := v.issuer(ctx)
	return err
}

// compact is the form of a token (RFC 7519, section 3). The library would take
// others, which no issuer sends.
var compact = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$`)

// Identify finds out whose token it is. The error is a *TokenError if it proves
// nothing, and an *UnavailableError if that cannot be told now.
func (v *Verifier) Identify(ctx context.Context, token string) (Caller, error) {
	if !compact.MatchString(token) {
		return Caller{}, &TokenError{"it is malformed; send a JWT as the issuer gave it"}
	}
	tokens, err := v.issuer(ctx)
	if err != nil {
		return Caller{}, err
	}
	var failure error // of the issuer
	verified, err := tokens.Verify(context.WithValue(ctx, failureKey{}, &failure), token)
	expired, isExpired := errors.AsType[*oidc.TokenExpiredError](err)
	switch {
	case failure != nil:
		return Caller{}, &UnavailableError{v.cfg.Issuer, failure}
	case ctx.Err() != nil:
		return Caller{}, &UnavailableError{v.cfg.Issuer, ctx.Err()}
	case isExpired:
		return Caller{}, &TokenError{fmt.Sprintf("it expired %s; get a new one", expired.Expiry.UTC().Format(time.RFC3339))}
	case err != nil:
		return Caller{}, &TokenError{reason(err)}
	case !slices.ContainsFunc(verified.Audience, func(a string) bool { return slices.Contains(v.cfg.Audiences, a) }):
		return Caller{}, &TokenError{fmt.Sprintf("it is meant for %.128q, not for %q", verified.Audience, v.cfg.Audiences)}
	case verified.Subject == "":
		return Caller{}, &TokenError{"it names no subject"}
	}
	var c claims
	var payload json.RawMessage
	if err := verified.Claims(&payload); err != nil {
		return Caller{}, &TokenError{reason(err)}
	}
	decoder := json.NewDecoder(strings.NewReader(string(payload)))
	decoder.UseNumber() // "1e3" in a grant is no 1000
	if err := decoder.Decode(&c); err != nil {
		return Caller{}, &TokenError{reason(err)}
	}
	return v.caller(c, verified.Subject), nil
}

// caller grants the roles that the claims are good for.
func (v *Verifier) caller(c claims, subject string) Caller {
	caller := Caller{Name: nameOf(c, subject)}
	if slices.ContainsFunc(v.cfg.Viewers, c.meet) {
		caller.roles = append(caller.roles, Viewer)
	}
	if slices.ContainsFunc(v.cfg.Operators, c.meet) {
		caller.roles = append(caller.roles, Operator)
	}
	return caller
}

// reason is the library's error without its name, on one line.
func reason(err error) string {
	text := strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "oidc: ")
	if len(text) > 256 {
		text = strings.ToValidUTF8(text[:256], "")
	}
	return text
}

// issuer finds the issuer's keys by its discovery document (OpenID Connect
// Discovery 1.0, section 4) and remembers them.
func (v *Verifier) issuer(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	if tokens, err, known := v.known(); known {
		return tokens, err
	}
	// Those who come while one looks wait for its answer.
	found := v.discovery.DoChan("", func() (any, error) {
		if tokens, err, known := v.known(); known {
			return tokens, err
		}
		// The one who gives up must not fail the others; the client's time is
		// bounded.
		tokens, err := v.discover(context.WithoutCancel(ctx))
		v.mu.Lock()
		defer v.mu.Unlock()
		v.tokens, v.triedAt, v.failure = tokens, v.cfg.Now(), nil
		if err != nil {
			v.failure = &UnavailableError{v.cfg.Issuer, err}
		}
		return v.tokens, v.failure
	})
	select {
	case <-ctx.Done():
		return nil, &UnavailableError{v.cfg.Issuer, ctx.Err()}
	case r := <-found:
		tokens, _ := r.Val.(*oidc.IDTokenVerifier) // nil beside an error
		return tokens, r.Err
	}
}

// known is what the last look at the issuer found, unless it is time for
// another.
func (v *Verifier) known() (tokens *oidc.IDTokenVerifier, err error, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	again := v.tokens == nil && (v.triedAt.IsZero() || v.cfg.Now().Sub(v.triedAt) >= retryAfter)
	return v.tokens, v.failure, !again
}

func (v *Verifier) discover(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, v.client), v.cfg.Issuer)
	if err != nil {
		return nil, fmt.Errorf("discovery: %s", reason(err))
	}
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&document); err != nil {
		return nil, fmt.Errorf("discovery: %s", reason(err))
	}
	if u, err := url.Parse(document.Keys); err != nil || u.Host == "" || !private(u) {
		return nil, fmt.Errorf("discovery: the keys' address %.128q is no https URL", document.Keys)
	}
	set := &keys{url: document.Keys, client: v.client, now: v.cfg.Now, log: v.cfg.Log}
	return oidc.NewVerifier(v.cfg.Issuer, set, &oidc.Config{
		SkipClientIDCheck:    true, // several audiences are looked for afterwards
		SupportedSigningAlgs: algorithms,
		Now:                  func() time.Time { return v.cfg.Now().Add(-v.cfg.Leeway) },
	}), nil
}
