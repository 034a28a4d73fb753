package identitytest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
)

// The client that SignIn registers.
const (
	ClientID     = "console"
	ClientSecret = "mellon&friend"
)

// Browsers is what the issuer does with browsers that sign in.
type Browsers struct {
	// IDToken makes the ID token for a nonce.
	IDToken func(nonce string) string
	// Redirect is the redirect URI that is registered.
	Redirect string

	codes map[string]grantedCode
}

type grantedCode struct{ nonce, challenge string }

// SignIn makes the issuer sign browsers in.
func (i *Issuer) SignIn(b Browsers) {
	i.mu.Lock()
	defer i.mu.Unlock()
	b.codes = map[string]grantedCode{}
	i.browsers = &b
}

// authorize answers at the authorization endpoint: it knows the user already. It
// requires PKCE.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	q, b := r.URL.Query(), i.browsers
	if b == nil || q.Get("client_id") != ClientID || q.Get("redirect_uri") != b.Redirect {
		http.Error(w, "unknown client", http.StatusBadRequest)
		return
	}
	answer := url.Values{"state": q["state"], "iss": {i.URL}}
	if q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("nonce") == "" || q.Get("state") == "" {
		answer.Set("error", "invalid_request")
		answer.Set("error_description", "PKCE, state and nonce are required")
	} else {
		code := rand.Text()
		b.codes[code] = grantedCode{q.Get("nonce"), q.Get("code_challenge")}
		answer.Set("code", code)
	}
	http.Redirect(w, r, b.Redirect+"?"+answer.Encode(), http.StatusFound)
}

// redeem answers at the token endpoint. A code is good once.
func (i *Issuer) redeem(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	refuse := func(code string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": code}) // the client reports what it misses
	}
	id, secret, _ := r.BasicAuth()
	if secret, _ = url.QueryUnescape(secret); i.browsers == nil || id != ClientID || secret != ClientSecret {
		refuse("invalid_client")
		return
	}
	b := i.browsers
	code, granted := b.codes[r.PostFormValue("code")]
	delete(b.codes, r.PostFormValue("code"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !granted || base64.RawURLEncoding.EncodeToString(sum[:]) != code.challenge || r.PostFormValue("redirect_uri") != b.Redirect {
		refuse("invalid_grant")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "secret-access", "token_type": "Bearer", "expires_in": 60, "id_token": b.IDToken(code.nonce)})
}
