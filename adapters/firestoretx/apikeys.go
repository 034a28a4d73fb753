package firestoretx

import (
	"context"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// CreateKey stores a new API key. Like its revocation, it never expires, for the audit.
//
// Cost: 1 RPC, 1 write.
func (s *Store) CreateKey(ctx context.Context, k domain.APIKey) error {
	_, err := s.doc(Keys, k.Hash).Create(ctx, keyCodec.encode(k))
	return wrap(err, "key %s", k.Hash)
}

// Key reads an API key and the version of its document; the error wraps ErrNotFound if there is
// none.
//
// Cost: 1 RPC, 1 read.
func (s *Store) Key(ctx context.Context, hash string) (k domain.APIKey, version time.Time, err error) {
	k, err = one(ctx, s.doc(Keys, hash), func(snap *firestore.DocumentSnapshot) (domain.APIKey, error) {
		version = snap.UpdateTime
		return keyCodec.decode(snap)
	})
	return k, version, err
}

// ListKeys lists API keys.
func (s *Store) ListKeys(ctx context.Context, page Page) (Listing[domain.APIKey], error) {
	return list(ctx, s, Keys, page, keyCodec.decode)
}

// RevokeKey ends an API key, by a person, and returns it. If it was revoked before, it returns a
// *policy.Rejection too.
//
// Cost: 3 RPCs, 1 read, 1 write.
func (s *Store) RevokeKey(ctx context.Context, hash, by, why string) (now domain.APIKey, err error) {
	err = s.transact(By(ctx, by), nil, func(t *txn) error {
		ref := s.doc(Keys, hash)
		snaps, err := t.get(ref)
		if err != nil {
			return err
		}
		var known *domain.APIKey
		if snaps[0].Exists() {
			k, err := keyCodec.decode(snaps[0])
			if err != nil {
				return err
			}
			known = &k
		}
		if now, err = policy.RevokeKey(known, hash, by, why, t.now); err != nil {
			return err
		}
		return t.Update(ref, keyCodec.updates(*known, now))
	})
	return now, wrap(err, "key %s", hash)
}

// RevokedKeys lists the API keys that were revoked since a time.
//
// Cost: 1 RPC; a read for each key, at least one.
func (s *Store) RevokedKeys(ctx context.Context, since time.Time) ([]domain.APIKey, error) {
	keys, err := collect(s.client.Collection(Keys).Where("revokedAt", ">=", since).Documents(ctx), keyCodec.decode)
	return keys, wrap(err, "revoked keys")
}

// RecordKeyUse stores when a key was used, if its document still has the version that was read. Of
// many processes that read the same version, one writes.
//
// Cost: 1 RPC, at most 1 write.
func (s *Store) RecordKeyUse(ctx context.Context, hash string, version, at time.Time) error {
	_, err := s.doc(Keys, hash).Update(ctx, []firestore.Update{{Path: keyLastUsed, Value: at}}, firestore.LastUpdateTime(version))
	switch status.Code(err) {
	case codes.FailedPrecondition, codes.NotFound, codes.Aborted: // another process was faster
		return nil
	}
	return wrap(err, "use of key %s", hash)
}
