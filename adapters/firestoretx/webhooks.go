package firestoretx

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/firestore"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// What operators say of a webhook, and what is kept beside it. Its secrets are in another
// collection, so that nothing which shows webhooks can show them.
var (
	webhookConfigCodec = codec[domain.Webhook]{
		key(func(w *domain.Webhook) *domain.WebhookID { return &w.ID }),
		text("url", func(w *domain.Webhook) *string { return &w.URL }),
		texts("kinds", func(w *domain.Webhook) *[]domain.WebhookKind { return &w.Kinds }),
		text("requesterId", func(w *domain.Webhook) *string { return &w.RequesterID }),
	}
	webhookCodec = append(slices.Clone(webhookConfigCodec),
		instant("createdAt", func(w *domain.Webhook) *time.Time { return &w.CreatedAt }),
		instant("secretsAt", func(w *domain.Webhook) *time.Time { return &w.SecretsAt }),
		instant("replayedAt", func(w *domain.Webhook) *time.Time { return &w.ReplayedAt }),
	)
	webhookSecretsCodec = codec[domain.WebhookSecrets]{
		text("current", func(s *domain.WebhookSecrets) *string { return &s.Current }),
		text("previous", func(s *domain.WebhookSecrets) *string { return &s.Previous }),
		instant("previousUntil", func(s *domain.WebhookSecrets) *time.Time { return &s.PreviousUntil }),
	}
	webhookDeliveryCodec = codec[domain.WebhookDelivery]{
		key(func(d *domain.WebhookDelivery) *string { return &d.ID }),
		text("webhookId", func(d *domain.WebhookDelivery) *domain.WebhookID { return &d.WebhookID }),
		text("eventId", func(d *domain.WebhookDelivery) *string { return &d.EventID }),
		text("kind", func(d *domain.WebhookDelivery) *domain.WebhookKind { return &d.Kind }),
		text("orderId", func(d *domain.WebhookDelivery) *domain.OrderID { return &d.OrderID }),
		text("requesterId", func(d *domain.WebhookDelivery) *string { return &d.RequesterID }),
		text("body", func(d *domain.WebhookDelivery) *string { return &d.Body }),
		instant("committedAt", func(d *domain.WebhookDelivery) *time.Time { return &d.CommittedAt }),
		text("status", func(d *domain.WebhookDelivery) *domain.DeliveryStatus { return &d.Status }),
		counter("attempts", func(d *domain.WebhookDelivery) *int { return &d.Attempts }),
		instant("firstAttemptAt", func(d *domain.WebhookDelivery) *time.Time { return &d.FirstAttemptAt }),
		instant("nextAttemptAt", func(d *domain.WebhookDelivery) *time.Time { return &d.NextAttemptAt }),
		text("lastError", func(d *domain.WebhookDelivery) *string { return &d.LastError }),
		instant("endedAt", func(d *domain.WebhookDelivery) *time.Time { return &d.EndedAt }),
	}
	webhookForm = placeForm[domain.Webhook]{kind: domain.PlaceWebhook, collection: Webhooks, codec: webhookConfigCodec, decode: webhookCodec.decode}
)

// ApplyWebhook creates or changes a webhook and records it. fresh is the secret of a new one whose
// registration has none; usedFresh says that it was taken. Another secret than the current one
// replaces it, and the old one signs too for a while. The record never has a secret.
//
// Cost: 4 RPCs, 4 reads, at most 3 writes; 1 RPC and 2 reads if nothing changes.
func (s *Store) ApplyWebhook(ctx context.Context, reg domain.WebhookRegistration, fresh string, c Change) (done domain.PlaceChange, usedFresh bool, err error) {
	w, id := reg.Webhook, string(reg.ID)
	done, err = s.changeWebhook(ctx, id, c, func(before *domain.Webhook, secretsOf openSecrets, now time.Time) (domain.PlaceChange, *domain.Webhook, *domain.WebhookSecrets, error) {
		done := domain.PlaceChange{Kind: domain.PlaceWebhook, ID: id, Action: domain.PlaceUnchanged}
		if usedFresh = before == nil && reg.Secret == ""; before == nil {
			w.CreatedAt, w.SecretsAt = now, now
			done.Action, done.Fields = domain.PlaceCreated, webhookConfigCodec.described(w, "none -> %s")
			return done, &w, &domain.WebhookSecrets{Current: cmp.Or(reg.Secret, fresh)}, nil
		}
		after := *before
		after.URL, after.Kinds, after.RequesterID = w.URL, w.Kinds, w.RequesterID
		done.Fields = webhookConfigCodec.differences(*before, after)
		var replaced *domain.WebhookSecrets
		if reg.Secret != "" {
			secrets, err := secretsOf()
			if err != nil {
				return done, nil, nil, err
			}
			if reg.Secret != secrets.Current {
				next := secrets.Replaced(reg.Secret, now)
				replaced, after.SecretsAt = &next, now
				done.Fields = append(done.Fields, replacedText(next))
			}
		}
		if len(done.Fields) > 0 {
			done.Action = domain.PlaceChanged
		}
		return done, &after, replaced, nil
	})
	return done, usedFresh, wrap(err, "webhook %s", reg.ID)
}

func replacedText(s domain.WebhookSecrets) string {
	return "secret: replaced; the old one signs too until " + s.PreviousUntil.UTC().Format(time.RFC3339)
}

// RotateWebhook replaces a webhook's secret and records it.
//
// Cost: 4 RPCs, 4 reads, 3 writes.
func (s *Store) RotateWebhook(ctx context.Context, id domain.WebhookID, secret string, c Change) (domain.PlaceChange, error) {
	done, err := s.changeWebhook(ctx, string(id), c, func(before *domain.Webhook, secretsOf openSecrets, now time.Time) (domain.PlaceChange, *domain.Webhook, *domain.WebhookSecrets, error) {
		done := domain.PlaceChange{Kind: domain.PlaceWebhook, ID: string(id), Action: domain.PlaceChanged}
		if before == nil {
			return done, nil, nil, noWebhook(id)
		}
		secrets, err := secretsOf()
		if err != nil {
			return done, nil, nil, err
		}
		after, next := *before, secrets.Replaced(secret, now)
		after.SecretsAt = now
		done.Fields = []string{replacedText(next)}
		return done, &after, &next, nil
	})
	return done, wrap(err, "webhook")
}

func noWebhook(id domain.WebhookID) error {
	return &policy.Rejection{Reason: policy.ReasonNotFound, Subject: string(id), Detail: "no such webhook"}
}

// openSecrets opens the secrets of a webhook, for which a key may be missing.
type openSecrets func() (domain.WebhookSecrets, error)

// changeWebhook writes what judge makes of a webhook, nil if there is none, and of its secrets.
func (s *Store) changeWebhook(ctx context.Context, id string, c Change,
	judge func(*domain.Webhook, openSecrets, time.Time) (domain.PlaceChange, *domain.Webhook, *domain.WebhookSecrets, error)) (domain.PlaceChange, error) {
	webhookRef, secretsRef := s.doc(Webhooks, id), s.doc(WebhookSecrets, id)
	return s.changePlace(ctx, c, func(in reading) (done domain.PlaceChange, _ func(*txn) error, _ error) {
		var before *domain.Webhook
		if in.snaps[0].Exists() {
			w, err := webhookCodec.decode(in.snaps[0])
			if err != nil {
				return done, nil, err
			}
			before = &w
		}
		secretsOf := func() (domain.WebhookSecrets, error) {
			if !in.snaps[1].Exists() {
				return domain.WebhookSecrets{}, nil
			}
			return s.openSecrets(in.snaps[1])
		}
		done, after, replaced, err := judge(before, secretsOf, in.snaps[0].ReadTime)
		return done, func(t *txn) error {
			var was domain.Webhook
			if before != nil {
				was = *before
			}
			if err := put(t, webhookRef, webhookCodec, was, *after, before != nil); err != nil || replaced == nil {
				return err
			}
			kept, err := s.sealer.seal(domain.WebhookID(id), *replaced)
			if err != nil {
				return err
			}
			return t.Set(secretsRef, webhookSecretsCodec.encode(kept))
		}, err
	}, webhookRef, secretsRef)
}

// DeleteWebhook deletes a webhook with its secrets, and records it. What waits for it is never sent.
//
// Cost: 4 RPCs, 2 reads, 3 writes.
func (s *Store) DeleteWebhook(ctx context.Context, id domain.WebhookID, c Change) (domain.PlaceChange, error) {
	nobody := func(ask) ([]string, error) { return nil, nil }
	return deletePlace(ctx, s, webhookForm, string(id), c, nobody, func(t *txn, id string) (func() error, error) {
		return func() error { return t.Delete(s.doc(WebhookSecrets, id)) }, nil
	})
}

// ListWebhooks lists webhooks.
func (s *Store) ListWebhooks(ctx context.Context, page Page) (Listing[domain.Webhook], error) {
	return list(ctx, s, Webhooks, page, webhookCodec.decode)
}

// Webhook reads a webhook; the error wraps ErrNotFound if there is none.
//
// Cost: 1 RPC, 1 read.
func (s *Store) Webhook(ctx context.Context, id domain.WebhookID) (domain.Webhook, error) {
	return one(ctx, s.doc(Webhooks, string(id)), webhookCodec.decode)
}

// WebhookSecrets reads the secrets of a webhook.
//
// Cost: 1 RPC, 1 read.
func (s *Store) WebhookSecrets(ctx context.Context, id domain.WebhookID) (domain.WebhookSecrets, error) {
	return one(ctx, s.doc(WebhookSecrets, string(id)), s.openSecrets)
}

// openSecrets reads the secrets of a webhook from their document.
func (s *Store) openSecrets(snap *firestore.DocumentSnapshot) (domain.WebhookSecrets, error) {
	secrets, err := webhookSecretsCodec.decode(snap)
	if err != nil {
		return secrets, err
	}
	return s.sealer.open(domain.WebhookID(snap.Ref.ID), secrets)
}

// seenAt is the field of the cursor.
const seenAt = "seenAt"

// WebhookCursor is the time up to which every event has its deliveries; zero if there is none.
//
// Cost: 1 RPC, 1 read.
func (s *Store) WebhookCursor(ctx context.Context) (time.Time, error) {
	snap, err := s.doc(Control, controlWebhooks).Get(ctx)
	if status.Code(err) == codes.NotFound {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, wrap(err, "cursor of webhooks")
	}
	at, _ := snap.Data()[seenAt].(time.Time)
	return at, nil
}

// SaveWebhookCursor stores the cursor.
//
// Cost: 1 RPC, 1 write.
func (s *Store) SaveWebhookCursor(ctx context.Context, at time.Time) error {
	_, err := s.doc(Control, controlWebhooks).Set(ctx, map[string]any{seenAt: at}, firestore.MergeAll)
	return wrap(err, "cursor of webhooks")
}

// CommittedEvent is an event with what its document says beside it.
type CommittedEvent struct {
	domain.Event
	DocumentID  string
	CommittedAt time.Time // by Firestore's clock
}

func decodeCommitted(doc *firestore.DocumentSnapshot) (CommittedEvent, error) {
	e, err := eventCodec.decode(doc)
	return CommittedEvent{e, doc.Ref.ID, doc.CreateTime}, err
}

// decodeRefused reads the record of an order that was refused on its way as the note that such an
// order cannot have: it does not exist.
func decodeRefused(doc *firestore.DocumentSnapshot) (CommittedEvent, error) {
	r, err := refusalCodec.decode(doc)
	return CommittedEvent{domain.Event{
		Entity: domain.EntityOrder, ID: string(r.OrderID), OrderID: r.OrderID, Cause: domain.CauseOrder, Reason: r.Reason, Time: r.RefusedAt,
		State: map[string]any{domain.RefusedRequester: r.RequesterID},
	}, doc.Ref.ID, doc.CreateTime}, err
}

// FollowOrderEvents follows the events of orders after since, as FollowEvents does, and the orders
// that were refused on their way: such an event has no id if the order's could not be read. All that
// were committed until through have been seen once seen has returned. It is called for one sight at a
// time.
func (s *Store) FollowOrderEvents(ctx context.Context, since time.Time, seen func(sight Sight[CommittedEvent], through time.Time)) error {
	base := s.client.Collection(Events).Where("entity", "==", string(domain.EntityOrder)).Where("to", "in", domain.OrderStatuses).
		Where("time", ">", since).OrderBy("time", firestore.Desc)
	queries := s.ofSome(base, len(domain.OrderStatuses))
	refused := len(queries)
	queries = append(queries, s.where(Refusals, "topic", "orders").Where("refusedAt", ">", since).OrderBy("refusedAt", firestore.Desc))
	var mu sync.Mutex
	through := map[int]time.Time{}
	following, ctx := errgroup.WithContext(ctx)
	for i, q := range queries {
		decode := decodeCommitted
		if i == refused {
			decode = decodeRefused
		}
		following.Go(func() error {
			return follow(ctx, q, decode, func(sight Sight[CommittedEvent]) {
				mu.Lock()
				defer mu.Unlock()
				if through[i] = sight.ReadTime; len(through) < len(queries) {
					seen(sight, since) // another listener has not begun
					return
				}
				seen(sight, slices.MinFunc(slices.Collect(maps.Values(through)), time.Time.Compare))
			})
		})
	}
	return wrap(following.Wait(), "follow events of orders")
}

// AddDelivery stores a new message to a webhook. It does nothing if the message exists.
//
// Cost: 1 RPC, 1 write.
func (s *Store) AddDelivery(ctx context.Context, d domain.WebhookDelivery) error {
	doc := webhookDeliveryCodec.encode(d)
	doc[expireAt] = s.expiry(WebhookDeliveries, d.CommittedAt)
	_, err := s.doc(WebhookDeliveries, d.ID).Create(ctx, doc)
	if status.Code(err) == codes.AlreadyExists {
		return nil
	}
	return wrap(err, "message %s", d.ID)
}

// SaveDelivery stores what has changed of a message. It does nothing if somebody has deleted it.
//
// Cost: 1 RPC, 1 write.
func (s *Store) SaveDelivery(ctx context.Context, before, after domain.WebhookDelivery) error {
	_, err := s.doc(WebhookDeliveries, after.ID).Update(ctx, webhookDeliveryCodec.updates(before, after))
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return wrap(err, "message %s", after.ID)
}

// DeliveryFilter narrows a listing of messages to webhooks; zero fields match all.
type DeliveryFilter struct {
	Webhook domain.WebhookID
	Status  domain.DeliveryStatus
}

// ListDeliveries lists messages to webhooks; those of one webhook in the order of their events'
// commits.
func (s *Store) ListDeliveries(ctx context.Context, f DeliveryFilter, page Page) (Listing[domain.WebhookDelivery], error) {
	return list(ctx, s, WebhookDeliveries, page, webhookDeliveryCodec.decode, equal("webhookId", string(f.Webhook)), equal("status", string(f.Status)))
}

// CountDeliveries counts the messages to a webhook of a status.
//
// Cost: 1 RPC; a read for each 1,000 messages.
func (s *Store) CountDeliveries(ctx context.Context, f DeliveryFilter) (int64, error) {
	return count(ctx, s.where(WebhookDeliveries, "webhookId", string(f.Webhook)).Where("status", "==", string(f.Status)))
}

// replayDelivery has a dead letter sent again. It reports whether it was one.
func (s *Store) replayDelivery(ctx context.Context, id string) (replayed bool, err error) {
	ref := s.doc(WebhookDeliveries, id)
	err = s.transact(ctx, nil, func(t *txn) error {
		snaps, err := t.get(ref)
		if err != nil {
			return err
		}
		if replayed = false; !snaps[0].Exists() {
			return wrap(ErrNotFound, "message %s", id)
		}
		before, err := webhookDeliveryCodec.decode(snaps[0])
		if err != nil || before.Status != domain.DeliveryDeadLetter {
			return err
		}
		after := before
		after.Status, after.Attempts = domain.DeliveryWaiting, 0
		after.FirstAttemptAt, after.NextAttemptAt, after.EndedAt = time.Time{}, time.Time{}, time.Time{}
		replayed = true
		return t.Update(ref, webhookDeliveryCodec.updates(before, after))
	})
	return replayed, wrap(err, "replay")
}

// ReplayDeliveries has every dead letter of a webhook sent again and records it. The webhook is
// changed last, even if there is none, because that change tells the sender: after a failure the
// command can be repeated.
//
// Cost: 4 RPCs, 4 reads, 2 writes; for each dead letter 3 RPCs, 2 reads and 1 write.
func (s *Store) ReplayDeliveries(ctx context.Context, id domain.WebhookID, c Change) (domain.PlaceChange, error) {
	dead, err := s.ListDeliveries(ctx, DeliveryFilter{Webhook: id, Status: domain.DeliveryDeadLetter}, Page{})
	if err != nil {
		return domain.PlaceChange{}, err
	}
	replayed := len(dead.Items)
	if !c.DryRun {
		replayed = 0
		for _, d := range dead.Items {
			did, err := s.replayDelivery(ctx, d.ID)
			if err != nil {
				return domain.PlaceChange{}, err
			}
			if did {
				replayed++
			}
		}
	}
	done, err := s.changeWebhook(ctx, string(id), c, func(before *domain.Webhook, _ openSecrets, now time.Time) (domain.PlaceChange, *domain.Webhook, *domain.WebhookSecrets, error) {
		done := domain.PlaceChange{Kind: domain.PlaceWebhook, ID: string(id), Action: domain.PlaceChanged}
		if before == nil {
			return done, nil, nil, noWebhook(id)
		}
		after := *before
		after.ReplayedAt = now
		done.Fields = []string{fmt.Sprintf("dead letters replayed: %d", replayed)}
		return done, &after, nil, nil
	})
	return done, wrap(err, "webhook")
}
