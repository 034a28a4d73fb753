package webhooks

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/restart"
	"github.com/dronefleet/dronefleet/lock"
)

// LockKey is the key of the lock that lets one process at a time send.
const LockKey = "statemanager:webhooks"

const (
	// followFor is how long a listener follows events before it starts again: its result only
	// grows.
	followFor = 15 * time.Minute
	// eventsBefore is how far before the cursor events are read again: an event's time is from
	// before its commit, and by a clock that may be behind.
	eventsBefore = 15 * time.Minute
	// saveEvery is how often the cursor is stored.
	saveEvery = 5 * time.Second
	// storedAtOnce bounds the deliveries that are stored concurrently.
	storedAtOnce = 20
	// standby is the pause before another try to take over from a process that sends.
	standby = 2 * time.Second
)

// Config tunes a Sender. Zero durations stand for the defaults in the comments.
type Config struct {
	Store *firestoretx.Store
	Locks lock.Backend
	// LockOptions are those of the lock, which must have a TTL.
	LockOptions []lock.Option
	Meter       *meter.Meter
	Client      *Client
	Log         *slog.Logger
	// Now is the machine's clock, also where the fleet's time is simulated: receivers are real.
	// Default time.Now.
	Now func() time.Time
	// LookEvery is how often webhooks are read; default 10 s.
	LookEvery time.Duration
	// FirstPause is the pause after a first failure, and LongestPause what later ones grow to;
	// default 5 s and 10 min.
	FirstPause, LongestPause time.Duration
	// GiveUp is how long after the first attempt the last one is made; default a day.
	GiveUp time.Duration
}

// Sender sends messages to webhooks while no other process does.
type Sender struct{ cfg Config }

// New returns a sender.
func New(cfg Config) *Sender {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.LookEvery = cmp.Or(cfg.LookEvery, 10*time.Second)
	cfg.FirstPause = cmp.Or(cfg.FirstPause, 5*time.Second)
	cfg.LongestPause = cmp.Or(cfg.LongestPause, 10*time.Minute)
	cfg.GiveUp = cmp.Or(cfg.GiveUp, 24*time.Hour)
	return &Sender{cfg}
}

// Run sends until ctx ends. What it was sending then is sent again by the next process.
func (s *Sender) Run(ctx context.Context) {
	ctx = meter.WithOperation(ctx, "webhooks")
	defer s.cfg.Client.Close()
	for ctx.Err() == nil {
		pause, err := s.runOnce(ctx)
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.WarnContext(ctx, "webhooks interrupted; retrying", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// runOnce sends if there are webhooks and the lock is free. It returns how long to wait before the
// next try.
func (s *Sender) runOnce(ctx context.Context) (time.Duration, error) {
	webhooks, err := s.webhooks(ctx)
	if err != nil || len(webhooks) == 0 {
		return s.cfg.LookEvery, err
	}
	pause := min(standby, s.cfg.LookEvery)
	began := time.Now()
	h, free, err := lock.TryAcquire(ctx, s.cfg.Locks, LockKey, append(slices.Clone(s.cfg.LockOptions), lock.WithAutoExtend(), lock.WithLogger(s.cfg.Log))...)
	if err != nil {
		return pause, err
	}
	held := s.cfg.Meter.Lock(meter.LockWebhooks)
	held.Tried(began, free)
	if !free {
		return pause, nil
	}
	defer held.Gave()
	leading, stop := context.WithCancel(meter.WithOperation(h.Context(), "webhooks")) // the lock's context outlives ctx
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	err = s.lead(leading, webhooks)
	return pause, errors.Join(err, h.Close())
}

// webhooks reads the webhooks. Those that cannot be read are logged and get nothing.
func (s *Sender) webhooks(ctx context.Context) ([]domain.Webhook, error) {
	l, err := s.cfg.Store.ListWebhooks(ctx, firestoretx.Page{})
	for _, malformed := range l.Malformed {
		s.cfg.Log.WarnContext(ctx, "webhook left out; correct or delete it", slog.Any("err", malformed))
	}
	return l.Items, err
}

// lead sends until ctx ends or there are no webhooks.
func (s *Sender) lead(ctx context.Context, webhooks []domain.Webhook) error {
	cursor, err := s.cfg.Store.WebhookCursor(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	l := &leader{Sender: s, targets: map[domain.WebhookID]*target{}, seen: map[string]time.Time{}, cursor: cursor, saved: cursor}
	if first := slices.MinFunc(webhooks, func(a, b domain.Webhook) int { return a.CreatedAt.Compare(b.CreatedAt) }); cursor.Before(first.CreatedAt) {
		l.cursor = first.CreatedAt
	}
	defer s.cfg.Meter.SetWebhooksWaiting(nil)
	defer l.sending.Wait()
	defer stop()
	l.update(ctx, webhooks)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	work.Go(func() { restart.Until(ctx, func() { l.follow(ctx) }) })
	look, save := time.NewTicker(s.cfg.LookEvery), time.NewTicker(saveEvery)
	defer look.Stop()
	defer save.Stop()
	for {
		select {
		case <-ctx.Done():
			return l.save(context.WithoutCancel(ctx))
		case <-save.C:
			if err := l.save(ctx); err != nil && ctx.Err() == nil {
				s.cfg.Log.WarnContext(ctx, "cursor of webhooks not stored; events are read again after a restart", slog.Any("err", err))
			}
			l.measure()
		case <-look.C:
			webhooks, err := s.webhooks(ctx)
			if err != nil {
				if ctx.Err() == nil {
					s.cfg.Log.WarnContext(ctx, "webhooks not read; going on with those known", slog.Any("err", err))
				}
				continue
			}
			if l.update(ctx, webhooks); len(webhooks) == 0 {
				return l.save(ctx)
			}
		}
	}
}

// leader is a sender that holds the lock.
type leader struct {
	*Sender
	sending sync.WaitGroup // the targets

	mu      sync.Mutex // of what follows
	targets map[domain.WebhookID]*target
	seen    map[string]time.Time // events with deliveries, by document, and their commits
	cursor  time.Time            // up to when every event has its deliveries
	saved   time.Time            // what is stored of it
	restart context.CancelFunc   // ends the present listener
}

// update makes the targets those of the webhooks. A webhook that is new has the events read again
// since it was created: nobody knew of it for some seconds.
func (l *leader) update(ctx context.Context, webhooks []domain.Webhook) {
	l.mu.Lock()
	defer l.mu.Unlock()
	named := map[domain.WebhookID]bool{}
	again := false
	for _, w := range webhooks {
		named[w.ID] = true
		t := l.targets[w.ID]
		if t != nil && !t.webhook().CreatedAt.Equal(w.CreatedAt) { // deleted and created again
			t.stop()
			t = nil
		}
		if t != nil {
			t.change(w)
			continue
		}
		again = true
		l.targets[w.ID] = l.start(ctx, w)
		if w.CreatedAt.Before(l.cursor) && w.CreatedAt.After(l.cursor.Add(-eventsBefore)) {
			l.cursor = w.CreatedAt
		}
	}
	for id, t := range l.targets {
		if !named[id] {
			t.stop()
			delete(l.targets, id)
		}
	}
	if again {
		clear(l.seen)
		if l.restart != nil {
			l.restart()
		}
	}
}

// start begins to send to a webhook.
func (l *leader) start(ctx context.Context, w domain.Webhook) *target {
	t := newTarget(l.cfg, w)
	ctx, t.stop = context.WithCancel(ctx)
	l.sending.Go(func() { t.run(ctx) })
	return t
}

// follow stores deliveries for events until ctx ends or the listener must start again.
func (l *leader) follow(ctx context.Context) {
	for ctx.Err() == nil {
		following, stop := context.WithTimeout(ctx, followFor)
		l.mu.Lock()
		l.restart = stop
		since := l.cursor.Add(-eventsBefore)
		l.mu.Unlock()
		var failure error
		err := l.cfg.Store.FollowOrderEvents(following, since, func(sight firestoretx.Sight[firestoretx.CommittedEvent], through time.Time) {
			if err := l.store(following, sight, through); err != nil && failure == nil && following.Err() == nil {
				failure = err
				stop() // they are seen again
			}
		})
		if following.Err() == nil {
			failure = err
		}
		stop()
		if failure != nil {
			l.cfg.Log.WarnContext(ctx, "events for webhooks interrupted; retrying", slog.Any("err", failure))
			return
		}
	}
}

// store stores the deliveries of new events and moves the cursor.
func (l *leader) store(ctx context.Context, sight firestoretx.Sight[firestoretx.CommittedEvent], through time.Time) error {
	if ctx.Err() != nil { // an earlier sight failed, so this one would come too early
		return ctx.Err()
	}
	for _, err := range sight.Malformed {
		l.cfg.Log.WarnContext(ctx, "event left out of webhooks; correct it", slog.Any("err", err))
	}
	l.mu.Lock()
	var fresh []firestoretx.CommittedEvent
	for _, e := range sight.Now {
		if _, known := l.seen[e.DocumentID]; !known {
			fresh = append(fresh, e)
		}
	}
	var webhooks []domain.Webhook
	for _, t := range l.targets {
		webhooks = append(webhooks, t.webhook())
	}
	l.mu.Unlock()
	slices.SortFunc(fresh, func(a, b firestoretx.CommittedEvent) int {
		return cmp.Or(a.CommittedAt.Compare(b.CommittedAt), cmp.Compare(a.Revision, b.Revision))
	})
	deliveries, err := l.deliveries(ctx, fresh, webhooks)
	if err == nil {
		err = l.add(ctx, deliveries)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil { // a webhook was added meanwhile, which these events may concern
		return ctx.Err()
	}
	for _, e := range fresh {
		l.seen[e.DocumentID] = e.CommittedAt
	}
	if through.After(l.cursor) {
		l.cursor = through
	}
	if sight.Whole { // those before cannot be seen again
		for id, at := range l.seen {
			if at.Before(l.cursor.Add(-2*eventsBefore - followFor)) {
				delete(l.seen, id)
			}
		}
	}
	return nil
}

// deliveries are the messages about events, in the events' order.
func (l *leader) deliveries(ctx context.Context, events []firestoretx.CommittedEvent, webhooks []domain.Webhook) ([]domain.WebhookDelivery, error) {
	orders := map[domain.OrderID]bool{}
	var ids []domain.OrderID
	var told []firestoretx.CommittedEvent
	for _, e := range events {
		kind, tells := KindOf(e.Event)
		if !tells || !slices.ContainsFunc(webhooks, func(w domain.Webhook) bool { return w.Wants(kind, w.RequesterID, e.CommittedAt) }) {
			continue
		}
		told = append(told, e)
		if id := domain.OrderID(e.ID); !orders[id] {
			orders[id] = true
			ids = append(ids, id)
		}
	}
	requesters := map[domain.OrderID]string{}
	for some := range slices.Chunk(ids, ordersAtOnce) {
		read, err := l.cfg.Store.OrdersOf(ctx, some)
		if _, malformed := errors.AsType[*firestoretx.MalformedError](err); err != nil && !malformed {
			return nil, err
		}
		for _, o := range read {
			requesters[o.ID] = o.RequesterID
		}
	}
	var all []domain.WebhookDelivery
	for _, e := range told {
		kind, _ := KindOf(e.Event)
		requester := RequesterOf(e.Event, requesters[domain.OrderID(e.ID)])
		body, err := MessageOf(kind, e.Event, requester).Body()
		if err != nil {
			return nil, err
		}
		for _, w := range webhooks {
			if w.Wants(kind, requester, e.CommittedAt) {
				all = append(all, domain.WebhookDelivery{
					ID: domain.WebhookDeliveryID(w.ID, e.CommittedAt, e.DocumentID), WebhookID: w.ID, EventID: e.DocumentID, Kind: kind, OrderID: domain.OrderID(e.ID),
					RequesterID: requester, Body: body, CommittedAt: e.CommittedAt, Status: domain.DeliveryWaiting,
				})
			}
		}
	}
	return all, nil
}

// ordersAtOnce bounds the orders of one read.
const ordersAtOnce = 300

// add stores deliveries. Those of one order are stored one after the other, so that no target finds
// a later one alone. The targets are told before and after: what they read meanwhile may have one
// of them and lack an earlier one.
func (l *leader) add(ctx context.Context, deliveries []domain.WebhookDelivery) error {
	l.announce(deliveries)
	defer l.announce(deliveries)
	byOrder := map[domain.OrderID][]domain.WebhookDelivery{}
	for _, d := range deliveries {
		byOrder[d.OrderID] = append(byOrder[d.OrderID], d)
	}
	storing, ctx := errgroup.WithContext(ctx)
	storing.SetLimit(storedAtOnce)
	for _, of := range byOrder {
		storing.Go(func() error {
			for _, d := range of {
				if err := keepTrying(ctx, func() error { return l.cfg.Store.AddDelivery(ctx, d) }); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return storing.Wait()
}

// announce tells each target the first of the deliveries that are for it.
func (l *leader) announce(deliveries []domain.WebhookDelivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range deliveries {
		if t := l.targets[d.WebhookID]; t != nil {
			t.announce(d.ID)
		}
	}
}

// keepTrying repeats a write of a delivery until it succeeds or ctx ends.
func keepTrying(ctx context.Context, write func() error) error {
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
	return backoff.Retry(func() error {
		err := write()
		if err != nil && !firestoretx.Retryable(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(pauses, ctx))
}

// save stores the cursor if it has moved.
func (l *leader) save(ctx context.Context) error {
	l.mu.Lock()
	cursor, moved := l.cursor, l.cursor.After(l.saved)
	l.mu.Unlock()
	if !moved {
		return nil
	}
	ctx, end := context.WithTimeout(ctx, saveEvery)
	defer end()
	if err := l.cfg.Store.SaveWebhookCursor(ctx, cursor); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.saved = cursor
	return nil
}

// measure tells the meter since when the oldest message of each webhook waits.
func (l *leader) measure() {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := map[string]time.Time{}
	for id, t := range l.targets {
		waiting[string(id)] = t.oldest()
	}
	l.cfg.Meter.SetWebhooksWaiting(waiting)
}
