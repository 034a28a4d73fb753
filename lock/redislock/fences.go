package redislock

import (
	"context"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/tasks"
)

// counterScript returns a fence counter. PERSIST changes nothing, because counters do not
// expire, but fails on a replica, which may lag.
var counterScript = newScript(`redis.call('PERSIST', KEYS[1])
return {redis.call('GET', KEYS[1]) or '0'}
`)

var _ lock.FenceReader = (*Backend)(nil)

// HighestFence implements lock.FenceReader.
func (b *Backend) HighestFence(ctx context.Context, key string) (lock.Fence, error) {
	fail := func(err error) (lock.Fence, error) { return "", classify(ctx, err).At("highestFence", key, "") }
	lockKey, err := b.admit(ctx, key)
	if err != nil {
		return fail(err)
	}
	reply, err := tasks.Read(ctx, &b.tasks, func(ctx context.Context) ([]any, error) {
		return b.ask(ctx, counterScript, b.fenceKey(lockKey))
	})
	if err != nil {
		return fail(err)
	}
	text, _ := reply[0].(string)
	counter, err := lock.ParseFence(text)
	if err != nil {
		return fail(err)
	}
	fence, err := lock.HighestFence(counter)
	if err != nil {
		return fail(err)
	}
	return fence, nil
}
