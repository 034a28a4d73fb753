package httpapi

import (
	"golang.org/x/sync/semaphore"

	"github.com/dronefleet/dronefleet/app/live"
	"github.com/dronefleet/dronefleet/internal/identity"
)

// streamShare is how many streams the callers of one role may have open together. Two roles that use
// theirs up leave a part to the third.
const streamShare = live.MaxViewers * 2 / 5

// shares are the streams of each role.
type shares struct{ requesters, viewers, operators *semaphore.Weighted }

func newShares(each int64) shares {
	return shares{semaphore.NewWeighted(each), semaphore.NewWeighted(each), semaphore.NewWeighted(each)}
}

// join takes a stream from the share of the caller's role and returns the function that gives it
// back; nil if the share is used up.
func (s shares) join(c identity.Caller) (left func()) {
	share := s.requesters
	switch {
	case c.May(identity.Operator):
		share = s.operators
	case c.May(identity.Viewer):
		share = s.viewers
	}
	if !share.TryAcquire(1) {
		return nil
	}
	return func() { share.Release(1) }
}
