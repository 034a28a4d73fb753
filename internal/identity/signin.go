package identity

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Times of a sign-in and its session.
const (
	SignInFor  = 10 * time.Minute // from the first redirect to the callback
	SessionFor = time.Hour        // a session that is used is renewed
	SessionEnd = 12 * time.Hour   // however active it is
)

// CallbackPath is where the issuer sends browsers back to.
const CallbackPath = "/signin/callback"

// SignInConfig says how browsers sign in.
type SignInConfig struct {
	ClientID     string
	ClientSecret string // empty for a public client
	// PublicURL is where browsers reach the API: https, or http on this machine.
	PublicURL string
	// Scopes are what the issuer is asked for; openid must be one.
	Scopes []string
	// Keys seal sessions: the first one new sessions, all open them. Without one a random
	// key is made.
	Keys []SessionKey
	// SessionFor and SessionEnd replace the constants if they are not 0.
	SessionFor, SessionEnd time.Duration
}

// CheckPublicURL returns what is wrong with the URL at which browsers reach the API.
func CheckPublicURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || !protected(u) {
		return errors.New("is not the address of a site; give one such as https://fleet.example.org, without a path")
	}
	return nil
}

// SignIn signs browsers in at the issuer: authorization code with PKCE (RFC 7636) and
// OpenID Connect Core 1.0, section 3.1. Browsers keep its state in sealed texts, so
// processes with the same keys accept each other's. It is safe for concurrent use.
type SignIn struct {
	cfg             SignInConfig
	verifier        *Verifier
	flows, sessions *sealer

	mu   sync.Mutex
	used map[string]time.Time // states that have signed in, until they expire
}

// NewSignIn returns a sign-in with a verifier's issuer, grants and clock.
func NewSignIn(v *Verifier, cfg SignInConfig) (*SignIn, error) {
	if err := CheckPublicURL(cfg.PublicURL); err != nil {
		return nil, fmt.Errorf("public URL %w", err)
	}
	site, err := url.Parse(cfg.PublicURL)
	if err != nil {
		return nil, err
	}
	cfg.PublicURL = site.Scheme + "://" + site.Host
	if cfg.ClientID == "" {
		return nil, errors.New("no client id: tokens for any other client would be accepted; set one")
	}
	if cfg.SessionFor == 0 {
		cfg.SessionFor = SessionFor
	}
	if cfg.SessionEnd == 0 {
		cfg.SessionEnd = SessionEnd
	}
	if len(cfg.Keys) == 0 {
		key := make(SessionKey, sessionKeyBytes)
		_, _ = rand.Read(key) // never fails
		cfg.Keys = []SessionKey{key}
	}
	// Who loses a role by a change of the grants loses the session too.
	bound := fmt.Sprintf("%q %q %q %q", v.cfg.Issuer, cfg.ClientID, v.cfg.Viewers, v.cfg.Operators)
	if len(v.cfg.Auditors) > 0 { // else sessions of earlier versions stay valid
		bound += fmt.Sprintf(" %q", v.cfg.Auditors)
	}
	if len(v.cfg.Requesters) > 0 {
		bound += fmt.Sprintf(" %q of %q", v.cfg.Requesters, v.cfg.RequesterClaim)
	}
	flows, err := newSealer(cfg.Keys, "sign-in", bound)
	if err != nil {
		return nil, err
	}
	sessions, err := newSealer(cfg.Keys, "session", bound)
	if err != nil {
		return nil, err
	}
	return &SignIn{cfg: cfg, verifier: v, flows: flows, sessions: sessions, used: map[string]time.Time{}}, nil
}

// PublicURL is the site's origin, such as https://fleet.example.org.
func (s *SignIn) PublicURL() string { return s.cfg.PublicURL }

// flow is a sign-in under way.
type flow struct {
	State, Nonce, Verifier string
	Until                  time.Time
}

// session is a browser that has signed in.
type session struct {
	Name  string
	ID    string
	Roles []Role
	// Requester and Lacking are those of the caller.
	Requester, Lacking string `json:",omitempty"`
	Began, Until       time.Time
}

// Begin starts a sign-in: where to send the browser, and what it must keep until it
// comes back. The error is an *UnavailableError.
func (s *SignIn) Begin(ctx context.Context) (location, kept string, err error) {
	client, err := s.client(ctx)
	if err != nil {
		return "", "", err
	}
	f := flow{rand.Text(), rand.Text(), oauth2.GenerateVerifier(), s.now().Add(SignInFor)}
	if kept, err = s.flows.seal(f); err != nil {
		return "", "", fmt.Errorf("begin a sign-in: %w", err)
	}
	return client.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), kept, nil
}

// Finish ends a sign-in with what the browser kept and what the issuer sent with it. It
// returns the session for the browser to keep, and how long. The error is a *SignInError
// or an *UnavailableError.
func (s *SignIn) Finish(ctx context.Context, kept string, answer url.Values) (session string, lasts time.Duration, err error) {
	var f flow
	switch {
	case !s.flows.open(kept, &f) || subtle.ConstantTimeCompare([]byte(f.State), []byte(answer.Get("state"))) != 1:
		return "", 0, &SignInError{"it was not started in this browser, or was started again since"}
	case !s.now().Before(f.Until):
		return "", 0, &SignInError{fmt.Sprintf("it took more than %s", SignInFor)}
	case s.isUsed(f.State):
		return "", 0, &SignInError{"it was completed before"}
	case answer.Has("iss") && answer.Get("iss") != s.verifier.cfg.Issuer: // RFC 9207
		return "", 0, &SignInError{fmt.Sprintf("the answer comes from another issuer, %.128q", answer.Get("iss"))}
	case answer.Has("error"):
		return "", 0, &SignInError{fmt.Sprintf("the issuer says %.64q: %.256q", answer.Get("error"), answer.Get("error_description"))}
	}
	caller, err := s.redeem(ctx, f, answer.Get("code"))
	if err != nil {
		return "", 0, err
	}
	if !s.use(f) {
		return "", 0, &SignInError{"it was completed before"}
	}
	return s.seal(caller, s.now())
}

// redeem gets the caller for a code.
func (s *SignIn) redeem(ctx context.Context, f flow, code string) (Caller, error) {
	client, err := s.client(ctx)
	if err != nil {
		return Caller{}, err
	}
	issued, err := client.Exchange(oidc.ClientContext(ctx, s.verifier.client), code, oauth2.VerifierOption(f.Verifier))
	if refused, is := errors.AsType[*oauth2.RetrieveError](err); is && refused.Response.StatusCode < http.StatusInternalServerError {
		return Caller{}, &SignInError{fmt.Sprintf("the issuer refuses the code: %.64q", refused.ErrorCode)}
	}
	if err != nil {
		return Caller{}, &UnavailableError{s.verifier.cfg.Issuer, errors.New("no token for a code")} // the error may show secrets
	}
	token, _ := issued.Extra("id_token").(string) // "" is malformed
	verified, c, err := s.verifier.verify(ctx, token, []string{s.cfg.ClientID})
	if invalid, is := errors.AsType[*TokenError](err); is {
		return Caller{}, &SignInError{"the issuer's ID token is not valid: " + invalid.Reason}
	}
	if err != nil {
		return Caller{}, err
	}
	if subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(f.Nonce)) != 1 {
		return Caller{}, &SignInError{"the ID token belongs to another sign-in: its nonce differs"}
	}
	if party, has := c["azp"]; has && party != s.cfg.ClientID || !has && len(verified.Audience) > 1 {
		return Caller{}, &SignInError{"the ID token was issued to another client"}
	}
	return s.verifier.caller(c, verified.Subject), nil
}

// Session is the caller of a session, with the session's successor if it is time for
// one. The error is a *TokenError.
func (s *SignIn) Session(sealed string) (caller Caller, successor string, lasts time.Duration, err error) {
	var old session
	if !s.sessions.open(sealed, &old) {
		return Caller{}, "", 0, &TokenError{"the session does not belong to this site, or its key is no longer accepted; sign in again"}
	}
	if old.ID == "" {
		return Caller{}, "", 0, &TokenError{"the session has the form of an earlier version; sign in again"}
	}
	now := s.now()
	if !now.Before(old.Until) {
		return Caller{}, "", 0, &TokenError{fmt.Sprintf("the session ended %s; sign in again", old.Until.UTC().Format(time.RFC3339))}
	}
	caller = Caller{Name: old.Name, ID: old.ID, Method: Session, Until: old.Until, Requester: old.Requester, roles: old.Roles, lacking: old.Lacking}
	if old.Until.Sub(now) < s.cfg.SessionFor/2 && old.Until.Before(old.Began.Add(s.cfg.SessionEnd)) {
		successor, lasts, err = s.seal(caller, old.Began)
		caller.Until = now.Add(lasts)
	}
	return caller, successor, lasts, err
}

// seal makes a caller's session.
func (s *SignIn) seal(c Caller, began time.Time) (sealed string, lasts time.Duration, err error) {
	lasts = min(s.cfg.SessionFor, began.Add(s.cfg.SessionEnd).Sub(s.now()))
	sealed, err = s.sessions.seal(session{c.Name, c.ID, c.roles, c.Requester, c.lacking, began, s.now().Add(lasts)})
	if err != nil {
		return "", 0, fmt.Errorf("seal a session: %w", err)
	}
	return sealed, lasts, nil
}

// client is this API as the issuer knows it.
func (s *SignIn) client(ctx context.Context) (*oauth2.Config, error) {
	issuer, err := s.verifier.issuer(ctx)
	if err != nil {
		return nil, err
	}
	for name, text := range map[string]string{"authorization_endpoint": issuer.endpoint.AuthURL, "token_endpoint": issuer.endpoint.TokenURL} {
		if err := checkProtected(name, text); err != nil {
			return nil, &UnavailableError{s.verifier.cfg.Issuer, err}
		}
	}
	endpoint := issuer.endpoint
	endpoint.AuthStyle = oauth2.AuthStyleInHeader // every server must support it (RFC 6749, section 2.3.1)
	if s.cfg.ClientSecret == "" {                 // a public client has nothing to put into a header
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: s.cfg.ClientID, ClientSecret: s.cfg.ClientSecret, Endpoint: endpoint,
		RedirectURL: s.cfg.PublicURL + CallbackPath, Scopes: s.cfg.Scopes,
	}, nil
}

func (s *SignIn) now() time.Time { return s.verifier.cfg.Now() }

func (s *SignIn) isUsed(state string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, is := s.used[state]
	return is
}

// use reports whether a sign-in is the first with its state. The issuer accepts a code
// once; this also covers an issuer that gives out a second one.
func (s *SignIn) use(f flow) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for state, until := range s.used {
		if !s.now().Before(until) {
			delete(s.used, state)
		}
	}
	_, used := s.used[f.State]
	s.used[f.State] = f.Until
	return !used
}
