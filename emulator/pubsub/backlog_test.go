package pubsubemu

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
	"weak"

	"pgregory.net/rapid"
)

// check verifies every invariant of a backlog's structure.
func (b *backlog) check() error {
	unacked, last := 0, uint64(0)
	outstanding := map[*consumer]int64{}
	for e := b.all.head; e != nil; e = b.all.after(e) {
		if e.arrival <= last || e.arrival > b.lastArrival {
			return fmt.Errorf("message %d: arrival %d after %d, newest %d", e.msg.id, e.arrival, last, b.lastArrival)
		}
		last = e.arrival
		if e.state != stateAcked {
			unacked++
		}
		if e.state == stateLeased {
			if b.leases[e.lease] != e {
				return fmt.Errorf("message %d: lease %d belongs to another message", e.msg.id, e.lease)
			}
			if e.holder != nil {
				outstanding[e.holder]++
			}
		}
		if timed := e.state == stateLeased || e.state == stateDelayed; timed != (e.timer >= 0) {
			return fmt.Errorf("message %d: state %d, timer %d", e.msg.id, e.state, e.timer)
		}
		if e.timer >= 0 && b.timers.entries[e.timer] != e {
			return fmt.Errorf("message %d: timer %d belongs to another message", e.msg.id, e.timer)
		}
		if queued := e.state == stateReady && e.key == nil; queued != (e.queue != nil) {
			return fmt.Errorf("message %d: state %d, queued %v", e.msg.id, e.state, e.queue != nil)
		}
		if e.state != stateAcked && b.rules.ordered && e.msg.key != "" && (e.key == nil || b.keys[e.msg.key] != e.key) {
			return fmt.Errorf("message %d is missing in its key", e.msg.id)
		}
	}
	if unacked != b.unacked {
		return fmt.Errorf("%d unacked, counted %d", unacked, b.unacked)
	}
	promised := 0
	for c := range b.consumers {
		if c.promised {
			promised++
		}
		if c.waiting != slices.Contains(b.idle, c) || c.waiting && c.promised {
			return fmt.Errorf("consumer waiting %v, promised %v, idle %v", c.waiting, c.promised, slices.Contains(b.idle, c))
		}
		if c.messages != outstanding[c] || c.maxMessages > 0 && c.messages > c.maxMessages || c.bytes < 0 {
			return fmt.Errorf("consumer has %d outstanding, counts %d (%d bytes) of %d", outstanding[c], c.messages, c.bytes, c.maxMessages)
		}
	}
	if promised != b.promises {
		return fmt.Errorf("%d promised, counted %d", promised, b.promises)
	}
	for name, k := range b.keys {
		if err := k.check(b); err != nil {
			return fmt.Errorf("key %s: %w", name, err)
		}
	}
	return nil
}

func (k *keyQueue) check(b *backlog) error {
	inFlight, forwarding, delivered, last := 0, 0, true, uint64(0)
	for e := k.entries.head; e != nil; e = k.entries.after(e) {
		if e.arrival <= last {
			return fmt.Errorf("message %d: arrival %d after %d", e.msg.id, e.arrival, last)
		}
		last = e.arrival
		if e == k.next {
			delivered = false
		}
		if e.state == stateLeased {
			inFlight++
		}
		if e.state == stateForwarding {
			forwarding++
		}
		waits := e.state == stateReady || e.state == stateDelayed
		if e.state != stateForwarding && waits == delivered {
			return fmt.Errorf("message %d: state %d, delivered %v", e.msg.id, e.state, delivered)
		}
	}
	if forwarding != k.forwarding {
		return fmt.Errorf("%d forwarding, counted %d", forwarding, k.forwarding)
	}
	if inFlight != k.inFlight || k.entries.n == 0 {
		return fmt.Errorf("%d in flight, counted %d; %d entries", inFlight, k.inFlight, k.entries.n)
	}
	if k.entries.head.state == stateAcked {
		return fmt.Errorf("message %d is acked and kept, but it is the first of its key", k.entries.head.msg.id)
	}
	if inFlight == 0 && (k.owner != nil || k.orphaned) {
		return fmt.Errorf("bound with nothing in flight")
	}
	var target *keyList
	if k.deliverable() {
		target = &b.free
		if k.owner != nil {
			target = &k.owner.keys
		}
	}
	if k.in != target {
		return fmt.Errorf("listed in %p, want %p", k.in, target)
	}
	return nil
}

// TestBacklog_AnySequence runs random operations and checks the structure after
// each; then one consumer must be able to drain it. P-DEL-01, P-DEL-02,
// P-DEL-03, P-DEL-04, P-DEL-05, P-DEL-06, P-SEEK-01
func TestBacklog_AnySequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rules{
			ackDeadline: 10 * time.Second, retention: time.Hour,
			ordered:     rapid.Bool().Draw(t, "ordered"),
			exactlyOnce: rapid.Bool().Draw(t, "exactly once"),
			retainAcked: rapid.Bool().Draw(t, "retain"),
		}
		if rapid.Bool().Draw(t, "retry") {
			r.retry, r.minBackoff, r.maxBackoff = true, time.Second, 8*time.Second
		}
		if rapid.Bool().Draw(t, "dead letters") {
			r.maxAttempts = 2
		}
		b := newBacklog(r)
		now, id := int64(0), uint64(0)
		var streams []*consumer
		var leases []uint64
		var published []*message
		acked := map[uint64]bool{}
		stream := func(t *rapid.T) *consumer {
			if len(streams) == 0 {
				t.Skip("no stream")
			}
			return rapid.SampledFrom(streams).Draw(t, "stream")
		}
		lease := func(t *rapid.T) uint64 {
			if len(leases) == 0 {
				t.Skip("no lease")
			}
			return rapid.SampledFrom(leases).Draw(t, "lease")
		}
		actions := map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				var msgs []*message
				racing := rapid.Bool().Draw(t, "racing") // ids are drawn before the messages arrive
				for range rapid.IntRange(1, 4).Draw(t, "messages") {
					id++
					key := rapid.SampledFrom([]string{"", "k", "l"}).Draw(t, "key")
					msgs = append(msgs, &message{id: id, size: 10, key: key, stored: now, published: time.Unix(0, now)})
				}
				if racing {
					slices.Reverse(msgs)
				}
				b.add(msgs)
				published = append(published, msgs...)
				b.wakeIdle()
			},
			"open": func(t *rapid.T) {
				c := newConsumer(rapid.Int64Range(0, 3).Draw(t, "most"), rapid.SampledFrom([]int64{0, 5, 25}).Draw(t, "bytes"))
				b.open(c)
				streams = append(streams, c)
			},
			"close": func(t *rapid.T) {
				c := stream(t)
				c.halfClosed = rapid.Bool().Draw(t, "half-closed")
				b.close(c, now)
				streams = slices.DeleteFunc(streams, func(o *consumer) bool { return o == c })
			},
			"take": func(t *rapid.T) {
				c := stream(t)
				taken := b.take(c, nil, batchLimits{messages: 5, bytes: 100}, now)
				last := map[string]uint64{}
				for _, e := range taken {
					if r.exactlyOnce && acked[e.msg.id] {
						t.Fatalf("message %d delivered after its ack", e.msg.id)
					}
					if r.ordered && e.msg.key != "" && e.arrival < last[e.msg.key] {
						t.Fatalf("message %d, arrival %d, after %d of its key", e.msg.id, e.arrival, last[e.msg.key])
					}
					last[e.msg.key] = e.arrival
					leases = append(leases, e.lease)
				}
				if len(taken) == 0 {
					b.wait(c)
				}
			},
			"ack": func(t *rapid.T) {
				l := lease(t)
				e := b.leases[l]
				if b.acknowledge(l, now) == ackApplied && e != nil {
					acked[e.msg.id] = true
				}
				b.wakeIdle()
			},
			"nack":   func(t *rapid.T) { b.nack(lease(t), now); b.wakeIdle() },
			"extend": func(t *rapid.T) { b.extend(lease(t), now+int64(10*time.Minute)) },
			"time": func(t *rapid.T) {
				now += int64(rapid.SampledFrom([]time.Duration{time.Second, 11 * time.Second, 9 * time.Minute, 40 * time.Minute}).Draw(t, "pause"))
				b.advance(now)
			},
			"forward": func(t *rapid.T) {
				forwards := b.forwards
				b.forwards = nil
				for _, e := range forwards {
					b.forwarded(e, rapid.Bool().Draw(t, "forwarded"), now)
				}
			},
			"seek": func(t *rapid.T) {
				at := time.Unix(0, rapid.Int64Range(0, now).Draw(t, "at"))
				wanted := func(m *message) bool { return !m.published.Before(at) }
				var extra []*message // what a topic that retains its messages has
				if rapid.Bool().Draw(t, "replay") {
					for _, m := range published {
						if wanted(m) {
							extra = append(extra, m)
						}
					}
				}
				b.seek(wanted, extra)
				clear(acked) // a replay may bring them back
			},
			"": func(t *rapid.T) {
				if err := b.check(); err != nil {
					t.Fatal(err)
				}
			},
		}
		t.Repeat(actions)

		for _, c := range streams {
			b.close(c, now)
		}
		drain := newConsumer(0, 0)
		b.open(drain)
		for round := 0; b.unacked > 0; round++ {
			if round > 1000 {
				t.Fatalf("%d messages cannot be drained", b.unacked)
			}
			for _, e := range b.forwards {
				b.forwarded(e, true, now)
			}
			b.forwards = nil
			for _, e := range b.take(drain, nil, batchLimits{messages: 100, bytes: 1 << 20}, now) {
				b.acknowledge(e.lease, now)
			}
			now += int64(5 * time.Minute)
			b.advance(now)
			if err := b.check(); err != nil {
				t.Fatal(err)
			}
		}
		if len(b.leases)+len(b.timers.entries)+len(b.keys)+b.again.n+b.fresh.n+b.free.n+b.promises != 0 {
			t.Fatalf("left over after draining: %+v", b)
		}
	})
}

// Publishers draw ids before they take a lock, so the first message of a key may
// have the greater id. If it cannot be forwarded as a dead letter, the key is still
// delivered in the order in which its messages arrived. P-DEL-02, P-DEL-04
func TestBacklog_FailedForwardKeepsPlaceInKey(t *testing.T) {
	for name, arrive := range map[string]func(b *backlog, msgs []*message){
		"published": func(b *backlog, msgs []*message) { b.add(msgs) },
		"restored": func(b *backlog, msgs []*message) {
			b.add(msgs[1:])
			b.seek(func(*message) bool { return true }, msgs[:1])
		},
	} {
		b, c := newBacklog(rules{ackDeadline: time.Minute, retention: time.Hour, ordered: true, maxAttempts: 1}), newConsumer(0, 0)
		b.open(c)
		var msgs []*message
		for _, id := range []uint64{6, 5, 7} {
			if name == "restored" {
				id = uint64(4 + len(msgs)) // a restored message takes its place by id
			}
			msgs = append(msgs, &message{id: id, key: "k"})
		}
		arrive(b, msgs)
		b.nack(b.take(c, nil, batchLimits{messages: 1, bytes: 1}, 0)[0].lease, 0)
		if len(b.forwards) != 1 || b.forwards[0].msg != msgs[0] {
			t.Fatalf("%s: forwards %v, want the first message", name, b.forwards)
		}
		b.forwarded(b.forwards[0], false, 0)
		if err := b.check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []*message
		for _, e := range b.take(c, nil, batchLimits{messages: 9, bytes: 1}, 0) {
			got = append(got, e.msg)
			b.acknowledge(e.lease, 0)
		}
		if !slices.Equal(got, msgs) || b.unacked != 0 {
			t.Errorf("%s: after a failed forward %d of %d messages came, in order %v; %d unacked",
				name, len(got), len(msgs), slices.Equal(got, msgs), b.unacked)
		}
	}
}

func TestBacklog_FreesAckedMessages(t *testing.T) { // P-DEL-01, P-PF-01
	b := newBacklog(rules{ackDeadline: time.Minute, retention: time.Hour, ordered: true})
	c := newConsumer(0, 0)
	b.open(c)
	var watched []weak.Pointer[message]
	for i := range 100 {
		m := &message{id: uint64(i + 1), wire: make([]byte, 100), key: []string{"", "k"}[i%2]}
		watched = append(watched, weak.Make(m))
		b.add([]*message{m})
	}
	for _, e := range b.take(c, nil, batchLimits{messages: 99, bytes: 1 << 20}, 0) {
		b.acknowledge(e.lease, 0)
	}
	runtime.GC()
	alive := 0
	for _, w := range watched {
		if w.Value() != nil {
			alive++
		}
	}
	if alive != 1 { // the one not taken
		t.Errorf("%d messages alive, want 1", alive)
	}
	runtime.KeepAlive(b)
}

// Drained keys take no memory, however many there were at once. P-PF-01
func TestBacklog_FreesDrainedKeys(t *testing.T) {
	b, c := newBacklog(rules{ackDeadline: time.Minute, retention: time.Hour, ordered: true}), newConsumer(0, 0)
	b.open(c)
	roomy := reflect.ValueOf(b.keys).Pointer()
	for i := range uint64(roomyMap + 1) {
		b.add([]*message{{id: i, key: strconv.FormatUint(i, 10)}})
	}
	for _, e := range b.take(c, nil, batchLimits{messages: roomyMap + 1, bytes: 1}, 0) {
		b.acknowledge(e.lease, 0)
	}
	if len(b.keys) != 0 || reflect.ValueOf(b.keys).Pointer() == roomy {
		t.Errorf("%d keys, in a map with room for %d", len(b.keys), roomyMap)
	}
}

// An acked message waits in its key for the earlier ones. When the last of these
// reaches the end of its retention, the acked one and those acked after it are
// freed. P-DEL-01, P-DEL-04
func TestBacklog_FreesAckedBehindExpired(t *testing.T) {
	b, c := newBacklog(rules{ackDeadline: 10 * time.Minute, retention: time.Hour, ordered: true}), newConsumer(0, 0)
	b.open(c)
	late := int64(59 * time.Minute)
	b.add([]*message{{id: 1, key: "k"}, {id: 2, key: "k", stored: late}})
	taken := b.take(c, nil, batchLimits{messages: 2, bytes: 1}, late)
	b.acknowledge(taken[1].lease, late)
	b.advance(int64(time.Hour))
	if b.all.n != 0 || len(b.keys) != 0 {
		t.Errorf("%d messages and %d keys held, all acked or past their retention", b.all.n, len(b.keys))
	}
}

func TestBackoff_DoublesUpToMaximum(t *testing.T) { // P-DEL-03
	for failures, want := range map[int32]time.Duration{
		1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second, 7: 600 * time.Second, 1 << 30: 600 * time.Second,
	} {
		if got := backoff(defaultMinBackoff, defaultMaxBackoff, failures); got != want {
			t.Errorf("after %d failures %v, want %v", failures, got, want)
		}
	}
	if got := backoff(0, 0, 5); got != 0 {
		t.Errorf("without a backoff %v", got)
	}
}

// A stream that waits when its subscription ends is closed on the empty backlog that
// replaced the old one. P-RPC-01
func TestBacklog_DisbandedConsumersMayLeave(t *testing.T) {
	old, c := newBacklog(rules{}), newConsumer(0, 0)
	old.open(c)
	old.wait(c)
	old.disband()
	after := newBacklog(rules{})
	after.close(c, 0)
	if err := after.check(); err != nil || c.waiting || c.promised {
		t.Errorf("waiting %v, promised %v: %v", c.waiting, c.promised, err)
	}
}
