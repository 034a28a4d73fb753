package lockspec

import "fmt"

// Property is what must hold.
type Property string

// The properties.
const (
	// Exclusion: no two clients believe to hold the lock at one moment, except one whose
	// lock an operator broke. A client that is paused believes nothing.
	Exclusion Property = "exclusion"
	// Fences: each lease's fence is higher than all before, through release, expiry,
	// break, crash and fail-over, and nothing brings an older lease back.
	Fences Property = "fences"
	// Freedom: once holders stop, and the longest lease and the tolerance have passed,
	// every client is granted the lock.
	Freedom Property = "freedom"
	// OneRelease: of the releases of one lease at most one is OK.
	OneRelease Property = "one release"
	// Retry: an acquisition that finds its own live lease returns it unchanged.
	Retry Property = "retry"
	// Refusal: a call that is not OK changes nothing.
	Refusal Property = "refusal"
	// Ownership: nobody extends or releases the lease of another, and an extension
	// changes nothing but the end.
	Ownership Property = "ownership"
	// Resource: a resource that compares fences accepts no write of an earlier lease
	// after one of a later.
	Resource Property = "resource"
)

// Violation says which property does not hold.
type Violation struct {
	Property Property
	Text     string
}

func (v *Violation) String() string { return fmt.Sprintf("%s: %s", v.Property, v.Text) }

// checkCall checks one call of the store.
func (m *model) checkCall(s *state, k call, clocks Clocks, before, after Lock, ans Answer) *Violation {
	id := int64(k.ID)
	switch {
	case !ans.OK && after != before:
		return &Violation{Refusal, "a refused call changed the store"}
	case k.Kind != acquire && before.Holder != 0 && before.Holder != id && after != before:
		return &Violation{Ownership, fmt.Sprintf("id %d changed the lease of id %d", id, before.Holder)}
	case k.Kind == extend && ans.OK && before.Holder == id && after.Fence != before.Fence:
		return &Violation{Ownership, "an extension changed the fence"}
	case k.Kind == acquire && !k.Stale && before.Holder == id && m.sound.Live(before, clocks) && (!ans.OK || after != before):
		return &Violation{Retry, "a retry did not return the lease of its id"}
	}
	if k.Kind == release && ans.OK {
		fence := ans.Fence
		if before == after { // nothing was deleted: the caller takes its own lease for released
			fence = int64(k.Fence)
		}
		if fence != 0 && s.Released&(1<<fence) != 0 {
			return &Violation{OneRelease, fmt.Sprintf("the lease with fence %d was released twice", fence)}
		}
		s.Released |= 1 << fence
	}
	if !ans.OK || k.Kind == release || ans.Found {
		return nil
	}
	if k.Kind == acquire && ans.Fence <= int64(s.Granted) || ans.Fence < int64(s.Granted) {
		return &Violation{Fences, fmt.Sprintf("a lease has fence %d after one with %d", ans.Fence, s.Granted)}
	}
	s.Granted = int8(ans.Fence)
	return nil
}

// checkState checks what clients believe, and whether the lock can still become free.
func (m *model) checkState(s *state) *Violation {
	var holder *client
	for i := range s.Clients {
		c := &s.Clients[i]
		if !m.believes(s, c) || s.Broken&(1<<c.Fence) != 0 {
			continue
		}
		if holder != nil {
			return &Violation{Exclusion, "both clients believe to hold the lock"}
		}
		holder = c
	}
	longest := m.TTL
	for _, ttl := range m.Extensions {
		longest = max(longest, ttl)
	}
	// A client's clock may be behind the holder's, which the server's end bounds.
	end := s.Now + longest + m.Tolerance + 1
	for i := range s.Clients {
		clocks := Clocks{Local: int64(end + s.Clients[i].Offset), Server: int64(end + s.Ahead), Commit: int64(end + s.Ahead)}
		if m.Time == ClientTime {
			clocks.Local += int64(m.Bound)
		}
		if _, ans := m.rules.Acquire(s.Store, -1, 1, clocks); !ans.OK {
			return &Violation{Freedom, fmt.Sprintf("nobody holds the lock at %d, and it is not free", end)}
		}
	}
	return nil
}
