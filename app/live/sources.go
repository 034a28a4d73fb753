package live

import (
	"slices"
	"time"
)

// neededOfAll are the sources that a viewer's first snapshot waits for, and neededOfScope those of
// each scope that it sees.
var (
	neededOfAll   = []string{"depots", "warehouses", "locks", "acknowledgements"}
	neededOfScope = []string{"drones", "missions", "orders", "cycles", "decisions"}
)

// sources says which sources have answered and which fail. It is not safe for concurrent use.
type sources struct {
	needed   []string
	known    map[string]bool      // those that have answered
	failing  map[string]time.Time // since when
	readTime time.Time            // the store's, of the latest answer
	ready    bool                 // every needed source has answered
	over     bool                 // nobody wants their answers any longer
}

func newSources(needed []string) sources {
	return sources{needed: needed, known: map[string]bool{}, failing: map[string]time.Time{}}
}

// answered notes an answer; at is the store's time, zero if it does not say.
func (s *sources) answered(source string, at time.Time) {
	s.recovered(source)
	if at.After(s.readTime) {
		s.readTime = at
	}
	s.known[source] = true
	s.ready = !slices.ContainsFunc(s.needed, func(name string) bool { return !s.known[name] })
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
