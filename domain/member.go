package domain

import "time"

// Member is a process that can own areas.
type Member struct {
	ID     MemberID
	Holder string // the process, as in the records of its cycles
	// Sweeps says that it is a State Manager, which shares the sweep. Its share is 0, because it plans
	// nothing.
	Sweeps bool
	// Depots are those whose areas it can own; empty means all.
	Depots []DepotID
	// Share is how many areas it takes, relative to the other members. ShareBefore is its share
	// before ShareSince, 0 for a member that came then. A member that was silent and comes back, and
	// one that leaves, also sets ShareSince: it is when the others last had something to learn.
	Share, ShareBefore float64
	ShareSince         time.Time
	BeatAt             time.Time // of its latest heartbeat; zero once it has left
}

// MemberPoll asks what became of the members since an earlier poll. Times are the store's.
type MemberPoll struct {
	// ChangedFrom selects the members whose ShareSince is not before it. Zero asks for all that live.
	ChangedFrom time.Time
	// SilentAfter is the SilentUntil of the earlier poll.
	SilentAfter time.Time
	// Silence is how old the latest heartbeat of a member that lives may be.
	Silence time.Duration
	Count   bool // asks how many live
}

// MemberNews answers a MemberPoll.
type MemberNews struct {
	Whole   bool // Changed has all members that live
	Changed []Member
	// Silent are the members that fell silent since the earlier poll.
	Silent    []MemberID
	Counted   bool
	Living    int // how many live, if Counted
	Malformed []error
	// SilentUntil is Silence before ReadTime. Members whose latest heartbeat is not after it are dead.
	ReadTime, SilentUntil time.Time
}

// Serves reports whether a member can own an area.
func (m Member) Serves(area Area) bool {
	if len(m.Depots) == 0 {
		return true
	}
	for _, id := range m.Depots {
		if area.Has(id) {
			return true
		}
	}
	return false
}
