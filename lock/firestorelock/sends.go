package firestorelock

import (
	"context"
	"sync/atomic"
	"time"
)

// sendCounter is a context that notices how often a request is sent.
//
// The client library repeats a commit by itself when the connection breaks,
// and reports only the outcome of the last sending. For a delete with a
// version precondition that outcome is "wrong version" if the first sending
// was applied: the same as if somebody else had deleted the lock. To tell the
// two apart it must be known whether the commit was repeated, and neither the
// library nor gRPC says so. But every sending builds its header from the
// context's deadline, once or more, always equally often; so the number of
// questions for the deadline, compared with the smallest number a successful
// commit of this backend ever needed, tells.
//
// It errs on the safe side: without a reference, or with one that was itself
// inflated by a repetition, a commit counts as sent once, and a release is
// then reported as not ours although it was.
type sendCounter struct {
	context.Context
	asked atomic.Int64
}

func (c *sendCounter) Deadline() (time.Time, bool) {
	c.asked.Add(1)
	return c.Context.Deadline()
}

// countSends returns a context for one commit. The context must have a
// deadline, or the library adds one of its own that hides this one.
func countSends(ctx context.Context) *sendCounter { return &sendCounter{Context: ctx} }

// restart forgets what was sent before.
func (c *sendCounter) restart() { c.asked.Store(0) }

// learnSends takes the count of a successful commit as reference.
func (b *Backend) learnSends(c *sendCounter) {
	n := c.asked.Load()
	for {
		known := b.sendsPerCommit.Load()
		if n == 0 || (known != 0 && known <= n) || b.sendsPerCommit.CompareAndSwap(known, n) {
			return
		}
	}
}

// wasRepeated tells whether a failed commit was sent more than once.
func (b *Backend) wasRepeated(c *sendCounter) bool {
	known := b.sendsPerCommit.Load()
	return known != 0 && c.asked.Load() > known
}

// wasRepeatedBeforeRerun is wasRepeated at the start of a transaction's rerun:
// the request that began it has been sent as well, and asks as often.
func (b *Backend) wasRepeatedBeforeRerun(c *sendCounter) bool {
	known := b.sendsPerCommit.Load()
	return known != 0 && c.asked.Load() > 2*known
}
