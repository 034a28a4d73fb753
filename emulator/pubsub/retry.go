package pubsubemu

import "time"

// Retry policy limits and defaults of google.pubsub.v1.RetryPolicy.
const (
	defaultMinBackoff = 10 * time.Second
	defaultMaxBackoff = 600 * time.Second
)

// backoff is the pause before the delivery after the given number of
// failures: minimum, doubled for each further failure, at most maximum. It has
// no jitter, so tests with a fake clock know when a message comes back.
func backoff(minimum, maximum time.Duration, failures int32) time.Duration {
	pause := minimum
	for range failures - 1 {
		if pause >= maximum || pause <= 0 {
			break
		}
		pause *= 2
	}
	return min(pause, maximum)
}
