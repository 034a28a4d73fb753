package firestorelock

import (
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

// held is what the backend remembers of a lease it acquired, until the lease is over. It
// makes keyed calls cheap, and without it a nested lock is not found by its id.
type held struct {
	base        string
	version     time.Time // update time of the lock document
	expiresAtMs int64
	serverEnd   time.Time // when it is over by the server's clock; zero if unknown
	deadline    time.Time // when the holder must stop
	nested      bool
}

func (b *Backend) remember(lockID string, h held) {
	nowMs := b.clock.Now().UnixMilli()
	b.leases.Put(lockID, h, func(h held) bool { return !lock.IsLive(h.expiresAtMs, nowMs) })
}
