package identity_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/internal/identity"
)

// F-API-01
func TestPrepare_RefusesUntrustworthyDiscovery(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler func(url string) http.HandlerFunc
		want    string
	}{
		{"keys at an unprotected address", func(url string) http.HandlerFunc {
			return document(map[string]any{"issuer": url, "jwks_uri": "http://keys.example.org/keys"})
		}, "not an https URL"},
		{"no keys", func(url string) http.HandlerFunc { return document(map[string]any{"issuer": url}) }, "not an https URL"},
		{"another issuer", func(string) http.HandlerFunc {
			return document(map[string]any{"issuer": "https://accounts.example.org", "jwks_uri": "https://accounts.example.org/keys"})
		}, "did not match"},
		{"a redirect to an unprotected address", func(string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://accounts.example.org/", http.StatusFound)
			}
		}, "not followed"},
		{"a redirect loop", func(string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }
		}, "not followed"},
		{"no document", func(string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }
		}, "discovery"},
	} {
		var handler http.HandlerFunc
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler(w, r) }))
		handler = c.handler(server.URL)
		v, err := identity.New(identity.Config{Issuer: server.URL, Audiences: []string{"a"}, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		err = v.Prepare(t.Context())
		var u *identity.UnavailableError
		if !errors.As(err, &u) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
		server.Close()
	}
}

// document answers with a discovery document.
func document(fields map[string]any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(fields) // the client reports what it misses
	}
}

// Only the issuer's tokens are valid, whatever is sent; everything else is a
// *TokenError.
func FuzzIdentify(f *testing.F) {
	g := newGate(f, grants(f, "*"), nil)
	good := g.token(nil)
	parts := strings.Split(good, ".")
	for _, token := range []string{
		"", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", parts[0] + "." + parts[1] + ".", parts[0] + ".e30." + parts[2],
		`{"payload": "` + parts[1] + `", "protected": "` + parts[0] + `", "signature": "` + parts[2] + `"}`,
		`{"payload": "e30", "signatures": [{"signature": ""}, {"signature": ""}]}`,
	} {
		f.Add(token)
	}
	g.known("the issuer's", good)
	f.Fuzz(func(t *testing.T, token string) {
		_, err := g.Identify(t.Context(), token)
		var refused *identity.TokenError
		if !errors.As(err, &refused) {
			t.Errorf("%q: error %v", token, err)
		}
	})
}
