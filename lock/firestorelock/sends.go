package firestorelock

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
)

// DialOption lets a backend see how often its client sends a commit. Dial the client's
// connection with it: option.WithGRPCDialOption(firestorelock.DialOption()).
//
// The client library resends a commit when the connection breaks and reports only the last
// outcome. For a delete whose first sending was applied that is "wrong version", as if somebody
// else had deleted the lock. Without the option every commit counts as sent once, and the
// backend logs one warning: it may report an applied release as OK=false, and an acquisition
// whose lock may still appear as one of known outcome.
func DialOption() grpc.DialOption { return grpc.WithStatsHandler(sendStats{}) }

// commitMethod is the one RPC whose sendings count.
const commitMethod = "/google.firestore.v1.Firestore/Commit"

// sendCounter counts how often the commits of one context were sent.
type sendCounter struct{ sent atomic.Int64 }

type sendCounterKey struct{}

// countSends returns a context for one commit, and its counter.
func countSends(ctx context.Context) (context.Context, *sendCounter) {
	c := new(sendCounter)
	return context.WithValue(ctx, sendCounterKey{}, c), c
}

// restart forgets what was sent before.
func (c *sendCounter) restart() { c.sent.Store(0) }

// repeated reports whether a commit was sent more than once.
func (c *sendCounter) repeated() bool { return c.sent.Load() > 1 }

// noteSends warns once of a client that does not count sendings: it counted none of a commit
// that succeeded.
func (b *Backend) noteSends(c *sendCounter) {
	if c.sent.Load() == 0 && b.logged.first("no DialOption") {
		b.log.Warn("repeated commits cannot be recognised; dial the Firestore client with firestorelock.DialOption")
	}
}

// sendStats is a stats.Handler that counts commits whose header was sent.
type sendStats struct{}

func (sendStats) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if header, ok := s.(*stats.OutHeader); ok && header.FullMethod == commitMethod {
		if c, ok := ctx.Value(sendCounterKey{}).(*sendCounter); ok {
			c.sent.Add(1)
		}
	}
}

func (sendStats) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (sendStats) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (sendStats) HandleConn(context.Context, stats.ConnStats)                       {}
