package placefile

import (
	"strings"

	"github.com/dronefleet/dronefleet/domain"
)

var webhookFields = []string{"id", "url", "kinds", "requesterId", "secret"}

func (r *reader) webhook(rec record) domain.WebhookRegistration {
	since := len(r.problems)
	r.known(rec, webhookFields)
	w := domain.WebhookRegistration{Secret: r.string(rec, "secret")}
	w.ID, w.URL, w.RequesterID = domain.WebhookID(r.string(rec, "id")), r.string(rec, "url"), r.string(rec, "requesterId")
	w.Kinds = r.webhookKinds(rec)
	r.adopt(rec, since, w.Check())
	return w
}

// webhookKinds reads a list of kinds. In CSV, semicolons separate them.
func (r *reader) webhookKinds(rec record) (kinds []domain.WebhookKind) {
	const field = "kinds"
	v, ok := rec.fields[field]
	if !ok {
		return nil
	}
	list, ok := v.is.([]any)
	if text, is := v.is.(string); is && r.text {
		ok = true
		for part := range strings.SplitSeq(text, ";") {
			list = append(list, strings.TrimSpace(part))
		}
	}
	for _, entry := range list {
		kind, is := entry.(string)
		ok = ok && is
		kinds = append(kinds, domain.WebhookKind(kind))
	}
	if !ok || len(list) == 0 {
		r.refuse(v.where, field, "is %v; give a list such as [order.delivered], or leave it out for every kind", v.is)
		return nil
	}
	return kinds
}
