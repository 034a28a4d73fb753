package firestoreemu

import (
	"sync"
	"sync/atomic"
)

// Counters count what a server has done since it started.
type Counters struct {
	RPCs     map[string]uint64 // by method name, such as "Commit"
	Failed   map[string]uint64 // RPCs not answered OK, by method name
	Read     uint64            // documents returned by reads, including missing ones
	Written  uint64            // writes applied
	Waits    uint64            // lock requests that had to wait
	Wounds   uint64            // transactions aborted by an older one
	Timeouts uint64            // transactions aborted because they waited or blocked others too long
}

type counters struct {
	rpcs, failed  sync.Map // method name -> *atomic.Uint64
	read, written atomic.Uint64
}

func count(m *sync.Map, method string) {
	n, ok := m.Load(method)
	if !ok {
		n, _ = m.LoadOrStore(method, new(atomic.Uint64))
	}
	n.(*atomic.Uint64).Add(1)
}

func read(m *sync.Map) map[string]uint64 {
	all := map[string]uint64{}
	m.Range(func(method, n any) bool {
		all[method.(string)] = n.(*atomic.Uint64).Load()
		return true
	})
	return all
}

// Counters returns the counts so far, summed over all databases.
func (s *Server) Counters() Counters {
	c := Counters{
		RPCs:    read(&s.counters.rpcs),
		Failed:  read(&s.counters.failed),
		Read:    s.counters.read.Load(),
		Written: s.counters.written.Load(),
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, d := range s.databases {
		stats := d.locks.Stats()
		c.Waits += stats.Waits
		c.Wounds += stats.Wounds
		c.Timeouts += stats.Timeouts
	}
	return c
}
