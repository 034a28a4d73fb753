package domain

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// WebhookID identifies a webhook.
type WebhookID string

// WebhookKind says what a webhook's message tells.
type WebhookKind string

const (
	WebhookAccepted  WebhookKind = "order.accepted"  // the order is known and waits for a drone
	WebhookAssigned  WebhookKind = "order.assigned"  // a drone was given the order
	WebhookPickedUp  WebhookKind = "order.picked_up" // the parcel is aboard
	WebhookDelivered WebhookKind = "order.delivered"
	WebhookCancelled WebhookKind = "order.cancelled"
	WebhookWaiting   WebhookKind = "order.waiting" // the order has lost its drone, is held, or is late without one
	WebhookRefused   WebhookKind = "order.refused" // a change of the order was refused

	WebhookTest WebhookKind = "webhook.test" // an operator tries the webhook
)

// WebhookKinds are those that a webhook can be asked for.
var WebhookKinds = []WebhookKind{
	WebhookAccepted, WebhookAssigned, WebhookPickedUp, WebhookDelivered, WebhookCancelled, WebhookWaiting, WebhookRefused,
}

// Webhook is an address of another system that is told what becomes of orders.
type Webhook struct {
	ID          WebhookID
	URL         string
	Kinds       []WebhookKind // none stands for every kind
	RequesterID string        // whose orders; empty for everybody's

	CreatedAt  time.Time // by Firestore's clock; earlier events are not sent
	SecretsAt  time.Time // when its secrets were last changed
	ReplayedAt time.Time // when dead letters were last replayed
}

// Wants reports whether the webhook is told of such an event.
func (w Webhook) Wants(kind WebhookKind, requester string, committed time.Time) bool {
	return committed.After(w.CreatedAt) && (len(w.Kinds) == 0 || slices.Contains(w.Kinds, kind)) && (w.RequesterID == "" || w.RequesterID == requester)
}

// WebhookRegistration is what an operator states about a webhook.
type WebhookRegistration struct {
	Webhook
	Secret string // empty keeps the one that the webhook has
}

// maxWebhookURL bounds an address, in bytes.
const maxWebhookURL = 2048

// Check lists what is wrong with a registration.
func (r WebhookRegistration) Check() []FieldProblem {
	var found problems
	found.id("id", string(r.ID), true)
	if err := checkWebhookURL(r.URL); err != nil {
		found.add("url", "%s", err)
	}
	for i, kind := range r.Kinds {
		switch {
		case !slices.Contains(WebhookKinds, kind):
			found.add("kinds", "has %.64q; give some of %s", kind, joined(WebhookKinds))
		case slices.Index(r.Kinds, kind) != i:
			found.add("kinds", "has %s twice; give it once", kind)
		}
	}
	found.id("requesterId", r.RequesterID, false)
	if r.Secret != "" {
		if _, err := WebhookKey(r.Secret); err != nil {
			found.add("secret", "%s", err)
		}
	}
	return found
}

func checkWebhookURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return errors.New("is missing; give an address such as https://hospital.example/hooks")
	case len(text) > maxWebhookURL:
		return fmt.Errorf("has %d bytes; give at most %d", len(text), maxWebhookURL)
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return errors.New("is not an address; give one such as https://hospital.example/hooks")
	case u.User != nil:
		return errors.New("has a user name or a password; leave it out, the signature proves who sends")
	case u.Fragment != "":
		return errors.New("has a fragment, which is never sent; leave out what follows #")
	case u.Scheme != "https" && (u.Scheme != "http" || !IsLoopbackHost(u.Hostname())):
		return errors.New("is not https; give https://, or http:// to this machine")
	}
	return nil
}

// IsLoopbackHost reports whether a host of an address is this machine by its very name.
func IsLoopbackHost(host string) bool {
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.Unmap().IsLoopback()
}

// Secrets are written as the Standard Webhooks specification has them.
const (
	webhookSecretPrefix = "whsec_"
	minWebhookKey       = 24
	maxWebhookKey       = 64
)

// WebhookKey is the key of a secret.
func WebhookKey(secret string) ([]byte, error) {
	text, prefixed := strings.CutPrefix(secret, webhookSecretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	if !prefixed || err != nil || len(key) < minWebhookKey || len(key) > maxWebhookKey {
		return nil, fmt.Errorf("is not a secret; give %s and %d to %d bytes in base64, or leave it out to have one made", webhookSecretPrefix, minWebhookKey, maxWebhookKey)
	}
	return key, nil
}

// WebhookSecretOf writes a key as a secret.
func WebhookSecretOf(key []byte) string {
	return webhookSecretPrefix + base64.StdEncoding.EncodeToString(key)
}

// WebhookSecrets are what a webhook's messages are signed with.
type WebhookSecrets struct {
	Current       string
	Previous      string // signs too until PreviousUntil
	PreviousUntil time.Time
}

// WebhookOverlap is how long an old secret signs beside the new one.
const WebhookOverlap = 24 * time.Hour

// Replaced are the secrets once another one has replaced the current one.
func (s WebhookSecrets) Replaced(secret string, now time.Time) WebhookSecrets {
	return WebhookSecrets{Current: secret, Previous: s.Current, PreviousUntil: now.Add(WebhookOverlap)}
}

// DeliveryStatus says what became of a message to a webhook.
type DeliveryStatus string

const (
	DeliveryWaiting    DeliveryStatus = "WAITING"     // it will be sent, or sent again
	DeliveryDelivered  DeliveryStatus = "DELIVERED"   // the receiver has answered with success
	DeliveryDeadLetter DeliveryStatus = "DEAD_LETTER" // given up after a day; it can be replayed
)

// DeliveryStatuses lists every status.
var DeliveryStatuses = []DeliveryStatus{DeliveryWaiting, DeliveryDelivered, DeliveryDeadLetter}

// WebhookDelivery is one message to one webhook.
type WebhookDelivery struct {
	ID          string // orders the messages of a webhook by their events' commits; see WebhookDeliveryID
	WebhookID   WebhookID
	EventID     string // of the event's document; the message's webhook-id
	Kind        WebhookKind
	OrderID     OrderID
	RequesterID string
	Body        string
	CommittedAt time.Time // when the event was

	Status         DeliveryStatus
	Attempts       int // that failed since it waits
	FirstAttemptAt time.Time
	NextAttemptAt  time.Time
	LastError      string
	EndedAt        time.Time
}

// WebhookDeliveryID names the message about an event to a webhook.
func WebhookDeliveryID(webhook WebhookID, committed time.Time, event string) string {
	return webhookDeliveryPrefix(webhook, committed) + event
}

// webhookDeliveryPrefix is what the ids of a moment's messages begin with.
func webhookDeliveryPrefix(webhook WebhookID, committed time.Time) string {
	return fmt.Sprintf("%s-%016d-", webhook, committed.UnixMicro())
}

// FirstWebhookDeliveryID comes before the id of every message of a webhook.
func FirstWebhookDeliveryID(w Webhook) string { return webhookDeliveryPrefix(w.ID, w.CreatedAt) }
