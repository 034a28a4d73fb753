package webhooks

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
)

const (
	// atOnce bounds the requests to one webhook.
	atOnce = 5
	// pageSize is how many deliveries are read at once, and queued is up to how many are known at
	// most: the others wait in Firestore.
	pageSize = 500
	queued   = 2000
	// readAgainAfter is the pause after a read has failed.
	readAgainAfter = time.Second
	// saveBeforeEnd bounds the write of a success once the process must end.
	saveBeforeEnd = 2 * time.Second
	// downAfter is how many failures without a success between them mean that the receiver is down.
	// With its next success everything is sent again at once.
	downAfter = 5
)

// target sends what waits for one webhook.
type target struct {
	cfg  Config
	stop context.CancelFunc
	told chan struct{} // holds an element after a change or an announcement

	mu        sync.Mutex // of what follows
	to        domain.Webhook
	announced string // the first delivery that was stored since the last read began; empty for none
	changed   bool   // whether the operator has changed it
	secrets   domain.WebhookSecrets
	secretsAt time.Time // which secrets these are; zero for none
	first     time.Time // the event's commit of the oldest delivery
}

func newTarget(cfg Config, w domain.Webhook) *target {
	return &target{cfg: cfg, to: w, told: make(chan struct{}, 1)}
}

func (t *target) webhook() domain.Webhook {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.to
}

func (t *target) oldest() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.first
}

// change tells the target what the webhook is now.
func (t *target) change(w domain.Webhook) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.ReplayedAt.After(t.to.ReplayedAt) {
		t.announced = domain.FirstWebhookDeliveryID(w)
	}
	t.changed = t.changed || w.URL != t.to.URL || !w.SecretsAt.Equal(t.to.SecretsAt)
	t.to = w
	t.tell()
}

// announce tells the target that a delivery is stored, or will be.
func (t *target) announce(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.announced == "" || id < t.announced {
		t.announced = id
	}
	t.tell()
}

func (t *target) tell() {
	select {
	case t.told <- struct{}{}:
	default: // told already
	}
}

// page is the answer to a read of deliveries.
type page struct {
	after string
	firestoretx.Listing[domain.WebhookDelivery]
	err error
}

// run sends until ctx ends.
//
// Deliveries are read in the order of their ids, each page after the one before. One that is stored
// later with a smaller id is announced, and the next page begins before it. A page that was read
// while that happened may hold a later delivery of the same order, so it is dropped.
func (t *target) run(ctx context.Context) {
	var (
		q        = queue{sending: map[string]bool{}}
		pages    = make(chan page, 1)
		results  = make(chan domain.WebhookDelivery, atOnce)
		reading  bool
		more     = true // there may be deliveries after the last page
		after    = domain.FirstWebhookDeliveryID(t.webhook())
		ended    = map[string]bool{} // since the present read began
		failures int                 // since the last success
		sending  sync.WaitGroup
		wake     = time.NewTimer(time.Hour)
	)
	defer sending.Wait()
	defer wake.Stop()
	for {
		announced, changed := t.news(&q)
		if changed {
			q.retryNow()
		}
		if (more || announced != "") && !reading && len(q.waiting) <= queued-pageSize {
			if announced = t.takeAnnounced(); announced != "" {
				after = min(after, justBefore(announced))
			}
			reading, more, ended = true, true, map[string]bool{}
			begin := after
			sending.Go(func() { pages <- t.read(ctx, begin) })
		}
		var at time.Time
		for len(q.sending) < atOnce {
			var d domain.WebhookDelivery
			var found bool
			if d, found, at = q.next(t.cfg.Now()); !found {
				break
			}
			sending.Go(func() { results <- t.attempt(ctx, d) })
		}
		if !at.IsZero() {
			wake.Reset(max(0, at.Sub(t.cfg.Now())))
		}
		select {
		case <-ctx.Done():
			return
		case <-t.told:
		case <-wake.C:
		case d := <-results:
			switch {
			case d.Status != domain.DeliveryWaiting:
				q.remove(d.ID)
				ended[d.ID] = reading
			default:
				q.again(d)
			}
			if d.Status != domain.DeliveryDelivered {
				failures++
				continue
			}
			if failures >= downAfter {
				q.retryNow()
			}
			failures = 0
		case p := <-pages:
			reading = false
			if early, _ := t.news(&q); p.err != nil || early != "" && early <= p.after {
				continue
			}
			for _, d := range p.Items {
				if !ended[d.ID] {
					q.add(d)
				}
				after = max(after, d.ID)
			}
			if more = p.Next != ""; more {
				after = max(after, p.Next)
			}
		}
	}
}

// justBefore is an id after which a delivery is read, and none of the webhook before it.
func justBefore(id string) string { return id[:len(id)-1] }

// news returns the first delivery that was announced and whether the operator has changed the
// webhook.
func (t *target) news(q *queue) (announced string, changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	announced, changed = t.announced, t.changed
	t.changed, t.first = false, q.oldest()
	return announced, changed
}

// takeAnnounced returns the first delivery that was announced and forgets it: the read that begins now finds those deliveries, or they are
// announced again once they are stored.
func (t *target) takeAnnounced() (announced string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	announced, t.announced = t.announced, ""
	return announced
}

// read reads the deliveries after an id.
func (t *target) read(ctx context.Context, after string) page {
	filter := firestoretx.DeliveryFilter{Webhook: t.webhook().ID, Status: domain.DeliveryWaiting}
	l, err := t.cfg.Store.ListDeliveries(ctx, filter, firestoretx.Page{After: after, Limit: pageSize})
	for _, malformed := range l.Malformed {
		t.cfg.Log.WarnContext(ctx, "message to a webhook left out; correct it", slog.Any("err", malformed))
	}
	if err != nil && ctx.Err() == nil {
		t.cfg.Log.WarnContext(ctx, "messages to a webhook not read; retrying", slog.Any("err", err))
		select {
		case <-ctx.Done():
		case <-time.After(readAgainAfter):
		}
	}
	return page{after, l, err}
}

// attempt sends a delivery once and stores what came of it. It returns the delivery as it is now.
func (t *target) attempt(ctx context.Context, before domain.WebhookDelivery) domain.WebhookDelivery {
	w := t.webhook()
	d := before
	secrets, err := t.secretsOf(ctx, w)
	now := t.cfg.Now()
	if err == nil {
		err = t.cfg.Client.Send(ctx, w.URL, secrets, d.EventID, now, d.Body)
	}
	if ctx.Err() != nil && err != nil {
		return before
	}
	t.judge(&d, now, err)
	log := t.cfg.Log.With(slog.String("webhook", string(w.ID)), slog.String("order_id", string(d.OrderID)), slog.String("message", d.ID))
	outcome := meter.WebhookFailed
	switch {
	case d.Status == domain.DeliveryDelivered:
		outcome = meter.WebhookDelivered
	case d.Status == domain.DeliveryDeadLetter:
		outcome = meter.WebhookDeadLetter
		log.ErrorContext(ctx, "message to a webhook given up; replay it once the receiver works", slog.Any("err", err))
	case d.Attempts == 1:
		log.WarnContext(ctx, "message to a webhook failed; it is sent again", slog.Any("err", err))
	}
	t.cfg.Meter.WebhookAttempts(outcome).Inc()
	saving, end := ctx, func() {}
	if ctx.Err() != nil { // or the receiver gets it again from the next process
		saving, end = context.WithTimeout(context.WithoutCancel(ctx), saveBeforeEnd)
	}
	defer end()
	if err := keepTrying(saving, func() error { return t.cfg.Store.SaveDelivery(saving, before, d) }); err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "result of a message to a webhook not stored; it may be sent again", slog.Any("err", err))
	}
	return d
}

// secretsOf reads the secrets of a webhook if they have changed.
func (t *target) secretsOf(ctx context.Context, w domain.Webhook) (secrets domain.WebhookSecrets, err error) {
	t.mu.Lock()
	secrets, known := t.secrets, t.secretsAt.Equal(w.SecretsAt)
	t.mu.Unlock()
	if known && secrets.Current != "" {
		return secrets, nil
	}
	err = keepTrying(ctx, func() (err error) {
		secrets, err = t.cfg.Store.WebhookSecrets(ctx, w.ID)
		return err
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.secrets, t.secretsAt = secrets, w.SecretsAt
	return secrets, err
}

// maxErrorText bounds what is kept of an error.
const maxErrorText = 256

// judge decides what becomes of a delivery after an attempt.
func (t *target) judge(d *domain.WebhookDelivery, now time.Time, err error) {
	if d.FirstAttemptAt.IsZero() {
		d.FirstAttemptAt = now
	}
	d.NextAttemptAt = time.Time{}
	if err == nil {
		d.Status, d.EndedAt, d.LastError = domain.DeliveryDelivered, now, ""
		return
	}
	d.Attempts++
	d.LastError = err.Error()
	if len(d.LastError) > maxErrorText {
		d.LastError = d.LastError[:maxErrorText]
	}
	if now.Sub(d.FirstAttemptAt) >= t.cfg.GiveUp {
		d.Status, d.EndedAt = domain.DeliveryDeadLetter, now
		return
	}
	d.NextAttemptAt = now.Add(t.cfg.pause(d.Attempts))
}

// pause is how long to wait after the given failure: twice as long each time, and random by half.
func (c Config) pause(failures int) time.Duration {
	first := c.FirstPause
	for n := 1; n < failures && first < c.LongestPause; n++ {
		first *= 2
	}
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(min(first, c.LongestPause)), backoff.WithMaxElapsedTime(0)).NextBackOff()
}
