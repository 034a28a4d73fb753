package firestoretx_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-INT-07: with a key, the secret of a webhook cannot be read in Firestore; a State Manager with
// that key signs with it, also after the key was replaced, and without the key it says what to set.
func TestWebhookSecrets_AreSealed(t *testing.T) {
	t.Parallel()
	clients := emutest.Clients(t)
	store := func(keys ...byte) *firestoretx.Store {
		var list [][]byte
		for _, key := range keys {
			list = append(list, bytes.Repeat([]byte{key}, 32))
		}
		return firestoretx.New(clients.Firestore, firestoretx.Config{Now: time.Now, WebhookKeys: list})
	}
	change := firestoretx.Change{By: "ann", Why: "test"}
	apply := func(s *firestoretx.Store, id domain.WebhookID, secret string) {
		t.Helper()
		reg := domain.WebhookRegistration{Webhook: domain.Webhook{ID: id, URL: "https://hospital.example.org"}}
		if _, _, err := s.ApplyWebhook(t.Context(), reg, secret, change); err != nil {
			t.Fatal(err)
		}
	}
	stored := func(id domain.WebhookID) string {
		t.Helper()
		snap, err := clients.Firestore.Doc(firestoretx.WebhookSecrets + "/" + string(id)).Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(snap.Data())
	}
	has := func(s *firestoretx.Store, id domain.WebhookID, current, previous string) {
		t.Helper()
		if got, err := s.WebhookSecrets(t.Context(), id); err != nil || got.Current != current || got.Previous != previous {
			t.Errorf("webhook %s has %+v, %v; want %s and %s", id, got, err, current, previous)
		}
	}
	apply(store(), "PLAIN", "whsec_plain")
	has(store(1), "PLAIN", "whsec_plain", "")
	apply(store(1), "W", "whsec_first")
	has(store(1), "W", "whsec_first", "")
	if _, err := store(2, 1).RotateWebhook(t.Context(), "W", "whsec_second", change); err != nil {
		t.Fatal(err)
	}
	has(store(2), "W", "whsec_second", "whsec_first")
	if text := stored("W"); strings.Contains(text, "whsec_") || !strings.Contains(text, "sealed1:") {
		t.Errorf("Firestore has %s", text)
	}
	for _, s := range []*firestoretx.Store{store(), store(1)} {
		if _, err := s.WebhookSecrets(t.Context(), "W"); err == nil || !strings.Contains(err.Error(), "--webhook-key") || strings.Contains(err.Error(), "whsec_") {
			t.Errorf("without the key: %v", err)
		}
		if _, err := s.RotateWebhook(t.Context(), "W", "whsec_third", change); err == nil {
			t.Error("a secret that cannot be opened was replaced")
		}
	}
	// What touches no secret needs no key.
	if _, err := store().ReplayDeliveries(t.Context(), "W", change); err != nil {
		t.Errorf("replay without the key: %v", err)
	}
	moved := domain.WebhookRegistration{Webhook: domain.Webhook{ID: "W", URL: "https://clinic.example.org"}}
	if done, _, err := store().ApplyWebhook(t.Context(), moved, "", change); err != nil || done.Action != domain.PlaceChanged {
		t.Errorf("another URL without the key: %+v, %v", done, err)
	}
	has(store(2), "W", "whsec_second", "whsec_first")
	// What is sealed for one webhook is worth nothing in the place of another's.
	data, err := clients.Firestore.Doc(firestoretx.WebhookSecrets + "/W").Get(t.Context())
	if err == nil {
		_, err = clients.Firestore.Doc(firestoretx.WebhookSecrets+"/OTHER").Set(t.Context(), data.Data())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store(2).WebhookSecrets(t.Context(), "OTHER"); err == nil {
		t.Error("a secret was opened for another webhook")
	}
}
