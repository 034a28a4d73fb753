package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/webhooks"
	"github.com/dronefleet/dronefleet/domain"
)

// NewSecrets are the secrets that a command has made, by webhook. They can be read nowhere else.
type NewSecrets map[domain.WebhookID]string

// ApplyWebhooks creates and changes webhooks, as ApplyDepots does with depots. A new one without a
// secret gets one.
//
// Cost: see firestoretx.Store.ApplyWebhook for each.
func (c Commands) ApplyWebhooks(ctx context.Context, list []domain.WebhookRegistration, reason string, dryRun bool) ([]domain.PlaceChange, NewSecrets, error) {
	made := NewSecrets{}
	done, err := applyAll(ctx, c, list, reason, dryRun, func(ctx context.Context, w domain.WebhookRegistration, change firestoretx.Change) (domain.PlaceChange, error) {
		secret := webhooks.NewSecret()
		done, used, err := c.Store.ApplyWebhook(ctx, w, secret, change)
		if used && err == nil && !dryRun {
			made[w.ID] = secret
		}
		return done, err
	}, func(w domain.WebhookRegistration) string { return string(w.ID) })
	return done, made, err
}

// RotateWebhook gives a webhook a new secret. The old one signs too for a while.
//
// Cost: see firestoretx.Store.RotateWebhook.
func (c Commands) RotateWebhook(ctx context.Context, id domain.WebhookID, reason string, dryRun bool) ([]domain.PlaceChange, NewSecrets, error) {
	secret := webhooks.NewSecret()
	done, err := deletePlace(ctx, c, domain.PlaceWebhook, id, reason, dryRun, func(ctx context.Context, id domain.WebhookID, change firestoretx.Change) (domain.PlaceChange, error) {
		return c.Store.RotateWebhook(ctx, id, secret, change)
	})
	if err != nil {
		return nil, nil, err
	}
	made := NewSecrets{}
	if !dryRun {
		made[id] = secret
	}
	return []domain.PlaceChange{done}, made, nil
}

// DeleteWebhook deletes a webhook. What waits for it is not sent.
//
// Cost: see firestoretx.Store.DeleteWebhook.
func (c Commands) DeleteWebhook(ctx context.Context, id domain.WebhookID, reason string, dryRun bool) (domain.PlaceChange, error) {
	return deletePlace(ctx, c, domain.PlaceWebhook, id, reason, dryRun, c.Store.DeleteWebhook)
}

// ReplayWebhook has the dead letters of a webhook sent again.
//
// Cost: see firestoretx.Store.ReplayDeliveries.
func (c Commands) ReplayWebhook(ctx context.Context, id domain.WebhookID, reason string, dryRun bool) (domain.PlaceChange, error) {
	return deletePlace(ctx, c, domain.PlaceWebhook, id, reason, dryRun, c.Store.ReplayDeliveries)
}

// PrintWebhookChanges prints what a command has done, or would do, to webhooks, and the secrets
// that it has made.
func (d *Desk) PrintWebhookChanges(done []domain.PlaceChange, made NewSecrets, dryRun bool, failure error) error {
	if d.JSON {
		return errors.Join(failure, d.printJSON(struct {
			PlaceChanges
			Secrets NewSecrets `json:"secrets,omitempty"`
		}{PlaceChangesOf(done, dryRun, failure), made}))
	}
	err := d.PrintPlaceChanges(done, dryRun, failure)
	for _, id := range slices.Sorted(maps.Keys(made)) {
		d.say("The secret of webhook %s is %s; it is shown only this once.", id, made[id])
	}
	return err
}

// ListWebhooks prints one page of webhooks, with how many messages wait and were given up.
func (d *Desk) ListWebhooks(ctx context.Context, page firestoretx.Page) error {
	l, err := d.Store.ListWebhooks(ctx, page)
	if err != nil {
		return err
	}
	counts := map[domain.WebhookID]string{}
	if !d.JSON {
		for _, w := range l.Items {
			for _, status := range []domain.DeliveryStatus{domain.DeliveryWaiting, domain.DeliveryDeadLetter} {
				n, err := d.Store.CountDeliveries(ctx, firestoretx.DeliveryFilter{Webhook: w.ID, Status: status})
				if err != nil {
					return err
				}
				counts[w.ID] += fmt.Sprint(n) + " "
			}
		}
	}
	header := []string{"WEBHOOK", "URL", "KINDS", "REQUESTER", "WAITING", "DEAD LETTERS"}
	return printPage(d, "webhooks", noPlaces("webhooks"), l, entity.OfWebhook, header, func(w domain.Webhook) []string {
		kinds := make([]string, len(w.Kinds))
		for i, kind := range w.Kinds {
			kinds[i] = string(kind)
		}
		return append([]string{string(w.ID), w.URL, cmp.Or(strings.Join(kinds, " "), "all"), cmp.Or(w.RequesterID, "all")}, strings.Fields(counts[w.ID])...)
	})
}

// ListDeliveries prints one page of messages to webhooks.
func (d *Desk) ListDeliveries(ctx context.Context, filter firestoretx.DeliveryFilter, page firestoretx.Page) error {
	l, err := d.Store.ListDeliveries(ctx, filter, page)
	if err != nil {
		return err
	}
	header := []string{"WEBHOOK", "KIND", "ORDER", "EVENT AT", "STATUS", "FAILED", "NEXT ATTEMPT", "LAST ERROR"}
	return printPage(d, "webhookDeliveries", "No such messages.", l, entity.OfWebhookDelivery, header, func(x domain.WebhookDelivery) []string {
		next := ""
		if x.Status == domain.DeliveryWaiting {
			next = d.ago(x.NextAttemptAt)
		}
		return []string{string(x.WebhookID), string(x.Kind), string(x.OrderID), stamp(x.CommittedAt), string(x.Status), fmt.Sprint(x.Attempts), next, x.LastError}
	})
}

// TestWebhook sends a message of the kind webhook.test from this process, once, and prints how long
// it took. Any answer but a success is the error.
func (d *Desk) TestWebhook(ctx context.Context, client *webhooks.Client, id domain.WebhookID) error {
	w, err := d.Store.Webhook(ctx, id)
	if err != nil {
		return err
	}
	secrets, err := d.Store.WebhookSecrets(ctx, id)
	if err != nil {
		return err
	}
	began := time.Now()
	body, err := webhooks.Message{Type: domain.WebhookTest, Timestamp: began.UTC()}.Body()
	if err == nil {
		err = client.Send(ctx, w.URL, secrets, webhooks.NewTestID(), began, body)
	}
	if err != nil {
		return fmt.Errorf("webhook %s: %w", id, err)
	}
	took := time.Since(began).Round(time.Millisecond)
	if d.JSON {
		return d.printJSON(struct {
			ID     domain.WebhookID `json:"id"`
			TookMs int64            `json:"tookMs"`
		}{id, took.Milliseconds()})
	}
	d.say("Webhook %s took the message in %s.", id, took)
	return nil
}
