package lockspec

import (
	"fmt"
	"strings"
)

// Story is a history for people: a line for each step, with what it changed.
type Story []string

func (s Story) String() string { return strings.Join(s, "\n") }

// tell replays a history and describes each step.
func (m *model) tell(steps []action) (story Story) {
	s := m.initial()
	for i, a := range steps {
		next, v := m.do(s, a)
		line := fmt.Sprintf("%2d. at %d  %s", i+1, s.Now, m.describe(&s, a))
		if next.Store != s.Store {
			line += fmt.Sprintf("\n           the store: %s", next.Store)
		}
		for c := range next.Clients {
			was, is := m.believes(&s, &s.Clients[c]), m.believes(&next, &next.Clients[c])
			switch {
			case is && (!was || next.Clients[c].Deadline != s.Clients[c].Deadline):
				line += fmt.Sprintf("\n           %s holds the lock until %d, with fence %d", name(c), next.Clients[c].Deadline, next.Clients[c].Fence)
			case was && !is:
				line += fmt.Sprintf("\n           %s stops", name(c))
			}
		}
		if v != nil {
			line += "\n           VIOLATED " + v.String()
		}
		story, s = append(story, line), next
	}
	return story
}

func name[T int | int8](client T) string { return string(rune('A' + client)) }

func (m *model) describe(s *state, a action) string {
	who := name(a.Client)
	c := &s.Clients[a.Client]
	k := c.Calls[a.Slot]
	the := fmt.Sprintf("%s of %s", a.Kind, who)
	if a.Slot != current {
		the = "late " + the
	}
	at := ", and is answered at once"
	if a.Slow {
		at = ""
	}
	switch a.Do {
	case tick:
		return "a tick passes"
	case ask:
		switch a.Kind {
		case acquire:
			return fmt.Sprintf("%s asks for the lock for %d ticks%s", who, a.TTL, at)
		case extend:
			return fmt.Sprintf("%s asks to extend its lease to %d ticks from now%s", who, a.TTL, at)
		case release, nothing:
			return who + " asks to release" + at
		}
	case again:
		return fmt.Sprintf("%s asks again, with the same id %d%s", who, c.ID, at)
	case abandon:
		return fmt.Sprintf("%s gives up on id %d and releases it in the background", who, c.ID)
	case decide:
		return fmt.Sprintf("the %s reads the lock; its clock shows %d", the, s.Now+c.Offset)
	case apply:
		if k.Stale && !m.unchecked(k) {
			return fmt.Sprintf("the write of the %s fails: the lock has changed since it was read", the)
		}
		return fmt.Sprintf("the store executes the %s (id %d)", the, k.ID)
	case reply:
		if k.OK {
			return "the reply to the " + the + " arrives: OK"
		}
		return "the reply to the " + the + " arrives: refused"
	case loseCall:
		if k.Stage == answered {
			return "the reply to the " + the + " is lost"
		}
		return "the request of the " + the + " is lost"
	case delayCall:
		return who + " stops waiting for the " + a.Kind.String() + ", which is still on its way"
	case beginWrite:
		return who + " looks at its clock, is about to write, and is paused"
	case endWrite:
		return fmt.Sprintf("%s goes on: its write with fence %d arrives at the resource", who, c.Writing)
	case crash:
		return who + " crashes"
	case breakLock:
		return "an operator breaks the lock"
	case replicate:
		return "the replica catches up"
	case failOver:
		return "the primary dies; the replica takes over"
	case restart:
		return "the store restarts with nothing"
	case jumpServer:
		return fmt.Sprintf("the server's clock is set ahead by %d", a.By)
	case jumpClient:
		return fmt.Sprintf("the clock of %s is set by %+d", who, a.By)
	}
	return ""
}
