package domain

import "time"

// Member is a process that can own planning areas.
type Member struct {
	ID     MemberID
	Holder string // the process, as in the records of its cycles
	// Depots are those whose areas it can own; empty means all.
	Depots []DepotID
	// Share is how many areas it takes, relative to the other members. ShareBefore is its share
	// before ShareSince, 0 for a member that came then.
	Share, ShareBefore float64
	ShareSince         time.Time
	BeatAt             time.Time // of its latest heartbeat
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
