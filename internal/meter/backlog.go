package meter

import (
	"maps"
	"sync"
	"time"
)

// Backlog tracks the messages of one kind that a process holds and has not settled. It
// is safe for concurrent use. Hold and Release cost one map access each, however many
// messages are held.
type Backlog struct {
	now func() time.Time

	mu       sync.Mutex
	held     map[int64]int64 // messages by publish time, in units of backlogGrain
	messages int64
}

// backlogGrain is the resolution of the age.
const backlogGrain = 10 * time.Millisecond

// Backlog returns the backlog of one kind. now must be the clock that publish times
// come from.
func (m *Meter) Backlog(kind string, now func() time.Time) *Backlog {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.backlogs[kind]
	if !ok {
		b = &Backlog{held: map[int64]int64{}}
		m.backlogs[kind] = b
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = now
	return b
}

// Hold adds a message by its publish time.
func (b *Backlog) Hold(published time.Time) {
	slot := published.UnixNano() / int64(backlogGrain)
	b.mu.Lock()
	b.held[slot]++
	b.messages++
	b.mu.Unlock()
}

// Release removes a message that Hold added.
func (b *Backlog) Release(published time.Time) {
	slot := published.UnixNano() / int64(backlogGrain)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[slot]--; b.held[slot] <= 0 {
		delete(b.held, slot)
	}
	b.messages--
}

// Messages returns the number of messages held.
func (b *Backlog) Messages() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.messages
}

// Age returns the time since the oldest message held was published; 0 if none is held.
func (b *Backlog) Age() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.held) == 0 {
		return 0
	}
	first := true
	var oldest int64
	for slot := range b.held {
		if first || slot < oldest {
			oldest, first = slot, false
		}
	}
	return max(b.now().Sub(time.Unix(0, oldest*int64(backlogGrain))), 0)
}

// Backlogs returns the backlogs of all kinds that this process consumes.
func (m *Meter) Backlogs() map[string]*Backlog {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.backlogs)
}
