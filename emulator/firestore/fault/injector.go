package fault

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
)

// Injector holds the rules of one server. Its methods are safe for concurrent use.
// A nil Injector has no rules.
type Injector struct {
	active atomic.Int64 // number of rules; a server without any skips the mutex
	mu     sync.Mutex
	random *rand.Rand
	rules  []*Installed
}

// New returns an Injector without rules. The seed decides what rules with a
// probability do.
func New(seed uint64) *Injector {
	return &Injector{random: rand.New(rand.NewPCG(seed, 0))}
}

// Installed is a rule that is in effect.
type Installed struct {
	injector *Injector
	rule     Rule
	matched  int
	fired    int
}

// Add puts a rule into effect. Rules apply in the order in which they were added.
func (i *Injector) Add(r Rule) *Installed {
	i.mu.Lock()
	defer i.mu.Unlock()
	installed := &Installed{injector: i, rule: r}
	i.rules = append(i.rules, installed)
	i.active.Add(1)
	return installed
}

// Remove ends the effect of the rule. Removing it twice is harmless.
func (r *Installed) Remove() {
	i := r.injector
	i.mu.Lock()
	defer i.mu.Unlock()
	if at := slices.Index(i.rules, r); at >= 0 {
		i.rules = slices.Delete(i.rules, at, at+1)
		i.active.Add(-1)
	}
}

// Fired returns how often the rule has acted.
func (r *Installed) Fired() int {
	r.injector.mu.Lock()
	defer r.injector.mu.Unlock()
	return r.fired
}

// Active reports whether there is any rule.
func (i *Injector) Active() bool { return i != nil && i.active.Load() > 0 }

// Decide returns the actions for a request at a stage, in the order of the rules.
func (i *Injector) Decide(c Call, at Stage) []Action {
	if !i.Active() {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	var actions []Action
	for _, r := range i.rules {
		if r.rule.matches(c, at) && r.fires(i.random) {
			actions = append(actions, r.rule.Do)
		}
	}
	return actions
}

// fires counts a match and decides whether the rule acts on it.
func (r *Installed) fires(random *rand.Rand) bool {
	r.matched++
	switch {
	case r.rule.Nth > 0 && r.matched != r.rule.Nth:
		return false
	case r.rule.Times > 0 && r.fired >= r.rule.Times:
		return false
	case r.rule.Probability > 0 && random.Float64() >= r.rule.Probability:
		return false
	}
	r.fired++
	return true
}
