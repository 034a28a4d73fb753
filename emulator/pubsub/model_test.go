package pubsubemu_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

// history is what any number of publishers published to one topic. Each publisher
// has its own ordering keys, so each key has one order.
type history struct {
	tick atomic.Uint64 // orders the beginnings and ends of calls
	mu   sync.Mutex
	sent []*sent
}

// sent is one published message.
type sent struct {
	text  string
	key   string
	even  bool  // what filters select
	at    int64 // publish time
	began uint64
	ended uint64 // 0 until the publish was answered
}

// begin enters messages before they are published.
func (h *history) begin(messages []*sent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	began := h.tick.Add(1)
	for _, m := range messages {
		m.began = began
	}
	h.sent = append(h.sent, messages...)
}

func (h *history) end(messages []*sent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ended := h.tick.Add(1)
	for _, m := range messages {
		m.ended = ended
	}
}

type fate uint8

const (
	waiting fate = iota // to be delivered
	backing             // backs off until due
	out                 // leased until due
	behind              // acked, but after an unacked one of its key
	settled             // acked, forwarded or purged
)

// held is a message in a modelled subscription.
type held struct {
	*sent
	place    int // in the topic's history
	fate     fate
	due      int64
	ackID    string
	turn     uint64 // number of the delivery
	consumer int
	failures int32
	maybe    bool // published while the subscription was created: it may not have the message
}

// model says what a subscription must deliver. One goroutine uses it and makes all
// calls as a consumer of the subscription; others may publish. Every call is made
// while the server's clock stands still.
type model struct {
	config *pubsubpb.Subscription
	topic  *history
	born   uint64 // when its creation began
	alive  uint64 // when its creation had ended

	absorbed  int
	messages  map[string]*held
	keys      map[string][]*held // not settled, in order; of an ordered subscription
	leases    map[string]*held   // by ack id
	once      map[string]bool    // ack ids that were settled with success
	snapshots map[string]map[string]bool
	turns     uint64
	consumers int
	lost      int            // forwards counted by an earlier start of the server
	forwarded map[string]int // times each message went to the dead-letter topic
	faults    []string
}

func newModel(config *pubsubpb.Subscription, topic *history, born, alive uint64) *model {
	return &model{
		config: config, topic: topic, born: born, alive: alive, messages: map[string]*held{}, keys: map[string][]*held{},
		leases: map[string]*held{}, once: map[string]bool{}, snapshots: map[string]map[string]bool{}, forwarded: map[string]int{},
	}
}

func (m *model) fault(format string, args ...any) {
	m.faults = append(m.faults, idOf(m.config.Name)+": "+fmt.Sprintf(format, args...))
}

// absorb adds what was published since the last call.
func (m *model) absorb() {
	m.topic.mu.Lock()
	defer m.topic.mu.Unlock()
	for ; m.absorbed < len(m.topic.sent); m.absorbed++ {
		s := m.topic.sent[m.absorbed]
		if m.config.Filter != "" && !s.even || s.ended != 0 && s.ended < m.born {
			continue
		}
		h := &held{sent: s, place: m.absorbed, maybe: s.began < m.alive}
		m.messages[s.text] = h
		if m.ordered(h) {
			m.keys[s.key] = append(m.keys[s.key], h)
		}
	}
}

func (m *model) ordered(h *held) bool { return m.config.EnableMessageOrdering && h.key != "" }

// delivered checks a delivery, and leases it until due.
func (m *model) delivered(r *pubsubpb.ReceivedMessage, consumer int, now, due int64) {
	m.absorb()
	text := string(r.Message.Data)
	h := m.messages[text]
	if h == nil {
		m.fault("%s was delivered, but does not pass the filter or is older than the subscription", text)
		return
	}
	switch {
	case h.fate == settled || h.fate == behind:
		m.fault("%s was delivered after its ack", text)
	case h.fate == out:
		m.fault("%s was delivered while its lease ran", text)
	case h.fate == backing && now < h.due:
		m.fault("%s was delivered %v before its backoff ended", text, time.Duration(h.due-now))
	}
	want := int32(0)
	if m.config.DeadLetterPolicy != nil {
		want = h.failures + 1
	}
	if r.DeliveryAttempt != want {
		m.fault("%s was delivered as attempt %d, not %d", text, r.DeliveryAttempt, want)
	}
	if m.ordered(h) {
		m.keys[h.key] = slices.DeleteFunc(m.keys[h.key], func(e *held) bool { // skipped: the subscription did not get it
			return e.maybe && e.fate == waiting && e.place < h.place
		})
		for _, e := range m.keys[h.key] {
			switch {
			case e == h:
			case e.fate == out && e.consumer != consumer:
				m.fault("%s was delivered while another consumer has %s of its key", text, e.text)
			case e.place < h.place && (e.fate == waiting || e.fate == backing):
				m.fault("%s was delivered before %s of its key", text, e.text)
			}
		}
	}
	m.endLease(h)
	m.turns++
	h.fate, h.due, h.consumer, h.turn, h.ackID, h.maybe = out, due, consumer, m.turns, r.AckId, false
	m.leases[r.AckId] = h
}

// letters is how many messages went to the dead-letter topic.
func (m *model) letters() int {
	n := 0
	for _, times := range m.forwarded {
		n += times
	}
	return n
}

func (m *model) endLease(h *held) {
	delete(m.leases, h.ackID)
	h.ackID = ""
}

// outcome of an ack id with exactly-once delivery.
type outcome uint8

const (
	valid outcome = iota
	invalid
	unordered
	either // answered once already
)

// live lists the leases that ack ids name, in order of delivery, and adds the answers
// for those that name none.
func (m *model) live(ids []string, answers map[string]outcome) []*held {
	var out []*held
	for _, id := range ids {
		switch {
		case m.leases[id] != nil:
			out = append(out, m.leases[id])
		case m.once[id]:
			answers[id] = either
		default:
			answers[id] = invalid
		}
	}
	slices.SortFunc(out, func(a, b *held) int { return cmp.Compare(a.turn, b.turn) })
	return out
}

func (m *model) ack(ids []string) map[string]outcome {
	answers := map[string]outcome{}
	for _, h := range m.live(ids, answers) {
		id := h.ackID
		after := m.ordered(h) && m.keys[h.key][0] != h
		if after && m.config.EnableExactlyOnceDelivery {
			answers[id] = unordered
			continue
		}
		answers[id], m.once[id] = valid, true
		m.endLease(h)
		if h.fate = behind; !after {
			m.settle(h)
		}
	}
	return answers
}

// settle ends a message, and the acked ones of its key that only waited for it.
func (m *model) settle(h *held) {
	m.endLease(h)
	h.fate = settled
	if !m.ordered(h) {
		return
	}
	m.keys[h.key] = slices.DeleteFunc(m.keys[h.key], func(e *held) bool { return e == h })
	for key := m.keys[h.key]; len(key) > 0 && key[0].fate == behind; key = m.keys[h.key] {
		key[0].fate = settled
		m.keys[h.key] = key[1:]
	}
}

func (m *model) nack(ids []string, now int64) map[string]outcome {
	answers := map[string]outcome{}
	live := m.live(ids, answers)
	for _, h := range slices.Backward(live) {
		answers[h.ackID], m.once[h.ackID] = valid, true
		m.giveBack(h, now, true)
	}
	return answers
}

func (m *model) extend(ids []string, due int64) map[string]outcome {
	answers := map[string]outcome{}
	for _, h := range m.live(ids, answers) {
		answers[h.ackID], h.due = valid, due
	}
	return answers
}

func (m *model) giveBack(h *held, now int64, backOff bool) {
	if m.ordered(h) {
		for _, e := range m.keys[h.key] {
			if e.place > h.place {
				m.endLease(e)
				e.fate = waiting
			}
		}
	}
	m.endLease(h)
	h.fate = waiting
	h.failures++
	if p := m.config.DeadLetterPolicy; p != nil && h.failures >= p.MaxDeliveryAttempts {
		m.forwarded[h.text]++
		m.settle(h)
		return
	}
	if p := m.config.RetryPolicy; p != nil && backOff {
		h.fate, h.due = backing, now+int64(p.MinimumBackoff.AsDuration())
	}
}

func (m *model) byTurn() []*held {
	return slices.SortedFunc(maps.Values(m.leases), func(a, b *held) int { return cmp.Compare(a.turn, b.turn) })
}

// advanced ends leases and backoffs. Leases of one key that end together end from the
// last to the first.
func (m *model) advanced(now int64) {
	leased := m.byTurn()
	slices.SortStableFunc(leased, func(a, b *held) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(b.turn, a.turn))
	})
	for _, h := range leased {
		if h.fate == out && h.due <= now {
			m.giveBack(h, h.due, true)
		}
	}
	for _, h := range m.messages {
		if h.fate == backing && h.due <= now {
			h.fate = waiting
		}
	}
}

// snapshot remembers what is acked.
func (m *model) snapshot(name string) {
	m.absorb()
	acked := map[string]bool{}
	for text, h := range m.messages {
		if h.fate == settled || h.fate == behind {
			acked[text] = true
		}
	}
	m.snapshots[name] = acked
}

func (m *model) seekSnapshot(name string) {
	acked := m.snapshots[name]
	m.seek(func(h *held) bool { return !acked[h.text] }, true)
}

func (m *model) seekTime(at int64) {
	m.seek(func(h *held) bool { return h.at >= at }, m.config.RetainAckedMessages)
}

// seek makes the wanted messages unacked if they are retained, and acks the rest.
func (m *model) seek(wanted func(*held) bool, retained bool) {
	m.absorb()
	clear(m.keys)
	for _, h := range m.inOrder() {
		switch {
		case !wanted(h):
			m.endLease(h)
			h.fate = settled
		case h.fate == settled && retained, h.fate == behind:
			h.fate, h.failures = waiting, 0
		case h.fate == out && (m.ordered(h) || !m.config.EnableExactlyOnceDelivery),
			h.fate == backing && m.ordered(h):
			m.endLease(h)
			h.fate = waiting
		}
		if m.ordered(h) && h.fate != settled {
			m.keys[h.key] = append(m.keys[h.key], h)
		}
	}
}

func (m *model) inOrder() []*held {
	return slices.SortedFunc(maps.Values(m.messages), func(a, b *held) int { return cmp.Compare(a.place, b.place) })
}

// restarted forgets what the server forgets in a restart.
func (m *model) restarted() {
	m.absorb()
	for _, h := range m.messages {
		m.endLease(h)
		h.failures = 0
		if h.fate != settled {
			h.fate = waiting
		}
	}
	clear(m.once)
}

// nothingToGive checks that a Pull was right to answer with fewer messages than asked
// for: no message published before tick was deliverable.
func (m *model) nothingToGive(tick uint64) {
	m.absorb()
	m.topic.mu.Lock()
	defer m.topic.mu.Unlock()
	for _, h := range m.messages {
		if h.fate != waiting || h.maybe || h.ended == 0 || h.ended > tick {
			continue
		}
		if !m.ordered(h) || !slices.ContainsFunc(m.keys[h.key], func(e *held) bool {
			return e.fate == out || e.fate == backing && e.place < h.place
		}) {
			m.fault("%s is neither acked nor delivered", h.text)
		}
	}
}
