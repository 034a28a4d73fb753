package lock

import (
	"log/slog"
	"math/rand/v2"
	"time"
)

// Defaults of the helpers.
const (
	DefaultTTL          = 30 * time.Second
	DefaultMaxRetries   = 10
	DefaultRetryDelay   = 100 * time.Millisecond
	DefaultTimeout      = 5 * time.Second
	DefaultCloseTimeout = 5 * time.Second
)

// Backoff says how the pause between tries grows.
type Backoff string

// The backoffs.
const (
	BackoffExponential Backoff = "exponential" // doubles with every try
	BackoffFixed       Backoff = "fixed"
)

// Jitter says how much of a pause is random.
type Jitter string

// The jitters.
const (
	JitterEqual Jitter = "equal" // half fixed, half random
	JitterFull  Jitter = "full"  // all random
	JitterNone  Jitter = "none"
)

// SourceDisposal is ReleaseFailure.Source of a release made by Do or Close.
const SourceDisposal = "disposal"

// ReleaseFailure says which release failed. It holds raw values: keep them out
// of logs.
type ReleaseFailure struct {
	Key, LockID string
	Source      string // SourceDisposal
}

// Option changes a default of Acquire, TryAcquire, Do and DoValue.
type Option func(*config)

type config struct {
	ttl            time.Duration
	maxRetries     int
	retryDelay     time.Duration
	backoff        Backoff
	jitter         Jitter
	timeout        time.Duration
	retryTransient bool
	autoExtend     bool
	maxHold        time.Duration
	onReleaseError func(error, ReleaseFailure)
	closeTimeout   time.Duration
	clock          Clock
	rand           func() float64
	logger         *slog.Logger
}

// WithTTL sets the length of the lease: a positive whole number of
// milliseconds, 30 s by default.
func WithTTL(ttl time.Duration) Option { return func(c *config) { c.ttl = ttl } }

// WithMaxRetries sets how many tries may follow the first, 10 by default; 0 is one try. A
// signalled waiter tries at once, and that try counts: if many processes contend for one key,
// raise it so that they wait until WithTimeout.
func WithMaxRetries(n int) Option { return func(c *config) { c.maxRetries = n } }

// WithRetryDelay sets the pause after the first contended try, 100 ms by
// default; 0 tries again at once.
func WithRetryDelay(d time.Duration) Option { return func(c *config) { c.retryDelay = d } }

// WithBackoff sets how the pause grows, BackoffExponential by default.
func WithBackoff(b Backoff) Option { return func(c *config) { c.backoff = b } }

// WithJitter sets the random part of the pause, JitterEqual by default.
func WithJitter(j Jitter) Option { return func(c *config) { c.jitter = j } }

// WithTimeout bounds the whole acquisition, tries included, 5 s by default; 0
// fails without trying.
func WithTimeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// WithRetryTransient retries ErrServiceUnavailable, ErrNetworkTimeout and
// ErrRateLimited like contention. Without it only contention is retried.
func WithRetryTransient() Option { return func(c *config) { c.retryTransient = true } }

// WithAutoExtend extends the lease every third of its TTL until it is released, so a handle
// that is never released keeps its lock as long as the process runs. The handle's context ends
// with ErrOwnershipLost if an extension is refused, and with ErrLeaseUnproven shortly before
// the lease ends if none succeeds in time.
func WithAutoExtend() Option { return func(c *config) { c.autoExtend = true } }

// WithMaxHold ends the lease that long after it was acquired, extended by WithAutoExtend or
// not. A longer TTL is cut to it; Extend may go beyond. 0, the default, is unbounded.
func WithMaxHold(d time.Duration) Option { return func(c *config) { c.maxHold = d } }

// WithOnReleaseError sets a callback for failed releases of Do and Close; its panics are
// swallowed. Without it each such failure is logged as a warning.
func WithOnReleaseError(f func(error, ReleaseFailure)) Option {
	return func(c *config) { c.onReleaseError = f }
}

// WithCloseTimeout bounds the release made by Do and Close, 5 s by default; a
// negative value is unbounded, 0 the default.
func WithCloseTimeout(d time.Duration) Option { return func(c *config) { c.closeTimeout = d } }

// WithClock sets the clock; give the backend the same one.
func WithClock(clock Clock) Option { return func(c *config) { c.clock = clock } }

// WithRand sets the source of jitter: uniform values in [0, 1).
func WithRand(r func() float64) Option { return func(c *config) { c.rand = r } }

// WithLogger sets the logger, slog.Default by default.
func WithLogger(l *slog.Logger) Option { return func(c *config) { c.logger = l } }

// newConfig applies and checks options; a refusal names the option.
func newConfig(opts []Option) (config, error) {
	c := config{
		ttl:          DefaultTTL,
		maxRetries:   DefaultMaxRetries,
		retryDelay:   DefaultRetryDelay,
		backoff:      BackoffExponential,
		jitter:       JitterEqual,
		timeout:      DefaultTimeout,
		closeTimeout: DefaultCloseTimeout,
	}
	for _, opt := range opts {
		if opt != nil {
			opt(&c)
		}
	}
	if c.clock == nil {
		c.clock = SystemClock()
	}
	if c.rand == nil {
		c.rand = rand.Float64
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	if c.closeTimeout == 0 {
		c.closeTimeout = DefaultCloseTimeout
	}
	if err := c.validate(); err != nil {
		return c, err
	}
	if c.maxHold > 0 && c.maxHold <= c.ttl {
		c.ttl, c.autoExtend = c.maxHold.Truncate(time.Millisecond), false // it is all there is
	}
	return c, nil
}

func (c config) validate() error {
	if err := ValidateTTL(c.ttl); err != nil {
		return err
	}
	switch {
	case c.maxRetries < 0:
		return Invalid("max retries is negative; 0 is a single try")
	case c.retryDelay < 0:
		return Invalid("retry delay is negative; 0 retries at once")
	case c.timeout < 0:
		return Invalid("timeout is negative; 0 gives up without a try")
	case c.maxHold < 0:
		return Invalid("max hold is negative; 0 is unbounded")
	case c.maxHold > 0 && c.maxHold < time.Millisecond:
		return Invalid("max hold is shorter than any lease; set at least 1ms")
	case c.backoff != BackoffExponential && c.backoff != BackoffFixed:
		return Invalid("backoff is unknown; use BackoffExponential or BackoffFixed")
	case c.jitter != JitterEqual && c.jitter != JitterFull && c.jitter != JitterNone:
		return Invalid("jitter is unknown; use JitterEqual, JitterFull or JitterNone")
	case c.autoExtend && c.ttl < minAutoExtendTTL:
		return Invalid("ttl is too short to be extended automatically; set at least 30ms")
	}
	return nil
}
