package identitytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

// Audience is the audience of Token's tokens.
const Audience = "dronefleet"

// Key signs tokens.
type Key struct {
	ID        string
	Algorithm string
	Private   crypto.Signer
}

// RSA makes a key of algorithm RS256.
func RSA(t testing.TB, id string) Key { return rsaKey(t, id, 2048) }

// WeakRSA makes a key of algorithm RS256 that is shorter than RFC 7518 allows.
func WeakRSA(t testing.TB, id string) Key { return rsaKey(t, id, 1024) }

func rsaKey(t testing.TB, id string, bits int) Key {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return Key{id, oidc.RS256, private}
}

// EC makes a key of algorithm ES256.
func EC(t testing.TB, id string) Key {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Key{id, oidc.ES256, private}
}

// Issuer is the server. Its methods may be called while it serves.
type Issuer struct {
	URL string

	server   *httptest.Server
	mu       sync.Mutex
	keys     []Key
	others   []json.RawMessage
	browsers *Browsers
	down     bool
	asked    map[string]int
}

// Start starts an issuer that ends with the test.
func Start(t testing.TB, keys ...Key) *Issuer {
	t.Helper()
	i := &Issuer{keys: keys, asked: map[string]int{}}
	i.server = httptest.NewServer(i)
	t.Cleanup(i.server.Close)
	i.URL = i.server.URL
	return i
}

// Rotate replaces the issuer's keys.
func (i *Issuer) Rotate(keys ...Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = keys
}

// Also sets further entries of the key set, as they are.
func (i *Issuer) Also(others ...json.RawMessage) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.others = others
}

// SetDown makes the issuer answer every request with an error, or work again.
func (i *Issuer) SetDown(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

// Asked is how often a path was requested.
func (i *Issuer) Asked(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[path]
}

// KeysPath is the path of the key set.
const KeysPath = "/keys"

// ServeHTTP implements http.Handler.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.asked[r.URL.Path]++
	down, keys, others := i.down, slices.Clone(i.keys), i.others
	i.mu.Unlock()
	if down {
		http.Error(w, "down", http.StatusBadGateway)
		return
	}
	switch r.URL.Path {
	case "/auth":
		i.authorize(w, r)
		return
	case "/token":
		i.redeem(w, r)
		return
	}
	s := oidctest.Server{Algorithms: []string{oidc.RS256, oidc.ES256}}
	for _, k := range keys {
		s.PublicKeys = append(s.PublicKeys, oidctest.PublicKey{PublicKey: k.Private.Public(), KeyID: k.ID, Algorithm: k.Algorithm})
	}
	s.SetIssuer(i.URL)
	if r.URL.Path != KeysPath {
		s.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, r)
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &set); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	set.Keys = append(set.Keys, others...)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(set) // the client reports what it misses
}

// Claims are a token's claims.
type Claims map[string]any

// Token signs a token of the issuer for Audience that expires an hour after now. A
// claim is added or replaces the token's own; nil removes it.
func (i *Issuer) Token(t testing.TB, k Key, now time.Time, claims Claims) string {
	t.Helper()
	all := Claims{"iss": i.URL, "aud": Audience, "sub": "subject-1", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return oidctest.SignIDToken(k.Private, k.ID, k.Algorithm, string(text))
}
