package identity

import (
	"bytes"
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// How long the issuer's keys are used.
const (
	keysFreshFor = 5 * time.Minute  // after that they are fetched again, which drops withdrawn keys
	keysUsedFor  = time.Hour        // while the issuer does not answer
	retryAfter   = 10 * time.Second // at least this long between two fetches, whatever tokens come
)

// maxKeysBytes is far more than any key set needs.
const maxKeysBytes = 1 << 20

// minRSABits is the least that RFC 7518, section 3.3, allows for signatures.
const minRSABits = 2048

// keySet is the library's remote key set with the bounds that it lacks. The library
// keeps keys for ever, fetches them for every token with an unknown key id, reads
// answers of any size, and drops a whole set for one key that it cannot decode.
// keySet replaces the library's set when it is old and stands between it and the
// network.
type keySet struct {
	url    string
	client *http.Client
	now    func() time.Time
	log    *slog.Logger

	mu      sync.Mutex
	library *oidc.RemoteKeySet
	since   time.Time // when library was made

	fetching  sync.Mutex // held during a fetch
	body      []byte     // the last good answer
	fetchedAt time.Time
	triedAt   time.Time
	failure   error // of the last fetch
}

// VerifySignature implements oidc.KeySet.
func (k *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.current().VerifySignature(ctx, token)
	if err != nil {
		// While the issuer does not answer, an unknown key may be one that it has
		// introduced since. The verifier keeps only the text of an error, so the caller
		// is told through the context.
		if outage, ok := ctx.Value(outageKey{}).(*error); ok {
			*outage = k.lastFailure()
		}
	}
	return payload, err
}

// outageKey is where a caller of the verifier learns why the issuer did not answer.
type outageKey struct{}

// current is the library's set, renewed if it is old.
func (k *keySet) current() *oidc.RemoteKeySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.now(); k.library == nil || now.Sub(k.since) >= keysFreshFor {
		ctx := oidc.ClientContext(context.Background(), &http.Client{Transport: k})
		k.library, k.since = oidc.NewRemoteKeySet(ctx, k.url), now
	}
	return k.library
}

func (k *keySet) lastFailure() error {
	k.fetching.Lock()
	defer k.fetching.Unlock()
	return k.failure
}

// RoundTrip implements http.RoundTripper for the library's set. It answers with the
// keys of the last fetch, or fetches them if that was a while ago.
func (k *keySet) RoundTrip(r *http.Request) (*http.Response, error) {
	k.fetching.Lock()
	defer k.fetching.Unlock()
	if now := k.now(); k.triedAt.IsZero() || now.Sub(k.triedAt) >= retryAfter {
		k.triedAt = now
		body, err := k.fetch(r)
		if k.failure = err; err == nil {
			k.body, k.fetchedAt = body, now
		} else {
			k.log.Warn("the issuer's keys cannot be fetched", slog.String("url", k.url), slog.Any("err", err))
		}
	}
	if k.body == nil || k.failure != nil && k.now().Sub(k.fetchedAt) >= keysUsedFor {
		return nil, k.failure
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(k.body)), Request: r}, nil
}

// fetch asks the issuer for its keys.
func (k *keySet) fetch(r *http.Request) ([]byte, error) {
	resp, err := k.client.Do(r.Clone(r.Context()))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxKeysBytes+1))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answers %s", k.url, resp.Status)
	case len(body) > maxKeysBytes:
		return nil, fmt.Errorf("%s answers with more than %d bytes", k.url, maxKeysBytes)
	}
	return k.usable(body)
}

// usable drops the keys that cannot be used from a key set (RFC 7517, section 5).
func (k *keySet) usable(body []byte) ([]byte, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil || len(set.Keys) == 0 {
		return nil, fmt.Errorf("%s does not answer with a key set", k.url)
	}
	var unusable error
	set.Keys = slices.DeleteFunc(set.Keys, func(text json.RawMessage) bool {
		err := checkKey(text)
		if err == nil {
			return false
		}
		unusable = err
		if !errors.Is(err, jose.ErrUnsupportedKeyType) { // not meant for us
			k.log.Warn("a key of the issuer cannot be used; its tokens are rejected", slog.String("url", k.url), slog.Any("err", err))
		}
		return true
	})
	if len(set.Keys) == 0 {
		return nil, fmt.Errorf("%s answers with no usable key: %w", k.url, unusable)
	}
	return json.Marshal(set)
}

// checkKey returns why a key cannot be used.
func checkKey(text []byte) error {
	var key jose.JSONWebKey
	if err := json.Unmarshal(text, &key); err != nil {
		return err
	}
	if public, is := key.Key.(*rsa.PublicKey); is && public.N.BitLen() < minRSABits {
		return fmt.Errorf("key %.64q is an RSA key of %d bits; at least %d are required", key.KeyID, public.N.BitLen(), minRSABits)
	}
	return nil
}
