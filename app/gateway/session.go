package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/internal/meter"
)

const (
	// window is how many reports of one drone may be on their way to Pub/Sub.
	window = 32
	// maxQueued is how many messages wait for a drone that does not read; then it is
	// disconnected.
	maxQueued = 32
	// sendLimit is how long one message may take to be sent, by the machine's clock.
	sendLimit = 10 * time.Second
	// slowDownEvery is how often a drone is told that it sends too much.
	slowDownEvery = time.Second
	// publishLimit bounds the wait for Pub/Sub's answer. The publisher gives up earlier.
	publishLimit = 15 * time.Second
	// closeLimit bounds the time in which a session that ends tells the drone.
	closeLimit = 5 * time.Second
)

// session is one drone's session. It has no goroutine of its own while it has nothing to do:
// thousands of drones report once a second.
type session struct {
	gateway *Gateway
	who     dronelink.Identity
	hello   dronelink.Hello
	out     dronelink.Outlet
	id      string
	began   time.Time
	window  chan struct{} // holds a token for each report on its way
	closing chan struct{} // closed when the session takes nothing more
	ended   chan struct{} // closed when the drone was told, or cannot be

	// Used by the transport only.
	allowance allowance
	last      uint32 // highest sequence taken
	toldSlow  time.Time

	mu       sync.Mutex
	pending  []sentReport // in the order of their sequence
	waiting  bool         // a goroutine waits for the first of pending
	broken   bool         // a report was not published: none after it is acked
	queue    []dronelink.Message
	resumed  bool                // the resume is sent or queued
	held     []dronelink.Message // commands that wait for the resume
	ack      uint32              // to be sent; 0 if there is none
	sending  bool                // a goroutine sends
	over     bool                // closing is closed
	goodbye  bool
	why      *dronelink.Refusal
	told     bool // why is sent or being sent
	finished bool // ended is closed
	commands commandFilter
}

// sentReport is a report that is not acked yet. receipt is nil for one that was refused.
type sentReport struct {
	sequence uint32
	receipt  *receipt
	came     time.Time // by the machine's clock
}

// errOver is what a session says after it has ended without a reason to tell.
var errOver = errors.New("session has ended")

// Ended implements dronelink.Session.
func (s *session) Ended() <-chan struct{} { return s.ended }

// Why implements dronelink.Session.
func (s *session) Why() *dronelink.Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

func (s *session) err() error {
	if why := s.Why(); why != nil {
		return why
	}
	return errOver
}

// Goodbye implements dronelink.Session.
func (s *session) Goodbye() {
	s.mu.Lock()
	s.goodbye = true
	s.mu.Unlock()
	s.end(nil)
}

// Close implements dronelink.Session.
func (s *session) Close(why *dronelink.Refusal) { s.end(why) }

// Report implements dronelink.Session.
func (s *session) Report(ctx context.Context, r dronelink.Report) error {
	select {
	case <-s.closing:
		return s.err()
	default:
	}
	if err := s.admit(ctx); err != nil {
		return err
	}
	if r.Sequence == 0 {
		s.tell(&dronelink.Refusal{Reason: dronelink.Invalid, Text: "report: sequence is 0; number the reports of a session from 1"})
		return nil
	}
	if r.Sequence <= s.last {
		return nil
	}
	s.last = r.Sequence
	select {
	case s.window <- struct{}{}:
	case <-s.closing:
		return s.err()
	case <-ctx.Done():
		return ctx.Err()
	}
	came := time.Now()
	sent, err := s.gateway.publish(ctx, s.who.Drone, r)
	refused, is := errors.AsType[*dronelink.Refusal](err)
	switch {
	case is && refused.Final:
		s.gateway.cfg.Meter.Refused(string(refused.Reason))
		<-s.window
		s.end(refused)
		return refused
	case is:
		s.gateway.cfg.Meter.Refused(string(refused.Reason))
		s.tell(refused)
	case err != nil:
		<-s.window
		return err
	}
	s.await(sentReport{r.Sequence, sent, came})
	return nil
}

// admit waits until the drone may send another report.
func (s *session) admit(ctx context.Context) error {
	now := s.gateway.clock.Now()
	if wait := s.allowance.take(now); wait > 0 {
		if now.Sub(s.toldSlow) >= slowDownEvery {
			s.toldSlow = now
			s.tell(&dronelink.Refusal{Reason: dronelink.SlowDown, RetryAfter: wait,
				Text: fmt.Sprintf("more than %v reports a second; the gateway reads no faster than that", s.gateway.cfg.Rate)})
		}
		select {
		case <-s.gateway.clock.After(wait):
		case <-s.closing:
			return s.err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// checkCredentials returns why the drone's proof of who it is no longer counts; nil while it
// does.
func (s *session) checkCredentials(ctx context.Context) *dronelink.Refusal {
	if !s.who.Until.IsZero() && s.gateway.clock.Now().After(s.who.Until) {
		return expired()
	}
	if s.who.Holds == nil {
		return nil
	}
	refused, _ := errors.AsType[*dronelink.Refusal](s.who.Holds(ctx))
	return refused
}

// await acks a report once Pub/Sub has it and all before it.
func (s *session) await(r sentReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, r)
	if !s.waiting {
		s.waiting = true
		s.gateway.work.Go(s.awaitAll)
	}
}

// awaitAll waits for the pending reports, one after the other, until there is none.
func (s *session) awaitAll() {
	for {
		s.mu.Lock()
		if len(s.pending) == 0 {
			s.pending, s.waiting = nil, false
			if s.over {
				s.wake() // why was kept back for the last ack
			}
			s.mu.Unlock()
			return
		}
		next := s.pending[0]
		s.pending = s.pending[1:]
		s.mu.Unlock()
		err := next.wait()
		<-s.window
		s.mu.Lock()
		s.broken = s.broken || err != nil
		if !s.broken {
			s.ack = next.sequence
			s.wake()
		}
		s.count(next)
		s.mu.Unlock()
		if err != nil {
			s.end(unavailable(err))
		}
	}
}

// count counts a report that Pub/Sub has answered, or not. The lock must be held.
func (s *session) count(r sentReport) {
	switch {
	case r.receipt == nil: // counted as refused
	case s.broken:
		s.gateway.cfg.Meter.Failed.Inc()
	default:
		s.gateway.cfg.Meter.AckTook(time.Since(r.came))
	}
}

// wait returns an error if Pub/Sub does not have the report, as far as is known.
func (r sentReport) wait() error {
	if r.receipt == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), publishLimit)
	defer cancel()
	_, err := r.receipt.published.Wait(ctx)
	r.receipt.release()
	return err
}

// tell sends the drone a refusal that does not end the session.
func (s *session) tell(r *dronelink.Refusal) { s.send(dronelink.Message{Refusal: r}) }

// send queues a message, unless the drone must not have it. A drone that reads nothing is
// disconnected.
func (s *session) send(m dronelink.Message) {
	s.mu.Lock()
	full := !s.queueLocked(m)
	if m.Resume != nil {
		s.resumed = true
		for _, held := range s.held {
			full = !s.queueLocked(held) || full
		}
		s.held = nil
	}
	s.mu.Unlock()
	if full {
		s.end(notReading())
	}
}

// queueLocked queues a message and reports whether there was room. A drone that has restarted
// must know its mission before it hears of a change, so commands are held until the resume;
// a revocation is not.
func (s *session) queueLocked(m dronelink.Message) (room bool) {
	switch {
	case s.over:
		return true
	case m.Command != nil && !m.Command.Revoke && !s.resumed:
		s.held = append(s.held, m)
		return len(s.held) <= maxQueued
	case !s.commands.pass(m, s.gateway.clock.Now()):
		return true
	case len(s.queue) >= maxQueued:
		return false
	}
	s.queue = append(s.queue, m)
	s.wake()
	return true
}

// wake makes sure that somebody sends. The lock must be held.
func (s *session) wake() {
	if !s.sending && !s.finished {
		s.sending = true
		s.gateway.work.Go(s.sendAll)
	}
}

// sendAll sends what is queued, and last why the session has ended.
func (s *session) sendAll() {
	for {
		m, any := s.next()
		if !any {
			return
		}
		stuck := time.AfterFunc(sendLimit, func() { s.end(notReading()); s.finish() })
		err := s.out.Send(m)
		stuck.Stop()
		if err != nil { // the connection is gone
			s.end(nil)
			s.finish()
			continue
		}
		switch c := m.Command; {
		case c == nil:
		case c.Revoke:
			s.gateway.cfg.Meter.Revocations.Inc()
		default:
			s.gateway.cfg.Meter.Missions.Inc()
		}
	}
}

// next is the next message to send. After the last one the session is finished.
func (s *session) next() (m dronelink.Message, any bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.finished:
	case len(s.queue) > 0:
		m = s.queue[0]
		if s.queue = s.queue[1:]; len(s.queue) == 0 {
			s.queue = nil
		}
		return m, true
	case s.ack > 0:
		m.Ack, s.ack = s.ack, 0
		return m, true
	case s.over && s.waiting: // for an ack; awaitAll wakes again
	case s.over && s.why != nil && !s.told:
		s.told = true
		return dronelink.Message{Refusal: s.why}, true
	case s.over:
		s.finishLocked()
	}
	s.sending = false
	return m, false
}

// end lets the session take nothing more. What is on its way to Pub/Sub is still acked, and
// then the drone is told why, if there is a reason.
func (s *session) end(why *dronelink.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over, s.why = true, why
	close(s.closing)
	s.wake()
	time.AfterFunc(closeLimit, s.finish)
}

// finish ends the session at once.
func (s *session) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishLocked()
}

func (s *session) finishLocked() {
	if !s.finished {
		s.finished = true
		close(s.ended)
		s.gateway.leave(s)
		s.gateway.cfg.Meter.Ended(s.reason())
		s.out.Close(s.why)
	}
}

// reason is why the session has ended, for the meter. The lock must be held.
func (s *session) reason() string {
	switch {
	case s.why != nil:
		return string(s.why.Reason)
	case s.goodbye:
		return meter.LinkGoodbye
	}
	return meter.LinkDisconnected
}

func notReading() *dronelink.Refusal {
	return &dronelink.Refusal{Reason: dronelink.NotReading, Final: true, Text: "the drone does not read what it is sent; read the stream all the time"}
}
