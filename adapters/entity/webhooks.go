package entity

import "github.com/dronefleet/dronefleet/domain"

// Webhook is an address that is told what becomes of orders. Its secrets are in no JSON form.
type Webhook struct {
	ID          domain.WebhookID     `json:"id"`
	URL         string               `json:"url"`
	Kinds       []domain.WebhookKind `json:"kinds" doc:"Empty for every kind."`
	RequesterID string               `json:"requesterId,omitempty"`
	CreatedAt   Time                 `json:"createdAt,omitempty"`
	SecretsAt   Time                 `json:"secretsAt,omitempty"`
	ReplayedAt  Time                 `json:"replayedAt,omitempty"`
}

// OfWebhook is the JSON form of a webhook.
func OfWebhook(w domain.Webhook) Webhook {
	return Webhook{w.ID, w.URL, OrEmpty(w.Kinds), w.RequesterID, moment(w.CreatedAt), moment(w.SecretsAt), moment(w.ReplayedAt)}
}

// WebhookDelivery is one message to one webhook.
type WebhookDelivery struct {
	ID            string                `json:"id"`
	WebhookID     domain.WebhookID      `json:"webhookId"`
	EventID       string                `json:"eventId"`
	Kind          domain.WebhookKind    `json:"kind"`
	OrderID       domain.OrderID        `json:"orderId"`
	Status        domain.DeliveryStatus `json:"status"`
	Attempts      int                   `json:"attempts,omitempty"`
	LastError     string                `json:"lastError,omitempty"`
	CommittedAt   Time                  `json:"committedAt,omitempty"`
	NextAttemptAt Time                  `json:"nextAttemptAt,omitempty"`
	EndedAt       Time                  `json:"endedAt,omitempty"`
}

// OfWebhookDelivery is the JSON form of a message to a webhook.
func OfWebhookDelivery(d domain.WebhookDelivery) WebhookDelivery {
	return WebhookDelivery{d.ID, d.WebhookID, d.EventID, d.Kind, d.OrderID, d.Status, d.Attempts, d.LastError, moment(d.CommittedAt), moment(d.NextAttemptAt), moment(d.EndedAt)}
}
