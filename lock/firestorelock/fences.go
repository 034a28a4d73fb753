package firestorelock

import (
	"context"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/tasks"
)

var _ lock.FenceReader = (*Backend)(nil)

// HighestFence implements lock.FenceReader: 1 RPC, 2 reads. A resource in the same
// database can read the counter in its own transaction instead; see [Config.CounterPath].
func (b *Backend) HighestFence(ctx context.Context, key string) (lock.Fence, error) {
	fail := func(err error) (lock.Fence, error) { return "", classify(ctx, err).At("highestFence", key, "") }
	at, err := b.locate(key)
	if err != nil {
		return fail(err)
	}
	if ctx.Err() != nil {
		return fail(lock.AbortedBy(ctx))
	}
	fence, err := tasks.Read(ctx, &b.tasks, func(ctx context.Context) (lock.Fence, error) {
		docs, err := b.client.GetAll(ctx, []*firestore.DocumentRef{at.counter, at.legacy})
		if err != nil {
			return "", err
		}
		for _, doc := range docs { // the legacy counter counts until there is another
			if !doc.Exists() {
				continue
			}
			counter, err := decodeCounter(doc.Data())
			if err != nil {
				return "", err
			}
			return lock.HighestFence(counter)
		}
		return "", nil
	})
	if err != nil {
		return fail(err)
	}
	return fence, nil
}
