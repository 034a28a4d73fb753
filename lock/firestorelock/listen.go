package firestorelock

import (
	"context"

	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/lock/internal/waitline"
)

// Watch implements lock.Waiter.
func (b *Backend) Watch(key string) (<-chan struct{}, func()) { return b.waiters.Watch(key) }

// follow wakes the first waiter whenever the lock is seen absent or over.
func (b *Backend) follow(ctx context.Context, key string) error {
	at, err := b.locate(key)
	if err != nil {
		return err
	}
	changes := at.lock.Snapshots(ctx)
	defer changes.Stop()
	for {
		doc, err := changes.Next()
		if rpcCode(err) == codes.Unimplemented {
			return waitline.ErrUnsupported
		}
		if err != nil {
			return err
		}
		if !doc.Exists() || !lockOf(doc).liveAt(b.instantSeen(doc.ReadTime)) {
			b.waiters.Free(at.key, doc.ReadTime)
		}
	}
}

// Close waits for background work, at most until ctx ends (ErrAborted). The client stays open
// and locks stay held. Calls still work, but start nothing optional.
func (b *Backend) Close(ctx context.Context) error {
	b.waiters.Close()
	return b.tasks.Close(ctx)
}
