package ramp

import (
	"context"
	"math"
	"sync"
	"time"
)

const (
	// Rate is how many writes a second to a collection a new database takes.
	Rate = 500
	// step is how often the rate grows, and growth by how much.
	step, growth = 5 * time.Minute, 1.5
	// burst is how many seconds of the rate may be written at once.
	burst = 10
	// askAgain is the pause after the beginning could not be learned.
	askAgain = 5 * time.Second
)

// Config tunes a Ramp.
type Config struct {
	// Rate is the number of writes a second to each collection at first.
	Rate float64
	// Now is the clock.
	Now func() time.Time
	// Began returns when the database's ramp began. It is called when the first write must wait:
	// a fleet that never writes that much has no ramp.
	Began func(context.Context) (time.Time, error)
	// Held, if set, is called whenever a write must wait.
	Held func(collection string)
}

// Ramp holds back writes. It is safe for concurrent use. A nil *Ramp holds back nothing.
type Ramp struct {
	cfg Config

	mu      sync.Mutex // of what follows
	began   time.Time  // zero until known
	asking  bool
	asked   time.Time
	buckets map[string]*bucket
}

// bucket has the writes that a collection may take now. Writes are paid for afterwards, so it can be in
// debt.
type bucket struct {
	tokens float64
	at     time.Time
}

// New returns a ramp.
func New(cfg Config) *Ramp {
	if cfg.Held == nil {
		cfg.Held = func(string) {}
	}
	return &Ramp{cfg: cfg, buckets: map[string]*bucket{}}
}

// Spent reports writes to a collection.
func (r *Ramp) Spent(collection string, writes int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bucket(collection, r.cfg.Now()).tokens -= float64(writes)
}

// Ready reports whether a collection may be written to now.
func (r *Ramp) Ready(collection string) bool { return r.delay(collection) <= 0 }

// Wait returns once all collections may be written to, or ctx ends.
func (r *Ramp) Wait(ctx context.Context, collections ...string) error {
	for _, c := range collections {
		for wait := r.delay(c); wait > 0; wait = r.delay(c) {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(max(wait, time.Millisecond)):
			}
		}
	}
	return nil
}

// delay is how long a collection must not be written to.
func (r *Ramp) delay(collection string) time.Duration {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cfg.Now()
	b := r.bucket(collection, now)
	if b.tokens > 0 {
		return 0
	}
	r.cfg.Held(collection)
	r.ask(now)
	return time.Duration((1 - b.tokens) / r.rate(now) * float64(time.Second))
}

// bucket is a collection's, filled up to now.
func (r *Ramp) bucket(collection string, now time.Time) *bucket {
	rate := r.rate(now)
	b := r.buckets[collection]
	if b == nil {
		b = &bucket{burst * rate, now}
		r.buckets[collection] = b
	}
	b.tokens = min(b.tokens+max(now.Sub(b.at), 0).Seconds()*rate, burst*rate)
	b.at = now
	return b
}

// rate is how many writes a second a collection takes now.
func (r *Ramp) rate(now time.Time) float64 {
	if r.began.IsZero() {
		return r.cfg.Rate
	}
	steps := min(max(now.Sub(r.began), 0)/step, 100)
	return r.cfg.Rate * math.Pow(growth, float64(steps))
}

// ask learns when the ramp began, without holding up the caller.
func (r *Ramp) ask(now time.Time) {
	if !r.began.IsZero() || r.asking || now.Sub(r.asked) < askAgain {
		return
	}
	r.asking, r.asked = true, now
	go func() {
		ctx, end := context.WithTimeout(context.Background(), askAgain)
		defer end()
		began, err := r.cfg.Began(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.asking = false; err == nil {
			r.began = began
		}
	}()
}
