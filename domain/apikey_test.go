package domain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// F-INT-06
func TestAPIKey_HasANameForTheAudit(t *testing.T) {
	hash := strings.Repeat("3f9a0c1b", 8)
	for subject, want := range map[string]string{
		"": "key 3f9a0c1b3f9a", "HOSPITAL-7": "key 3f9a0c1b3f9a of HOSPITAL-7",
		strings.Repeat("é", 200): "key 3f9a0c1b3f9a of " + strings.Repeat("é", domain.MaxActorRunes-21) + "…",
	} {
		if got := (domain.APIKey{Hash: hash, Subject: subject}).Name(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for hash, ok := range map[string]bool{hash: true, strings.ToUpper(hash): false, hash[1:]: false, "": false, hash + "0": false} {
		if err := domain.CheckKeyHash(hash); (err == nil) != ok {
			t.Errorf("%s: %v", hash, err)
		}
	}
}

// F-INT-06: a key ends when it is revoked or expires, and lasts at most five years.
func TestAPIKey_Ends(t *testing.T) {
	now := time.Date(2026, 11, 27, 16, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		expires, revoked time.Time
		want             string
	}{
		{now.Add(1), time.Time{}, ""},
		{now, time.Time{}, "it expired 2026-11-27T16:00:00Z"},
		{now.Add(time.Hour), now.Add(-time.Hour), "it was revoked 2026-11-27T15:00:00Z"},
		{now.Add(time.Hour), now.Add(time.Hour), "it was revoked 2026-11-27T17:00:00Z"}, // by another clock
	} {
		if got := (domain.APIKey{ExpiresAt: c.expires, RevokedAt: c.revoked}).Ended(now); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	for expires, ok := range map[time.Time]bool{now: false, now.Add(time.Second): true, now.Add(domain.MaxKeyLifetime): true, now.Add(domain.MaxKeyLifetime + 1): false} {
		if err := domain.CheckKeyLifetime(expires, now); (err == nil) != ok {
			t.Errorf("%s: %v", expires, err)
		}
	}
}
