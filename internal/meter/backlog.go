package meter

import (
	"maps"
	"sync"
	"time"
)

// Backlog is what a process holds of one kind of message and has not settled.
// It is safe for concurrent use; holding and releasing cost a map access each,
// however many messages are held.
type Backlog struct {
	now func() time.Time

	mu       sync.Mutex
	held     map[int64]int64 // messages by publish time, in units of backlogGrain
	messages int64
}

// backlogGrain is how exactly the age is known.
const backlogGrain = 10 * time.Millisecond

// Backlog is the backlog of one kind, aged on the clock now, which must be the
// one that publish times come from.
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

// Hold counts a message in, by its publish time.
func (b *Backlog) Hold(published time.Time) {
	slot := published.UnixNano() / int64(backlogGrain)
	b.mu.Lock()
	b.held[slot]++
	b.messages++
	b.mu.Unlock()
}

// Release counts a message out that Hold counted in.
func (b *Backlog) Release(published time.Time) {
	slot := published.UnixNano() / int64(backlogGrain)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[slot]--; b.held[slot] <= 0 {
		delete(b.held, slot)
	}
	b.messages--
}

// Messages is how many are held.
func (b *Backlog) Messages() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.messages
}

// Age is how long ago the oldest message held was published; 0 if none is.
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

// Backlogs are the backlogs of all kinds that this process consumes.
func (m *Meter) Backlogs() map[string]*Backlog {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.backlogs)
}
