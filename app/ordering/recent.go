package ordering

import (
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

const (
	// recentFor is how long an order that was sent is remembered at least. State Managers apply
	// it within that time unless something is wrong.
	recentFor = 30 * time.Second
	// recentMost is how many orders are remembered at most, twice.
	recentMost = 10_000
)

// recent remembers the orders that this process has sent lately, because their documents come a
// moment later. It has two generations; the older one is forgotten as a whole.
type recent struct {
	now func() time.Time

	mu         sync.Mutex
	young, old map[domain.OrderID]sent
	begun      time.Time // the young generation
}

// sent is an order on its way.
type sent struct {
	hash      string
	published bool // Pub/Sub has it
}

// begin notes that an order is sent, unless one with this id was: then it returns that.
func (r *recent) begin(id domain.OrderID, hash string) (before sent, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, known = r.find(id); known {
		return before, true
	}
	r.keep(id, sent{hash: hash})
	return sent{}, false
}

// published notes that Pub/Sub has an order.
func (r *recent) published(id domain.OrderID, hash string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(id, sent{hash, true})
}

// has reports whether Pub/Sub has got an order lately.
func (r *recent) has(id domain.OrderID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, _ := r.find(id)
	return s.published
}

func (r *recent) find(id domain.OrderID) (s sent, known bool) {
	if s, known = r.young[id]; !known {
		s, known = r.old[id]
	}
	return s, known
}

func (r *recent) keep(id domain.OrderID, s sent) {
	if now := r.now(); r.young == nil || now.Sub(r.begun) > recentFor || len(r.young) >= recentMost {
		r.old, r.young, r.begun = r.young, map[domain.OrderID]sent{}, now
	}
	r.young[id] = s
}
