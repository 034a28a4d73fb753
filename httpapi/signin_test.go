package httpapi_test

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/identity"
	"github.com/dronefleet/dronefleet/testkit/identitytest"
)

// site is an API where browsers can sign in, behind a proxy that ends TLS.
type site struct {
	*guarded
	claims identitytest.Claims // who signs in
}

const siteURL = "https://fleet.example.org"

func newSite(t *testing.T, cfg identity.SignInConfig) *site {
	t.Helper()
	s := &site{claims: asOperator}
	s.guarded = newGuarded(t, httpapi.MetricsOpen, func(g *guarded, access *httpapi.Access) {
		cfg.ClientID, cfg.ClientSecret, cfg.PublicURL, cfg.Scopes = identitytest.ClientID, identitytest.ClientSecret, siteURL, []string{"openid"}
		var err error
		if access.SignIn, err = identity.NewSignIn(access.Verifier, cfg); err != nil {
			t.Fatal(err)
		}
		g.issuer.SignIn(identitytest.Browsers{Redirect: siteURL + identity.CallbackPath, IDToken: func(nonce string) string {
			claims := identitytest.Claims{"aud": identitytest.ClientID, "nonce": nonce}
			for name, value := range s.claims {
				claims[name] = value
			}
			return g.token(claims)
		}})
	})
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s
}

// does sends a request with cookies and headers, given as name and value in turn.
func (s *site) does(method, path, body string, status int, cookies []*http.Cookie, headers ...string) (*http.Response, string) {
	s.t.Helper()
	target := path
	if strings.HasPrefix(path, "/") {
		target = s.url + path
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	for _, c := range cookies {
		req.AddCookie(c)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode != status {
		s.t.Errorf("%s %s %v: %s, want %d: %s", method, path, headers, resp.Status, status, text)
	}
	return resp, string(text)
}

// callback starts a sign-in, passes the issuer, and returns the path that the browser is
// sent to and what it kept.
func (s *site) callback() (path string, kept []*http.Cookie) {
	s.t.Helper()
	resp, _ := s.does("GET", "/signin", "", http.StatusSeeOther, nil)
	back, _ := s.does("GET", resp.Header.Get("Location"), "", http.StatusFound, nil)
	path, is := strings.CutPrefix(back.Header.Get("Location"), siteURL)
	if !is {
		s.t.Fatalf("the issuer redirects to %q", back.Header.Get("Location"))
	}
	return path, resp.Cookies()
}

// signsIn returns the session of a browser that has signed in.
func (s *site) signsIn(claims identitytest.Claims) []*http.Cookie {
	s.t.Helper()
	s.claims = claims
	path, kept := s.callback()
	resp, _ := s.does("GET", path, "", http.StatusSeeOther, kept)
	return slices.DeleteFunc(resp.Cookies(), func(c *http.Cookie) bool { return c.MaxAge < 0 })
}

// F-API-06: the session is where no script and no other site can reach it, and nothing in
// a request chooses where the browser goes next.
func TestSignIn_KeepsTheSessionFromScriptsAndURLs(t *testing.T) {
	s := newSite(t, identity.SignInConfig{})
	s.claims = asOperator
	path, kept := s.callback()
	if len(kept) != 1 || kept[0].Name != "__Host-dronefleet-signin" || !kept[0].HttpOnly || !kept[0].Secure || kept[0].SameSite != http.SameSiteLaxMode {
		t.Fatalf("kept during the sign-in: %v", kept)
	}
	resp, body := s.does("GET", path+"&to=//evil.example.org&redirect_uri=https://evil.example.org", "", http.StatusSeeOther, kept)
	if resp.Header.Get("Location") != "/" || body != "" || resp.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("redirected to %q with body %q", resp.Header.Get("Location"), body)
	}
	cookies := resp.Cookies()
	if len(cookies) != 2 || cookies[0].MaxAge >= 0 || cookies[0].Name != kept[0].Name {
		t.Fatalf("cookies %v", cookies)
	}
	if c := cookies[1]; c.Name != "__Host-dronefleet-session" || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 3600 {
		t.Errorf("session %v", c)
	}
	s.does("GET", "/signin?to=//evil.example.org", "", http.StatusBadRequest, nil)
	s.does("GET", path, "", http.StatusForbidden, kept)               // replayed
	s.does("GET", path, "", http.StatusForbidden, nil)                // another browser
	s.does("GET", path, "", http.StatusForbidden, cookies[1:])        // or one that is signed in
	s.does("GET", "/signin/callback", "", http.StatusForbidden, kept) // without state and code
	s.keepsSecrets()
}

// F-API-06
func TestSignIn_GivesTheRolesOfTheClaims(t *testing.T) {
	s := newSite(t, identity.SignInConfig{})
	s.order("O1")
	const hold, body, kind = "/api/v1/orders/O1/hold", `{"reason": "x"}`, "Content-Type"
	ann, watch, nobody := s.signsIn(asOperator), s.signsIn(asViewer), s.signsIn(asNobody)
	var is session
	_, text := s.does("GET", "/api/v1/session", "", 200, watch)
	if err := json.Unmarshal([]byte(text), &is); err != nil || is.Method != "session" || len(is.Verbs) != 0 || time.Until(is.Expires) > time.Hour {
		t.Errorf("viewer: %s, %v", text, err)
	}
	s.does("GET", "/api/v1/orders/O1", "", 200, watch)
	s.does("GET", "/api/v1/session", "", 403, nobody)
	for _, e := range s.api.Endpoints() {
		if e.Method != http.MethodGet {
			_, text := s.does(e.Method, strings.ReplaceAll(e.Path, "{id}", "O1"), body, 403, watch, kind, "application/json", "Sec-Fetch-Site", "same-origin")
			if !strings.Contains(text, "lacks the required role operator") {
				t.Errorf("%s: %s", e.Path, text)
			}
		}
	}
	_, text = s.does("GET", "/api/v1/drones", "", 401, nil)
	if !strings.Contains(text, `"signIn":"/signin"`) {
		t.Errorf("a page is not told where to sign in: %s", text)
	}
	first := "A"
	if ann[0].Value[:1] == first {
		first = "B"
	}
	forged := []*http.Cookie{{Name: ann[0].Name, Value: first + ann[0].Value[1:]}}
	s.does("GET", "/api/v1/drones", "", 401, forged)

	// Cross-site posts.
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example.org"}, {"Origin", "null"},
	} {
		s.does("POST", hold, body, 403, ann, append(headers, kind, "application/json")...)
		s.does("POST", "/signout", "", 403, ann, headers...)
	}
	s.does("POST", hold, body, 415, ann, kind, "text/plain", "Sec-Fetch-Site", "same-origin")
	if o, err := s.store.Order(t.Context(), "O1"); err != nil || o.Held {
		t.Errorf("changed by another site: %+v, %v", o, err)
	}
	_, text = s.does("POST", hold, body, 200, ann, kind, "application/json", "Origin", siteURL, "Sec-Fetch-Site", "same-origin")
	if !strings.Contains(text, "ann@example.org") {
		t.Error(text)
	}
	resp, _ := s.does("POST", "/signout", "", http.StatusNoContent, ann, "Sec-Fetch-Site", "same-origin")
	if left := resp.Cookies(); len(left) != 1 || left[0].Name != ann[0].Name || left[0].MaxAge >= 0 || left[0].Value != "" {
		t.Errorf("after signing out: %v", left)
	}
}

// F-API-06
func TestAPI_CannotBeFramed(t *testing.T) {
	s := newSite(t, identity.SignInConfig{})
	for path, status := range map[string]int{"/": 200, "/signin": 303, "/signin/callback": 403, "/api/v1/session": 401, "/healthz": 200, "/nowhere": 404} {
		resp, _ := s.does("GET", path, "", status, nil)
		if !strings.Contains(resp.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") || resp.Header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s may be framed: %v", path, resp.Header)
		}
	}
}

// F-API-06: a stream ends with its session; a session in use is renewed.
func TestStream_EndsWithTheSession(t *testing.T) {
	beside(t)
	s := newSite(t, identity.SignInConfig{SessionFor: 2 * time.Second, SessionEnd: 3 * time.Second})
	cookies := s.signsIn(asViewer)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/api/v1/stream?kinds=drone", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.AddCookie(cookies[0])
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	began := time.Now()
	lines := bufio.NewScanner(resp.Body)
	seen := 0
	for lines.Scan() {
		seen++
	}
	if resp.StatusCode != 200 || seen == 0 || lines.Err() != nil || time.Since(began) < time.Second {
		t.Errorf("the stream answers %s and ends after %d lines and %s: %v", resp.Status, seen, time.Since(began), lines.Err())
	}
	s.does("GET", "/api/v1/stream", "", 401, cookies)
}

// F-API-06
func TestAPI_AcceptsTheIdentityAwareProxy(t *testing.T) {
	const audience, header = "/projects/1/apps/fleet", "X-Goog-IAP-JWT-Assertion"
	g := newGuarded(t, httpapi.MetricsOpen, func(g *guarded, access *httpapi.Access) {
		grant := identity.Grant{}
		if err := grant.UnmarshalText([]byte("email=ann@example.org")); err != nil {
			t.Fatal(err)
		}
		var err error
		access.Verifier = nil
		access.IAP, err = identity.NewIAP(identity.Config{Audiences: []string{audience}, Operators: []identity.Grant{grant}, Log: slog.New(slog.DiscardHandler)}, g.issuer.URL+identitytest.KeysPath)
		if err != nil {
			t.Fatal(err)
		}
	})
	s := &site{guarded: g}
	s.order("O1")
	assertion := func(audience string) string {
		return g.token(identitytest.Claims{"iss": identity.IAPIssuer, "aud": audience, "email": "ann@example.org"})
	}
	const hold, body = "/api/v1/orders/O1/hold", `{"reason": "x"}`
	_, text := s.does("GET", "/api/v1/session", "", 200, nil, header, assertion(audience))
	if !strings.Contains(text, `"method":"iap"`) || !strings.Contains(text, `"ann@example.org"`) {
		t.Error(text)
	}
	s.does("GET", "/api/v1/session", "", 401, nil)
	s.does("GET", "/api/v1/session", "", 401, nil, header, assertion("another"))
	s.does("GET", "/api/v1/session", "", 401, nil, "Authorization", "Bearer "+assertion(audience))
	s.does("GET", "/signin", "", 404, nil)
	s.does("POST", hold, body, 403, nil, header, assertion(audience), "Content-Type", "application/json", "Sec-Fetch-Site", "cross-site")
	s.does("POST", hold, body, 200, nil, header, assertion(audience), "Content-Type", "application/json", "Sec-Fetch-Site", "same-origin")
}

// F-API-06: the query of the issuer's page has no secret.
func TestSignIn_SendsNoSecretToTheBrowser(t *testing.T) {
	s := newSite(t, identity.SignInConfig{})
	resp, _ := s.does("GET", "/signin", "", http.StatusSeeOther, nil)
	u, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range u.Query() {
		names = append(names, name)
	}
	slices.Sort(names)
	if want := []string{"client_id", "code_challenge", "code_challenge_method", "nonce", "redirect_uri", "response_type", "scope", "state"}; !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
}
