package identity_test

import (
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/internal/identity"
	"github.com/dronefleet/dronefleet/testkit/identitytest"
)

const publicURL = "https://fleet.example.org"

// door is a sign-in at a gate's issuer.
type door struct {
	*gate
	*identity.SignIn
	forge func(claims identitytest.Claims) string // makes the ID token if it is not nil
}

func newDoor(t *testing.T) *door {
	t.Helper()
	d := &door{gate: newGate(t, grants(t, "groups=watch"), grants(t, "email=ann@example.org"))}
	d.SignIn = d.replica(key(1))
	d.issuer.SignIn(identitytest.Browsers{Redirect: publicURL + identity.CallbackPath, IDToken: func(nonce string) string {
		claims := identitytest.Claims{"aud": identitytest.ClientID, "nonce": nonce, "email": "ann@example.org", "email_verified": true}
		if d.forge != nil {
			return d.forge(claims)
		}
		return d.token(claims)
	}})
	return d
}

// key is a session key for tests.
func key(n byte) identity.SessionKey {
	k := make(identity.SessionKey, 32)
	k[0] = n
	return k
}

// replica is another process with some keys.
func (d *door) replica(keys ...identity.SessionKey) *identity.SignIn {
	d.t.Helper()
	s, err := identity.NewSignIn(d.Verifier, identity.SignInConfig{
		ClientID: identitytest.ClientID, ClientSecret: identitytest.ClientSecret, PublicURL: publicURL, Scopes: []string{"openid"}, Keys: keys,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// begin starts a sign-in.
func (d *door) begin() (location, kept string) {
	d.t.Helper()
	location, kept, err := d.Begin(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	return location, kept
}

// visit goes to the issuer and returns what it sends back.
func (d *door) visit(location string) url.Values {
	d.t.Helper()
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Get(location)
	if err != nil {
		d.t.Fatal(err)
	}
	resp.Body.Close()
	back, err := resp.Location()
	if err != nil || !strings.HasPrefix(back.String(), publicURL+"/signin/callback?") {
		d.t.Fatalf("the issuer answers %s, redirects to %v: %v", resp.Status, back, err)
	}
	return back.Query()
}

// session signs in.
func (d *door) session() string {
	d.t.Helper()
	location, kept := d.begin()
	sealed, lasts, err := d.Finish(d.t.Context(), kept, d.visit(location))
	if err != nil || lasts != identity.SessionFor {
		d.t.Fatal(lasts, err)
	}
	return sealed
}

// fails expects that a sign-in is refused for a reason, without secrets.
func (d *door) fails(name, kept string, answer url.Values, reason string) {
	d.t.Helper()
	sealed, _, err := d.Finish(d.t.Context(), kept, answer)
	var refused *identity.SignInError
	if !errors.As(err, &refused) || !strings.Contains(refused.Reason, reason) || sealed != "" {
		d.t.Errorf("%s: session %q, error %v, want %q", name, sealed, err, reason)
	}
	if code := answer.Get("code"); err != nil && code != "" && strings.Contains(err.Error(), code) {
		d.t.Errorf("%s: the error shows the code", name)
	}
}

// ends expects that a process does not accept a session.
func (d *door) ends(name string, s *identity.SignIn, sealed, reason string) {
	d.t.Helper()
	caller, successor, _, err := s.Session(sealed)
	var refused *identity.TokenError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), reason) || caller.May(identity.Viewer) || successor != "" {
		d.t.Errorf("%s: caller %+v, error %v, want %q", name, caller, err, reason)
	}
}

// F-API-06: every replica with the key accepts a session, and keys can be replaced.
func TestSignIn_SessionsAreSharedByKey(t *testing.T) {
	d := newDoor(t)
	session := d.session()
	for name, s := range map[string]*identity.SignIn{
		"this": d.SignIn, "another": d.replica(key(1)), "one that seals with a new key": d.replica(key(2), key(1)),
	} {
		c, successor, _, err := s.Session(session)
		if err != nil || c.Name != "ann@example.org" || c.Method != identity.Session || !c.May(identity.Operator) || successor != "" || !c.Until.Equal(d.clock.Now().Add(time.Hour)) {
			t.Errorf("%s process: %+v, %v", name, c, err)
		}
	}
	d.ends("the old key is gone", d.replica(key(2)), session, "no longer accepted")
	d.ends("random keys", d.replica(), session, "no longer accepted")
	other := newGate(t, grants(t, "groups=watch"), grants(t, "email=bob@example.org"))
	d.ends("another issuer and other grants", (&door{gate: other}).replica(key(1)), session, "no longer accepted")
}

// F-API-06
func TestSignIn_SessionsEnd(t *testing.T) {
	d := newDoor(t)
	began := d.clock.Now()
	session := d.session()
	first := session
	for {
		d.clock.Advance(31 * time.Minute)
		caller, successor, lasts, err := d.Session(session)
		if err != nil {
			break
		}
		if successor != "" {
			session = successor
			if end := d.clock.Now().Add(lasts); !caller.Until.Equal(end) || end.After(began.Add(identity.SessionEnd)) {
				t.Fatalf("renewed until %s, %v; began %s", caller.Until, lasts, began)
			}
		}
	}
	if lasted := d.clock.Now().Sub(began); lasted < identity.SessionEnd || lasted > identity.SessionEnd+31*time.Minute {
		t.Errorf("a session in use lasted %s", lasted)
	}
	d.ends("past its end", d.SignIn, session, "the session ended 2026-11-22T00:00:00Z; sign in again")
	d.ends("never renewed", d.SignIn, first, "the session ended 2026-11-21T13:00:00Z")
}

// F-API-06: no bit of a session can be changed.
func TestSignIn_RefusesForgedSessions(t *testing.T) {
	d := newDoor(t)
	session := d.session()
	data, err := base64.RawURLEncoding.DecodeString(session)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		changed := append([]byte(nil), data...)
		changed[i] ^= 1 << (i % 8)
		d.ends("changed", d.SignIn, base64.RawURLEncoding.EncodeToString(changed), "does not belong to this site")
	}
	_, kept := d.begin()
	for name, forged := range map[string]string{"empty": "", "cut": session[:len(session)/2], "longer": session + "AA", "not base64": "%%%", "what a sign-in keeps": kept} {
		d.ends(name, d.SignIn, forged, "does not belong to this site")
	}
	if strings.Contains(string(data), "ann") {
		t.Error("the session can be read")
	}
}

// F-API-06
func TestSignIn_RefusesForgedAndReplayedAnswers(t *testing.T) {
	d := newDoor(t)
	location, kept := d.begin()
	answer := d.visit(location)
	if !strings.Contains(location, "code_challenge_method=S256") || !strings.Contains(location, "nonce=") {
		t.Error(location)
	}
	changed := func(name, value string) url.Values {
		other := url.Values{}
		for n, v := range answer {
			other[n] = v
		}
		other.Set(name, value)
		return other
	}
	theirs, keptByThem := d.begin()
	d.fails("no cookie", "", answer, "not started in this browser")
	d.fails("another browser's cookie", keptByThem, answer, "not started in this browser")
	d.fails("another state", kept, changed("state", "x"), "not started in this browser")
	d.fails("no state", kept, url.Values{"code": answer["code"]}, "not started in this browser")
	d.fails("tampered cookie", string(kept[0]^1)+kept[1:], answer, "not started in this browser")
	d.fails("another issuer", kept, changed("iss", "https://evil.example.org"), "another issuer")
	d.fails("a guessed code", kept, changed("code", "guess"), `refuses the code: "invalid_grant"`)
	d.fails("the user declines", kept, changed("error", "access_denied"), `"access_denied"`)
	stolen := d.visit(theirs) // a code of another browser has another challenge
	d.fails("another browser's code", kept, changed("code", stolen.Get("code")), "invalid_grant")

	if _, _, err := d.Finish(t.Context(), kept, answer); err != nil {
		t.Fatal(err)
	}
	d.fails("replayed state", kept, d.visit(location), "completed before")
	again, keptAgain := d.begin()
	replayed := d.visit(again)
	replayed.Set("code", answer.Get("code"))
	d.fails("replayed code", keptAgain, replayed, "invalid_grant")

	u, err := url.Parse(again)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Del("code_challenge")
	u.RawQuery = q.Encode()
	d.fails("no PKCE", keptAgain, d.visit(u.String()), "PKCE")

	d.clock.Advance(identity.SignInFor)
	d.fails("too late", keptAgain, d.visit(again), "more than 10m")
}

// F-INT-05: a session remembers for whom its requester orders, or why the role is missing. It ends when
// the grants of requesters change.
func TestSignIn_KeepsTheRequester(t *testing.T) {
	d := newDoor(t)
	admits := func(grant string) *identity.SignIn {
		v, err := identity.New(identity.Config{
			Issuer: d.issuer.URL, Audiences: []string{identitytest.Audience}, Requesters: grants(t, grant), RequesterClaim: "hospital", Leeway: time.Minute, Now: d.clock.Now,
		})
		if err != nil {
			t.Fatal(err)
		}
		d.Verifier = v
		return d.replica(key(1))
	}
	other, all := admits("groups=wards"), admits("*")
	d.SignIn = all
	for hospital, want := range map[string]string{"HOSPITAL-7": "HOSPITAL-7", "": ""} {
		d.forge = func(c identitytest.Claims) string { c["hospital"] = hospital; return d.token(c) }
		sealed := d.session()
		caller, _, _, err := d.Session(sealed)
		if err != nil || caller.Requester != want || caller.May(identity.Requester) != (want != "") || caller.May(identity.Viewer) {
			t.Errorf("%+v, %v; want requester %q", caller, err, want)
		}
		if lacks := strings.Contains(caller.Lacks(identity.Requester), `claim "hospital"`); lacks != (want == "") {
			t.Error(caller.Lacks(identity.Requester))
		}
		d.ends("other grants", other, sealed, "does not belong to this site")
	}
}

// F-API-06: a sign-in accepts only the issuer's ID token for this client and this sign-in.
func TestSignIn_RefusesWrongIDTokens(t *testing.T) {
	d := newDoor(t)
	stranger := identitytest.Start(t, d.key)
	with := func(name string, value any) func(identitytest.Claims) string {
		return func(c identitytest.Claims) string { c[name] = value; return d.token(c) }
	}
	for _, c := range []struct {
		name   string
		forge  func(identitytest.Claims) string
		reason string
	}{
		{"nonce of another sign-in", with("nonce", "other"), "nonce differs"},
		{"no nonce", with("nonce", nil), "nonce differs"},
		{"audience of bearer tokens", with("aud", identitytest.Audience), "audience"},
		{"issued to another client", with("azp", "other"), "another client"},
		{"several audiences", with("aud", []string{identitytest.ClientID, "other"}), "another client"},
		{"expired", with("exp", d.clock.Now().Add(-time.Hour).Unix()), "expired"},
		{"another issuer", func(c identitytest.Claims) string { return stranger.Token(t, d.key, d.clock.Now(), c) }, "different provider"},
		{"another key", func(c identitytest.Claims) string {
			return d.issuer.Token(t, identitytest.RSA(t, "k1"), d.clock.Now(), c)
		}, "signature"},
		{"algorithm none", func(c identitytest.Claims) string { return identitytest.Unsigned(d.token(c)) }, "algorithm"},
		{"symmetric", func(c identitytest.Claims) string { return identitytest.Symmetric(t, d.key, d.token(c)) }, "algorithm"},
		{"none", func(identitytest.Claims) string { return "" }, "malformed"},
	} {
		d.forge = c.forge
		location, kept := d.begin()
		d.fails(c.name, kept, d.visit(location), c.reason)
	}
	d.forge = nil
	d.session()
}

// F-API-06
func TestIAP_AcceptsOnlyTheProxysAssertions(t *testing.T) {
	g := newGate(t, nil, grants(t, "email=ann@example.org"))
	es := identitytest.EC(t, "p1")
	g.issuer.Rotate(es, g.key)
	v, err := identity.NewIAP(identity.Config{
		Audiences: []string{"/projects/1/apps/fleet"}, Operators: grants(t, "email=ann@example.org"), Now: g.clock.Now, Log: slog.New(slog.DiscardHandler),
	}, g.issuer.URL+identitytest.KeysPath)
	if err != nil {
		t.Fatal(err)
	}
	g.Verifier = v
	assert := func(k identitytest.Key, name string, value any) string {
		claims := identitytest.Claims{"iss": identity.IAPIssuer, "aud": "/projects/1/apps/fleet", "email": "ann@example.org"}
		claims[name] = value
		return g.issuer.Token(t, k, g.clock.Now(), claims)
	}
	good := assert(es, "sub", "accounts.google.com:1")
	if c := g.known("the proxy's", good); c.Name != "ann@example.org" || c.Method != identity.IAP || !c.May(identity.Operator) {
		t.Errorf("%+v", c)
	}
	g.refused("another audience", assert(es, "aud", "/projects/2/apps/fleet"), "audience")
	g.refused("another issuer", assert(es, "iss", g.issuer.URL), "different provider")
	g.refused("expired", assert(es, "exp", g.clock.Now().Add(-time.Second).Unix()), "expired")
	g.refused("RS256", assert(g.key, "sub", "1"), "algorithm")
	g.refused("forged", assert(identitytest.EC(t, "p1"), "sub", "1"), "signature")
	g.refused("algorithm none", identitytest.Unsigned(good), "algorithm")
	g.refused("symmetric", identitytest.Symmetric(t, es, good), "algorithm")
	if n := g.issuer.Asked(identitytest.KeysPath); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}
