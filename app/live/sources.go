package live

import "time"

// needed are the sources that a viewer's first snapshot waits for.
var needed = []string{"depots", "warehouses", "drones", "missions", "orders", "cycles", "decisions", "locks", "acknowledgements"}

// sources says which sources have answered and which fail. It is not safe for concurrent use.
type sources struct {
	known    map[string]bool      // those that have answered
	failing  map[string]time.Time // since when
	readTime time.Time            // the store's, of the latest answer
	ready    chan struct{}        // closed once every needed source has answered
}

func newSources() sources {
	return sources{known: map[string]bool{}, failing: map[string]time.Time{}, ready: make(chan struct{})}
}

// answered notes an answer; at is the store's time, zero if it does not say.
func (s *sources) answered(source string, at time.Time) {
	s.recovered(source)
	if at.After(s.readTime) {
		s.readTime = at
	}
	if s.known[source] {
		return
	}
	s.known[source] = true
	for _, name := range needed {
		if !s.known[name] {
			return
		}
	}
	select {
	case <-s.ready:
	default:
		close(s.ready)
	}
}

func (s *sources) failed(source string) {
	if s.failing[source].IsZero() {
		s.failing[source] = time.Now()
	}
}

func (s *sources) recovered(source string) { delete(s.failing, source) }

// delay is for how long the longest failure has lasted.
func (s *sources) delay() (longest time.Duration) {
	for _, since := range s.failing {
		longest = max(longest, time.Since(since))
	}
	return longest
}
