package fleetsim

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/sim/invariant"
)

// Publisher publishes a message. It must not wait for the server: the result
// does. An empty ordering key means none. The publisher may keep the attributes.
type Publisher interface {
	Publish(ctx context.Context, topic string, data []byte, attrs map[string]string, orderingKey string) Result
}

// Result is the result of a publish; pubsubio.Published is one.
type Result interface {
	// Wait waits for the server's message id or for the error.
	Wait(ctx context.Context) (messageID string, err error)
}

// PublishStats counts messages since the start.
type PublishStats struct {
	Sent      int64 `json:"sent"`      // handed to the publisher
	Confirmed int64 `json:"confirmed"` // the server gave an id
	Failed    int64 `json:"failed"`    // the server refused or never answered
	Skipped   int64 `json:"skipped"`   // not sent, because too many answers were outstanding
}

// maxOutstanding bounds the unanswered messages of one sender, so that a network
// that stops answering costs reports, not memory.
const maxOutstanding = 16_384

// drainTime is how long a stopping sender waits for outstanding answers.
const drainTime = 5 * time.Second

// sender publishes without waiting and collects each message that the server
// confirmed. One goroutine awaits the answers, in order.
type sender struct {
	publisher     Publisher
	confirmations *Confirmations
	clock         clockwork.Clock
	pending       chan pendingMessage
	giveUp        context.CancelFunc
	done          sync.WaitGroup

	sent, confirmed, failed, skipped atomic.Int64
}

type pendingMessage struct {
	result  Result
	message invariant.Message
}

func newSender(p Publisher, c *Confirmations, clock clockwork.Clock) *sender {
	return &sender{publisher: p, confirmations: c, clock: clock, pending: make(chan pendingMessage, maxOutstanding)}
}

// start begins to await answers, even beyond the end of ctx: a message that the
// server has taken is confirmed.
func (s *sender) start(ctx context.Context) {
	waiting, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	s.giveUp = giveUp
	s.done.Go(func() {
		for p := range s.pending {
			id, err := p.result.Wait(waiting)
			if err != nil {
				s.failed.Add(1)
				continue
			}
			s.confirmed.Add(1)
			p.message.ID = id
			s.confirmations.Add(p.message)
		}
	})
}

// stop waits for outstanding answers, at most drainTime. Nothing may be sent
// after it.
func (s *sender) stop() {
	close(s.pending)
	timer := s.clock.AfterFunc(drainTime, s.giveUp)
	s.done.Wait()
	timer.Stop()
	s.giveUp()
}

// send publishes unless too much is outstanding. It must not be called by two
// goroutines at once.
func (s *sender) send(ctx context.Context, data []byte, attrs map[string]string, key string, m invariant.Message) {
	if len(s.pending) == cap(s.pending) {
		s.skipped.Add(1)
		return
	}
	s.sent.Add(1)
	s.pending <- pendingMessage{s.publisher.Publish(ctx, m.Topic, data, attrs, key), m}
}

func (s *sender) stats() PublishStats {
	return PublishStats{
		Sent: s.sent.Load(), Confirmed: s.confirmed.Load(), Failed: s.failed.Load(), Skipped: s.skipped.Load(),
	}
}
