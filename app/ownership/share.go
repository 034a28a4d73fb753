package ownership

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

const (
	// lateFor is how long a member counts as late after a cycle that waited too long. It is also the
	// least time between two cuts of its share, so that one takes effect before the next.
	lateFor = time.Minute
	// punctualFor is how long a member must not have been late before its share grows again.
	punctualFor = 5 * time.Minute
	// leastShare is the least part of its share that a late member keeps, failingShare the part of one
	// whose cycles all fail.
	leastShare   = 8
	failingShare = 1000
)

// Load adapts a member's share to how it keeps up.
type Load struct {
	changed time.Time
}

// Adapt halves the share of a member whose cycles wait too long for their turn, and doubles it once
// they no longer do. late is when one last did. A member that is failing keeps next to nothing. full
// is the share of one that keeps up. Adapt reports whether the share changed.
func (l *Load) Adapt(m *domain.Member, now, late time.Time, failing bool, full float64) bool {
	share := m.Share
	switch {
	case failing:
		share = full / failingShare
	case !late.IsZero() && now.Sub(late) < lateFor && now.Sub(l.changed) >= lateFor:
		share = max(share/2, full/leastShare)
	case now.Sub(late) >= punctualFor && now.Sub(l.changed) >= punctualFor:
		share = min(max(share*2, full/leastShare), full)
	}
	if share == m.Share {
		return false
	}
	m.ShareBefore, m.Share, m.ShareSince, l.changed = m.Share, share, time.Time{}, now
	return true
}
