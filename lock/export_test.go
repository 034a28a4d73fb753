package lock

import "time"

// Pause exposes the pause after failed try n for a random r.
func Pause(n int, r float64, opts ...Option) (time.Duration, error) {
	c, err := newConfig(opts)
	return c.pause(n, r), err
}

// Config exposes what the options make of the defaults.
func Config(opts ...Option) (ttl time.Duration, retries int, delay, timeout time.Duration, b Backoff, j Jitter, err error) {
	c, err := newConfig(opts)
	return c.ttl, c.maxRetries, c.retryDelay, c.timeout, c.backoff, c.jitter, err
}
