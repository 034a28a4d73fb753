package policy

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// RevokeKey ends an API key; known is nil if there is none. The first revocation stays.
func RevokeKey(known *domain.APIKey, id, by, why string, now time.Time) (domain.APIKey, error) {
	if known == nil {
		return domain.APIKey{}, reject(ReasonNotFound, id, "no such key")
	}
	k := *known
	if !k.RevokedAt.IsZero() {
		return k, reject(ReasonUnchanged, id, "revoked by %s at %s", k.RevokedBy, k.RevokedAt.UTC().Format(time.RFC3339))
	}
	k.RevokedAt, k.RevokedBy, k.RevokedWhy = now, by, why
	return k, nil
}
