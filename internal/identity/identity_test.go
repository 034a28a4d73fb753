package identity_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/identity"
	"github.com/dronefleet/dronefleet/testkit/identitytest"
	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// gate is a verifier with its own issuer and clock.
type gate struct {
	*identity.Verifier
	t      testing.TB
	issuer *identitytest.Issuer
	key    identitytest.Key
	clock  *clockwork.FakeClock
	log    *bytes.Buffer
}

func grants(t testing.TB, texts ...string) []identity.Grant {
	t.Helper()
	list := make([]identity.Grant, len(texts))
	for i, text := range texts {
		if err := list[i].UnmarshalText([]byte(text)); err != nil {
			t.Fatalf("grant %q: %v", text, err)
		}
	}
	return list
}

func newGate(t testing.TB, viewers, operators []identity.Grant, leeway ...time.Duration) *gate {
	t.Helper()
	g := &gate{t: t, key: identitytest.RSA(t, "k1"), clock: clockwork.NewFakeClockAt(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)), log: new(bytes.Buffer)}
	g.issuer = identitytest.Start(t, g.key)
	v, err := identity.New(identity.Config{
		Issuer: g.issuer.URL, Audiences: []string{"other", identitytest.Audience}, Viewers: viewers, Operators: operators,
		Leeway: append(leeway, time.Minute)[0], Now: g.clock.Now, Log: slog.New(slog.NewTextHandler(g.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	g.Verifier = v
	return g
}

func (g *gate) token(claims identitytest.Claims) string {
	return g.issuer.Token(g.t, g.key, g.clock.Now(), claims)
}

// refused expects a token to be invalid, for a reason.
func (g *gate) refused(name, token, reason string) {
	g.t.Helper()
	caller, err := g.Identify(g.t.Context(), token)
	var refusal *identity.TokenError
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Error(), reason) {
		g.t.Errorf("%s: caller %+v, error %v; want a *TokenError with %q", name, caller, err, reason)
	}
	if caller.May(identity.Viewer) {
		g.t.Errorf("%s: it grants a role", name)
	}
	if err != nil && len(token) > 0 && strings.Contains(err.Error(), token) {
		g.t.Errorf("%s: the error shows the token", name)
	}
}

// unavailable expects that the token cannot be verified now.
func (g *gate) unavailable(name, token string) {
	g.t.Helper()
	_, err := g.Identify(g.t.Context(), token)
	var u *identity.UnavailableError
	if !errors.As(err, &u) || !strings.Contains(err.Error(), g.issuer.URL) {
		g.t.Errorf("%s: error %v, want an *UnavailableError", name, err)
	}
}

// known expects a token to be valid.
func (g *gate) known(name, token string) identity.Caller {
	g.t.Helper()
	caller, err := g.Identify(g.t.Context(), token)
	if err != nil {
		g.t.Errorf("%s: %v", name, err)
	}
	return caller
}

// knownSoon expects a token to be valid once the keys can be fetched again. The
// library forgets a fetch a moment after it has announced the outcome; a caller in
// that moment gets the same outcome.
func (g *gate) knownSoon(name, token string) {
	g.t.Helper()
	for giveUp := time.Now().Add(time.Minute); ; runtime.Gosched() {
		_, err := g.Identify(g.t.Context(), token)
		if err == nil {
			return
		}
		if time.Now().After(giveUp) {
			g.t.Errorf("%s: %v", name, err)
			return
		}
	}
}

// F-API-01
func TestIdentify_GrantsRolesForClaims(t *testing.T) {
	g := newGate(t, grants(t, "groups=watch", "https://example.org/site=Paris", "level=1000"), grants(t, "email=Ann@example.org", "email=mark@example.org", "realm_access.roles=fleet-operator", "admin=true"))
	for _, c := range []struct {
		name             string
		claims           identitytest.Claims
		caller           string
		viewer, operator bool
	}{
		{"no claim that grants a role", nil, "subject subject-1", false, false},
		{"a verified email, whatever its case", identitytest.Claims{"email": "ann@Example.org", "email_verified": true}, "ann@Example.org", true, true},
		{"an unverified email", identitytest.Claims{"email": "ann@example.org"}, "subject subject-1", false, false},
		{"an email that is refuted", identitytest.Claims{"email": "ann@example.org", "email_verified": false}, "subject subject-1", false, false},
		{"a group", identitytest.Claims{"groups": []string{"night", "watch"}}, "subject subject-1", true, false},
		{"a group as a text", identitytest.Claims{"groups": "watch"}, "subject subject-1", true, false},
		{"a group that only begins alike", identitytest.Claims{"groups": []string{"watchers"}}, "subject subject-1", false, false},
		{"a nested claim", identitytest.Claims{"realm_access": map[string]any{"roles": []string{"fleet-operator"}}}, "subject subject-1", true, true},
		{"a claim named by a URL", identitytest.Claims{"https://example.org/site": "Paris"}, "subject subject-1", true, false},
		{"a claim that is not text", identitytest.Claims{"admin": true}, "subject subject-1", true, true},
		{"a number in place of text", identitytest.Claims{"groups": 7}, "subject subject-1", false, false},
		{"a number", identitytest.Claims{"level": 1000}, "subject subject-1", true, false},
		{"a number in another notation", identitytest.Claims{"level": json.RawMessage("1e3")}, "subject subject-1", false, false},
		{"a long name", identitytest.Claims{"sub": strings.Repeat("é", domain.MaxActorRunes+1)}, "subject " + strings.Repeat("é", domain.MaxActorRunes-len("subject …")+2) + "…", false, false},
		{"a name of several lines", identitytest.Claims{"sub": "a\nb\x1b[31m"}, `subject "a\nb\x1b[31m"`, false, false},
		{"a subject that looks like an address", identitytest.Claims{"sub": "ann@example.org"}, "subject ann@example.org", false, false},
		{"a subject with a letter that nobody sees", identitytest.Claims{"sub": "ann\u200b@example.org"}, `subject "ann\u200b@example.org"`, false, false},
		{"an address with a letter that nobody sees", identitytest.Claims{"email": "ann\u200b@example.org", "email_verified": true}, `"ann\u200b@example.org"`, false, false},
		{"an address that looks like a subject", identitytest.Claims{"email": "subject ann", "email_verified": true}, `"subject ann"`, false, false},
		{"a subject that looks like two names", identitytest.Claims{"sub": "bob (by ann@example.org)"}, `subject "bob (by ann@example.org)"`, false, false},
		{"an address with the Kelvin sign", identitytest.Claims{"email": "mar\u212a@example.org", "email_verified": true}, "mar\u212a@example.org", false, false},
	} {
		caller := g.known(c.name, g.token(c.claims))
		if caller.Name != c.caller || caller.May(identity.Viewer) != c.viewer || caller.May(identity.Operator) != c.operator {
			t.Errorf("%s: %+v, want %s, viewer %v, operator %v", c.name, caller, c.caller, c.viewer, c.operator)
		}
	}
	everybody := newGate(t, grants(t, "*"), nil)
	if c := everybody.known("everybody", everybody.token(nil)); !c.May(identity.Viewer) || c.May(identity.Operator) {
		t.Errorf("everybody: %+v", c)
	}
}

// F-API-01
func TestIdentify_RejectsInvalidTokens(t *testing.T) {
	g := newGate(t, grants(t, "*"), nil)
	now := g.clock.Now()
	parts := strings.Split(g.token(nil), ".")
	encode := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	forged := identitytest.RSA(t, "k1") // the id of the true key
	stranger := identitytest.Start(t, g.key)

	g.refused("another audience", g.token(identitytest.Claims{"aud": "somebody-else"}), `audience is ["somebody-else"]`)
	g.refused("no audience", g.token(identitytest.Claims{"aud": []string{}}), "audience")
	g.refused("expired", g.token(identitytest.Claims{"exp": now.Add(-61 * time.Second).Unix()}), "expired 2026-11-21T11:58:59Z; get a new one")
	g.refused("without an expiry", g.token(identitytest.Claims{"exp": nil}), "no expiry")
	for _, at := range []string{"1e18", "1e30", "1e308", "-1e18", "-1", "253402300800"} {
		for _, name := range []string{"exp", "iat", "nbf"} {
			g.refused(name+" of "+at, g.token(identitytest.Claims{name: json.RawMessage(at)}), "claim "+name+" is "+at+", which is out of range")
		}
	}
	g.refused("valid only after the leeway", g.token(identitytest.Claims{"nbf": now.Add(61 * time.Second).Unix()}), "not valid before 2026-11-21T12:01:01Z")
	for _, twice := range []string{
		`"aud":"somebody-else","Aud":"dronefleet"`, `"AUD":"dronefleet"`, `"aud":"somebody-else","aud":"dronefleet"`, `"aud":"dronefleet","groups":"a","Groups":"b"`,
		`"aud":"dronefleet","email_verified":false,"Email_Verified":true`, `"aud":"dronefleet","realm_access":{"roles":"a","roles":"b"}`, `"aud":"dronefleet","\u017fub":"root"`,
	} {
		payload := fmt.Sprintf(`{"iss":%q,"sub":"s","exp":%d,%s}`, g.issuer.URL, now.Add(time.Hour).Unix(), twice)
		reason := "only in case"
		if strings.Count(twice, `"aud"`) > 1 || strings.Contains(twice, "realm") {
			reason = "duplicate key"
		}
		g.refused("with "+twice, oidctest.SignIDToken(g.key.Private, g.key.ID, g.key.Algorithm, payload), reason)
	}
	g.refused("in Latin-1", oidctest.SignIDToken(g.key.Private, g.key.ID, g.key.Algorithm,
		fmt.Sprintf(`{"iss":%q,"aud":"dronefleet","sub":"Ren`+"\xe9"+`","exp":%d}`, g.issuer.URL, now.Add(time.Hour).Unix())), "not UTF-8")
	g.refused("of next week", g.token(identitytest.Claims{"nbf": now.Add(7 * 24 * time.Hour).Unix(), "exp": now.Add(8 * 24 * time.Hour).Unix()}), "not valid before")
	g.refused("an expiry as text", g.token(identitytest.Claims{"exp": fmt.Sprint(now.Add(time.Hour).Unix())}), "exp is not a number")
	g.refused("a start as text", g.token(identitytest.Claims{"nbf": fmt.Sprint(now.Unix())}), "nbf is not a number")
	g.refused("issued in the future", g.token(identitytest.Claims{"iat": now.Add(61 * time.Second).Unix()}), "issued in the future")
	g.refused("another issuer, same key", stranger.Token(t, g.key, now, nil), "different provider")
	g.refused("an unknown key", g.issuer.Token(t, identitytest.RSA(t, "k2"), now, nil), "signature")
	g.refused("another key under a known id", g.issuer.Token(t, forged, now, nil), "signature")
	g.refused("algorithm none", identitytest.Unsigned(g.token(nil)), "algorithm")
	g.refused("no subject", g.token(identitytest.Claims{"sub": ""}), "no subject")
	g.refused("another payload", parts[0]+"."+encode(map[string]any{"iss": g.issuer.URL, "aud": identitytest.Audience, "sub": "root", "exp": now.Add(time.Hour).Unix()})+"."+parts[2], "signature")
	g.refused("not a token", "mellon", "malformed")
	g.refused("empty", "", "malformed")

	g.refused("symmetric", identitytest.Symmetric(t, g.key, g.token(nil)), "algorithm")

	g.known("expired within the leeway", g.token(identitytest.Claims{"exp": now.Add(-59 * time.Second).Unix()}))
	g.known("issued within the leeway", g.token(identitytest.Claims{"iat": now.Add(59 * time.Second).Unix()}))
	g.known("valid from a time within the leeway", g.token(identitytest.Claims{"nbf": now.Add(59 * time.Second).Unix()}))
	g.known("with claims of several cases in a nested object", g.token(identitytest.Claims{"resource_access": map[string]any{"app": 1, "App": 2}}))
	g.known("issued at a fraction of a second", g.token(identitytest.Claims{"iat": json.RawMessage(fmt.Sprintf("%d.25", now.Unix()))}))
	g.known("without a time of issue", g.token(identitytest.Claims{"iat": nil}))
	g.known("several audiences", g.token(identitytest.Claims{"aud": []string{"x", identitytest.Audience}}))
	if strings.Contains(g.log.String(), parts[1]) {
		t.Error("the log shows a token")
	}
}

// F-INT-05: a requester is whom a claim names. Without a valid id there, the role is missing, and the
// caller is told why.
func TestIdentify_NamesTheRequester(t *testing.T) {
	for _, c := range []struct {
		name, claim string
		claims      identitytest.Claims
		requester   string
		lacks       string
	}{
		{"a claim", "requester", identitytest.Claims{"requester": "HOSPITAL-7"}, "HOSPITAL-7", ""},
		{"a nested claim", "hospital.id", identitytest.Claims{"hospital": map[string]any{"id": "HOSPITAL-7"}}, "HOSPITAL-7", ""},
		{"a verified address", "email", identitytest.Claims{"email": "ward@example.org", "email_verified": true}, "ward@example.org", ""},
		{"an address that is not verified", "email", identitytest.Claims{"email": "ward@example.org"}, "", "is empty"},
		{"no claim", "requester", nil, "", `the claim "requester" of the token, which must be a requester's id, is empty`},
		{"a list", "requester", identitytest.Claims{"requester": []string{"HOSPITAL-7"}}, "", "is empty"},
		{"several lines", "requester", identitytest.Claims{"requester": "HOSPITAL-7\n"}, "", "control character"},
		{"an auditor", "requester", identitytest.Claims{"requester": "HOSPITAL-7", "groups": "audit"}, "HOSPITAL-7", "lacks the required role requester"},
	} {
		g := newGate(t, nil, nil)
		v, err := identity.New(identity.Config{
			Issuer: g.issuer.URL, Audiences: []string{identitytest.Audience}, Auditors: grants(t, "groups=audit"), Requesters: grants(t, "*"), RequesterClaim: c.claim, Now: g.clock.Now,
		})
		if err != nil {
			t.Fatal(err)
		}
		g.Verifier = v
		caller := g.known(c.name, g.token(c.claims))
		if caller.Requester != c.requester || caller.May(identity.Requester) != (c.lacks == "") {
			t.Errorf("%s: %+v, want requester %q", c.name, caller, c.requester)
		}
		if c.name != "an auditor" && len(caller.Roles()) > 1 || caller.May(identity.Operator) {
			t.Errorf("%s: roles %v", c.name, caller.Roles())
		}
		if text := caller.Lacks(identity.Requester); !strings.Contains(text, c.lacks) {
			t.Errorf("%s: %s, want %q", c.name, text, c.lacks)
		}
	}
}

// F-INT-06: a key has the one role of its document. One that names no requester speaks for none, not
// for orders without a requester.
func TestOfKey_GrantsOneRole(t *testing.T) {
	for _, c := range []struct {
		role    domain.KeyRole
		subject string
		roles   []identity.Role
		lacks   string
	}{
		{domain.KeyViewer, "", []identity.Role{identity.Viewer}, "key 00 lacks the required role operator"},
		{domain.KeyOperator, "", []identity.Role{identity.Viewer, identity.Operator}, ""},
		{domain.KeyRequester, "HOSPITAL-7", []identity.Role{identity.Requester}, "key 00 of HOSPITAL-7 lacks the required role operator"},
		{domain.KeyRequester, "", nil, "the subject of the key, which must be a requester's id, is empty"},
		{domain.KeyDrone, "DRONE-1", nil, "the key of a drone only opens a gateway"},
		{"later", "", nil, "lacks the required role operator"},
	} {
		caller := identity.OfKey(domain.APIKey{Hash: "00", Role: c.role, Subject: c.subject}, nil)
		if !slices.Equal(caller.Roles(), c.roles) || caller.Method != identity.Key || caller.May(identity.Requester) != (caller.Requester != "") {
			t.Errorf("%s: %+v, want roles %v", c.role, caller, c.roles)
		}
		if text := caller.Lacks(identity.Operator); !strings.Contains(text, c.lacks) {
			t.Errorf("%s: %s, want %q", c.role, text, c.lacks)
		}
	}
}

// F-API-01: whatever their names, callers are told apart by issuer and subject.
func TestIdentify_TellsCallersApartByIssuerAndSubject(t *testing.T) {
	g, other := newGate(t, grants(t, "*"), nil), newGate(t, grants(t, "*"), nil)
	ann := g.known("ann", g.token(identitytest.Claims{"sub": "1", "email": "ann@example.org", "email_verified": true}))
	renamed := g.known("ann, renamed", g.token(identitytest.Claims{"sub": "1"}))
	for name, caller := range map[string]identity.Caller{
		"a subject like ann's address":     g.known("eve", g.token(identitytest.Claims{"sub": "ann@example.org"})),
		"ann's address at another subject": g.known("eve", g.token(identitytest.Claims{"sub": "2", "email": "ann@example.org", "email_verified": true})),
		"ann's subject at another issuer":  other.known("eve", other.token(identitytest.Claims{"sub": "1"})),
	} {
		if caller.ID == ann.ID {
			t.Errorf("%s counts as ann", name)
		}
	}
	if renamed.ID != ann.ID || ann.ID == "" {
		t.Errorf("ann's ids: %q and %q", ann.ID, renamed.ID)
	}
}

// F-API-01: the leeway holds where it is 0 or more than the library's own five minutes.
func TestIdentify_HasOneLeewayForAllTimes(t *testing.T) {
	for _, leeway := range []time.Duration{0, 5 * time.Minute} {
		g := newGate(t, grants(t, "*"), nil, leeway)
		within, beyond := g.clock.Now().Add(leeway), g.clock.Now().Add(leeway+time.Second)
		for _, name := range []string{"iat", "nbf"} {
			g.known(fmt.Sprint(name, " within ", leeway), g.token(identitytest.Claims{name: within.Unix()}))
			g.refused(fmt.Sprint(name, " beyond ", leeway), g.token(identitytest.Claims{name: beyond.Unix()}), "check the clocks")
		}
		g.known(fmt.Sprint("expired within ", leeway), g.token(identitytest.Claims{"exp": g.clock.Now().Add(-leeway).Unix()}))
		g.refused(fmt.Sprint("expired beyond ", leeway), g.token(identitytest.Claims{"exp": g.clock.Now().Add(-leeway - time.Second).Unix()}), "expired")
	}
}

// F-API-01
func TestIdentify_FollowsKeyRotation(t *testing.T) {
	g := newGate(t, grants(t, "*"), nil)
	old, fresh := g.key, identitytest.EC(t, "k2")
	ofOld := g.issuer.Token(t, old, g.clock.Now(), nil)
	g.known("first key", ofOld)
	g.known("first key again", ofOld)
	if n := g.issuer.Asked(identitytest.KeysPath); n != 1 {
		t.Errorf("keys were fetched %d times for two tokens of one key", n)
	}

	g.issuer.Rotate(old, fresh)
	g.clock.Advance(11 * time.Second)
	ofFresh := g.issuer.Token(t, fresh, g.clock.Now(), nil)
	g.knownSoon("a new key, of ES256", ofFresh)
	g.known("the first key still", ofOld)

	// Forged key ids do not cause further fetches.
	before := g.issuer.Asked(identitytest.KeysPath)
	for range 20 {
		g.refused("unknown", g.issuer.Token(t, identitytest.EC(t, "k3"), g.clock.Now(), nil), "signature")
	}
	if n := g.issuer.Asked(identitytest.KeysPath) - before; n != 0 {
		t.Errorf("keys were fetched %d times within ten seconds", n)
	}

	g.issuer.Rotate(fresh)
	g.clock.Advance(5 * time.Minute)
	g.refused("the withdrawn key", ofOld, "signature")
	g.known("the key that stays", ofFresh)
}

// F-API-01
func TestIdentify_SurvivesIssuerOutages(t *testing.T) {
	g := newGate(t, grants(t, "*"), nil)
	g.issuer.SetDown(true)
	if err := g.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("error %v", err)
	}
	g.unavailable("down from the start", g.token(nil))
	g.issuer.SetDown(false)
	g.unavailable("up again, not asked yet", g.token(nil))
	g.clock.Advance(10 * time.Second)
	g.known("up again", g.token(nil))

	g.issuer.SetDown(true)
	g.clock.Advance(6 * time.Minute)
	g.known("down, key known", g.token(nil))
	g.unavailable("down, key unknown: it may be new", g.issuer.Token(t, identitytest.EC(t, "k2"), g.clock.Now(), nil))
	g.clock.Advance(time.Hour)
	g.unavailable("down for an hour", g.token(nil))
	g.issuer.SetDown(false)
	g.clock.Advance(10 * time.Second)
	g.knownSoon("up at last", g.token(nil))
	if !strings.Contains(g.log.String(), "502 Bad Gateway") {
		t.Errorf("log says nothing: %s", g.log)
	}
}

// F-API-01: an unusable key in the set does not invalidate the others.
func TestIdentify_IgnoresUnusableKeys(t *testing.T) {
	for name, c := range map[string]struct{ key, log string }{
		"of another curve":           {`{"kty":"EC","kid":"k0","crv":"secp256k1","x":"AAAA","y":"AAAA"}`, "secp256k1"},
		"with a strange certificate": {`{"kty":"RSA","kid":"k0","n":"AQAB","e":"AQAB","x5c":["AAAA"]}`, "x509"},
		"with a part missing":        {`{"kty":"RSA","kid":"k0","e":"AQAB"}`, "missing"},
		"that is null":               {`null`, "missing"},
		"of another kind":            {`{"kty":"AKP","kid":"k0","alg":"ML-DSA-44","pub":"AAAA"}`, ""},
	} {
		g := newGate(t, grants(t, "*"), nil)
		g.issuer.Also(json.RawMessage(c.key))
		g.known("the other key beside one "+name, g.token(nil))
		if logged := g.log.String(); !strings.Contains(logged, c.log) || c.log == "" && logged != "" {
			t.Errorf("of a key %s the log says %q", name, logged)
		}
		// Without a usable key the issuer has failed, not the token.
		g.issuer.Rotate()
		g.clock.Advance(6 * time.Minute)
		g.known("the key that was known before one "+name, g.token(nil))
		g.clock.Advance(time.Hour)
		g.unavailable("an hour with no key but one "+name, g.token(nil))
	}
}

// F-API-01: concurrent callers share one discovery, and one that gives up does not
// fail the others.
func TestIdentify_SharesDiscovery(t *testing.T) {
	g := newGate(t, grants(t, "*"), nil)
	token := g.token(nil)
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := g.Identify(gone, token); err == nil {
		t.Log("the answer was faster than the cancellation")
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() { g.known("one of many", token) })
	}
	wg.Wait()
	if n := g.issuer.Asked("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("the issuer was looked for %d times", n)
	}
}

// F-API-01: a token that there was no time to verify is not invalid.
func TestIdentify_IsUnavailableWithoutTime(t *testing.T) {
	g := newGate(t, grants(t, "*"), nil)
	g.known("first key", g.token(nil))
	fresh := identitytest.EC(t, "k2")
	g.issuer.Rotate(g.key, fresh)
	g.clock.Advance(11 * time.Second)
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, err := g.Identify(gone, g.issuer.Token(t, fresh, g.clock.Now(), nil))
	if _, unavailable := errors.AsType[*identity.UnavailableError](err); !unavailable {
		t.Errorf("error %v", err)
	}
}

// F-API-01: RFC 7518 requires 2048 bits.
func TestIdentify_RejectsShortRSAKeys(t *testing.T) {
	g := newGate(t, grants(t, "*"), nil)
	weak := identitytest.WeakRSA(t, "k0")
	g.issuer.Rotate(g.key, weak)
	g.refused("signed with a key of 1024 bits", g.issuer.Token(t, weak, g.clock.Now(), nil), "signature")
	g.known("signed with the other key", g.token(nil))
	if logged := g.log.String(); !strings.Contains(logged, "RSA key of 1024 bits") {
		t.Errorf("logged %q", logged)
	}
}

func TestNew_RefusesUnprotectedIssuers(t *testing.T) {
	for issuer, want := range map[string]string{
		"":                              "not an issuer's URL",
		"accounts.example.org":          "not an issuer's URL",
		"http://accounts.example.org":   "not https",
		"https://a:b@example.org":       "not an issuer's URL",
		"https://example.org/?tenant=a": "not an issuer's URL",
		"ftp://127.0.0.1":               "not https",
	} {
		if _, err := identity.New(identity.Config{Issuer: issuer, Audiences: []string{"a"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", issuer, err, want)
		}
	}
	if _, err := identity.New(identity.Config{Issuer: "https://example.org"}); err == nil || !strings.Contains(err.Error(), "no audience") {
		t.Errorf("no audience: error %v", err)
	}
}

func TestGrant_UnmarshalsOrRefusesText(t *testing.T) {
	for _, text := range []string{"", "email", "=x", "email=", " = "} {
		var g identity.Grant
		if err := g.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "claim=value") {
			t.Errorf("%q: error %v", text, err)
		}
	}
	for _, text := range []string{"*", "email=ann@example.org", "a.b=c=d"} {
		if got := grants(t, text)[0].String(); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
