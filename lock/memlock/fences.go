package memlock

import (
	"context"

	"github.com/dronefleet/dronefleet/lock"
)

var _ lock.FenceReader = (*Backend)(nil)

// HighestFence implements lock.FenceReader.
func (b *Backend) HighestFence(ctx context.Context, key string) (lock.Fence, error) {
	normal, err := lock.NormalizeKey(key)
	if err == nil && ctx.Err() != nil {
		err = lock.AbortedBy(ctx)
	}
	if err != nil {
		return "", lock.Located(err, "highestFence", key, "")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return lock.HighestFence(b.counters[normal])
}
