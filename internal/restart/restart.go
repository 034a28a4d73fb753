package restart

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// The pauses grow from the first to the longest, with jitter. They start anew once f has
// run for as long as the longest.
const (
	firstPause   = time.Second
	longestPause = 5 * time.Second
)

// Until calls f again and again until ctx ends, with a pause after each return.
func Until(ctx context.Context, f func()) {
	pauses := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(firstPause),
		backoff.WithMaxInterval(longestPause),
		backoff.WithMaxElapsedTime(0), // ctx decides
	)
	for ctx.Err() == nil {
		began := time.Now()
		f()
		if time.Since(began) >= longestPause {
			pauses.Reset()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pauses.NextBackOff()):
		}
	}
}
