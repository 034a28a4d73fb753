package operator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/webhooks"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// F-INT-07: a secret is shown once, when it is made, and is in no list and no record. Applying a file
// again writes nothing, and a dry run neither.
func TestDesk_AppliesRotatesAndDeletesWebhooks(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	reg := domain.WebhookRegistration{Webhook: domain.Webhook{ID: "W1", URL: "https://a.example/in", Kinds: []domain.WebhookKind{domain.WebhookDelivered}, RequesterID: "H1"}}
	apply := func(reg domain.WebhookRegistration, dryRun bool) string {
		t.Helper()
		done, made, err := o.desk.ApplyWebhooks(ctx, []domain.WebhookRegistration{reg}, "test", dryRun)
		return o.says(o.desk.PrintWebhookChanges(done, made, dryRun, err))
	}
	o.expect(o.says(o.desk.ListWebhooks(ctx, firestoretx.Page{})), `No webhooks yet; "webhooks apply -f FILE" creates them.`)
	if text := apply(reg, true); strings.Contains(text, "whsec_") {
		t.Errorf("a dry run shows a secret: %s", text)
	}
	if _, err := o.desk.Store.Webhook(ctx, "W1"); err == nil {
		t.Fatal("a dry run creates a webhook")
	}
	text := apply(reg, false)
	o.expect(text, "webhook W1: new", `url: none -> "https://a.example/in"`, "1 changed", "The secret of webhook W1 is whsec_", "; it is shown only this once.")
	_, secret, _ := strings.Cut(text, "The secret of webhook W1 is ")
	secret, _, _ = strings.Cut(secret, ";")
	o.expect(apply(reg, false), "webhook W1: unchanged", "0 changed, 1 unchanged.")
	reg.RequesterID = ""
	o.expect(apply(reg, false), "webhook W1: changed", `requesterId: "H1" -> none`)
	o.expect(o.says(o.desk.ListWebhooks(ctx, firestoretx.Page{})), "W1", "https://a.example/in", "order.delivered", "all", "0", "0")

	done, made, err := o.desk.RotateWebhook(ctx, "W1", "test", false)
	text = o.says(o.desk.PrintWebhookChanges(done, made, false, err))
	o.expect(text, "webhook W1: changed", "secret: replaced; the old one signs too until ", "The secret of webhook W1 is whsec_")
	secrets, err := o.desk.Store.WebhookSecrets(ctx, "W1")
	if err != nil || secrets.Previous != secret || secrets.Current != made["W1"] || secrets.Current == secret || time.Until(secrets.PreviousUntil) < 23*time.Hour {
		t.Errorf("secrets %+v, %v", secrets, err)
	}
	reg.Secret = webhooks.NewSecret()
	if text := apply(reg, false); strings.Contains(text, "whsec_") || !strings.Contains(text, "secret: replaced") {
		t.Errorf("applied with a secret of its own: %s", text)
	}
	o.expect(apply(reg, false), "unchanged")

	records, err := o.desk.Store.ChangesOf(ctx, domain.PlaceWebhook, "W1")
	if err != nil || len(records.Items) != 4 || strings.Contains(fmt.Sprint(records.Items), "whsec_") {
		t.Errorf("records %+v, %v", records.Items, err)
	}
	o.expect(o.says(o.desk.AuditPerson(ctx, "ann@example.org", time.Time{}, time.Now().Add(time.Minute))), "webhook W1")
	gone, err := o.desk.DeleteWebhook(ctx, "W1", "test", false)
	o.expect(o.says(o.desk.PrintPlaceChanges([]domain.PlaceChange{gone}, false, err)), "webhook W1: deleted")
	if _, err := o.desk.Store.WebhookSecrets(ctx, "W1"); err == nil {
		t.Error("the secrets are still there")
	}
	for _, do := range []func(id domain.WebhookID) error{
		func(id domain.WebhookID) error { _, _, err := o.desk.RotateWebhook(ctx, id, "test", false); return err },
		func(id domain.WebhookID) error { _, err := o.desk.DeleteWebhook(ctx, id, "test", false); return err },
		func(id domain.WebhookID) error { _, err := o.desk.ReplayWebhook(ctx, id, "test", false); return err },
	} {
		o.refused(do("W1"), policy.ReasonNotFound)
	}
}

// F-INT-07: a test sends one signed message at once, and says what went wrong.
func TestDesk_TestsAWebhook(t *testing.T) {
	o := openOffice(t)
	status := http.StatusNoContent
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.WriteHeader(status)
	}))
	defer server.Close()
	reg := domain.WebhookRegistration{Webhook: domain.Webhook{ID: "W1", URL: server.URL}}
	if _, _, err := o.desk.ApplyWebhooks(t.Context(), []domain.WebhookRegistration{reg}, "test", false); err != nil {
		t.Fatal(err)
	}
	client := webhooks.NewClient(nil)
	defer client.Close()
	o.expect(o.says(o.desk.TestWebhook(t.Context(), client, "W1")), "Webhook W1 took the message in ")
	if !strings.HasPrefix(got.Get("webhook-id"), "test-") || !strings.HasPrefix(got.Get("webhook-signature"), "v1,") {
		t.Errorf("headers %v", got)
	}
	status = http.StatusForbidden
	if err := o.desk.TestWebhook(t.Context(), client, "W1"); err == nil || err.Error() != "webhook W1: 127.0.0.1 answered 403" {
		t.Errorf("error %v", err)
	}
	if err := o.desk.TestWebhook(t.Context(), client, "W2"); err == nil || !strings.Contains(err.Error(), "webhooks W2") {
		t.Errorf("error %v", err)
	}
}

// F-INT-07: messages are listed by webhook and status.
func TestDesk_ListsDeliveries(t *testing.T) {
	o := openOffice(t)
	at := time.Date(2026, 11, 24, 14, 5, 30, 0, time.UTC)
	for i, status := range domain.DeliveryStatuses {
		err := o.desk.Store.AddDelivery(t.Context(), domain.WebhookDelivery{
			ID: domain.WebhookDeliveryID("W1", at, fmt.Sprint("E", i)), WebhookID: "W1", EventID: fmt.Sprint("E", i), Kind: domain.WebhookDelivered, OrderID: "O1",
			CommittedAt: at, Status: status, Attempts: i, LastError: "a.example answered 500",
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	list := func(status domain.DeliveryStatus) string {
		return o.says(o.desk.ListDeliveries(t.Context(), firestoretx.DeliveryFilter{Webhook: "W1", Status: status}, firestoretx.Page{}))
	}
	o.expect(list(""), "WAITING", "DELIVERED", "DEAD_LETTER")
	if text := list(domain.DeliveryDeadLetter); strings.Contains(text, "WAITING") {
		t.Errorf("listed %s", text)
	}
	o.expect(list(domain.DeliveryDeadLetter), "W1", "order.delivered", "O1", "2026-11-24 14:05:30", "DEAD_LETTER", "2", "a.example answered 500")
	o.desk.JSON = true
	var page struct {
		WebhookDeliveries []struct{ EventID string }
	}
	if err := json.Unmarshal([]byte(list(domain.DeliveryWaiting)), &page); err != nil || len(page.WebhookDeliveries) != 1 {
		t.Errorf("%+v, %v", page, err)
	}
}
