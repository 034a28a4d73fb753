package identity

import (
	"bytes"
	"context"
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

// How long the issuer's keys count.
const (
	keysFreshFor = 5 * time.Minute  // then they are fetched again, which finds withdrawn ones
	keysUsedFor  = time.Hour        // if they cannot be
	retryAfter   = 10 * time.Second // the issuer is asked no more often, whatever tokens come
)

// maxKeysBytes is far more than any key set takes.
const maxKeysBytes = 1 << 20

// keys is the issuer's key set. The library caches it for ever and fetches it
// anew for each unknown key; keys bounds both: it replaces the library's set
// when that is old, and stands between the set and the network.
type keys struct {
	url    string
	client *http.Client
	now    func() time.Time
	log    *slog.Logger

	mu    sync.Mutex
	set   *oidc.RemoteKeySet
	since time.Time // age of set

	fetching  sync.Mutex // held while asking, so that one asks for all
	body      []byte     // the last answer
	fetchedAt time.Time
	triedAt   time.Time
	failure   error // of the last try
}

// VerifySignature implements oidc.KeySet.
func (k *keys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.current().VerifySignature(ctx, token)
	if err == nil {
		return payload, nil
	}
	// The verifier keeps only the text of an error, so a failure of the issuer
	// is noted where its caller looks for it. While the issuer is silent, an
	// unknown key may as well be one that it has introduced since.
	if failure := k.lastFailure(); failure != nil {
		note(ctx, failure)
	}
	return nil, err
}

// current is the set of keys, replaced when it is old.
func (k *keys) current() *oidc.RemoteKeySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.now(); k.set == nil || now.Sub(k.since) >= keysFreshFor {
		ctx := oidc.ClientContext(context.Background(), &http.Client{Transport: k})
		k.set, k.since = oidc.NewRemoteKeySet(ctx, k.url), now
	}
	return k.set
}

func (k *keys) lastFailure() error {
	k.fetching.Lock()
	defer k.fetching.Unlock()
	return k.failure
}

// RoundTrip implements http.RoundTripper for the library's set: it answers with
// the issuer's keys, fetched now unless they just were.
func (k *keys) RoundTrip(r *http.Request) (*http.Response, error) {
	k.fetching.Lock()
	defer k.fetching.Unlock()
	now := k.now()
	if k.triedAt.IsZero() || now.Sub(k.triedAt) >= retryAfter {
		k.triedAt = now
		body, err := k.fetch(r)
		if k.failure = err; err == nil {
			k.body, k.fetchedAt = body, now
		} else {
			k.log.Warn("the issuer's keys cannot be fetched", slog.String("url", k.url), slog.Any("err", err))
		}
	}
	if k.body == nil || k.failure != nil && now.Sub(k.fetchedAt) >= keysUsedFor {
		return nil, k.failure
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(k.body)), Request: r,
	}, nil
}

func (k *keys) fetch(r *http.Request) ([]byte, error) {
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
	return k.readable(body)
}

// readable leaves out the keys of a set that the library cannot read, such as
// those of a curve or with a certificate that Go does not take (RFC 7517, section
// 5). For one of them it would refuse the whole set, and all tokens with it.
func (k *keys) readable(body []byte) ([]byte, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil || len(set.Keys) == 0 {
		return nil, errors.New(k.url + " answers with no key set")
	}
	var unread error
	set.Keys = slices.DeleteFunc(set.Keys, func(text json.RawMessage) bool {
		var key jose.JSONWebKey
		err := json.Unmarshal(text, &key)
		if err == nil {
			return false
		}
		unread = err
		if !errors.Is(err, jose.ErrUnsupportedKeyType) { // of a kind that is not for us
			k.log.Warn("a key of the issuer cannot be read; tokens signed with it are refused", slog.String("url", k.url), slog.Any("err", err))
		}
		return true
	})
	if len(set.Keys) == 0 {
		return nil, fmt.Errorf("%s answers with no key that can be read: %w", k.url, unread)
	}
	return json.Marshal(set)
}

// failureKey is where a verification keeps why the issuer could not be asked.
type failureKey struct{}

func note(ctx context.Context, failure error) {
	if kept, ok := ctx.Value(failureKey{}).(*error); ok {
		*kept = failure
	}
}
