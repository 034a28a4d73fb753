package redislock

import (
	"context"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

// Watch implements lock.Waiter.
func (b *Backend) Watch(key string) (<-chan struct{}, func()) { return b.waiters.Watch(key) }

// follow wakes the first waiter of a key when a release is published. It also looks at the lock
// once, for a release before the subscription.
func (b *Backend) follow(ctx context.Context, key string) error {
	lockKey, err := b.lockKey(key)
	if err != nil {
		return err
	}
	subscription := b.client.Subscribe(ctx, b.channel(lockKey))
	defer context.AfterFunc(ctx, func() { _ = subscription.Close() })() // it heeds no context
	defer func() { _ = subscription.Close() }()
	if _, err := subscription.Receive(ctx); err != nil {
		return err
	}
	reply, err := b.ask(ctx, readScript, lockKey)
	if err != nil {
		return err
	}
	if len(reply) < 2 || reply[1] == nil {
		b.waiters.Wake(key)
	}
	releases := subscription.Channel()
	for {
		select {
		case release, open := <-releases:
			if !open {
				return nil
			}
			if released, err := parseLock(release.Payload); err == nil {
				n, _ := lock.ParseFence(released.Fence)
				b.waiters.Free(key, version(n).Add(time.Nanosecond))
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// version orders what is heard of a lock: each holder has a higher fence.
func version(fence int64) time.Time { return time.Unix(fence, 0) }
