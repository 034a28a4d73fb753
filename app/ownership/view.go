package ownership

import (
	"cmp"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

const (
	// Heartbeat is the time between two heartbeats of a member.
	Heartbeat = 10 * time.Second
	// Silence is how long after its latest heartbeat a member counts as living. With it, and a
	// lease of 15 s, each area of a killed member has a cycle again within 30 s.
	Silence = 2 * Heartbeat
	// Outdated is how long after it last heard from the store a member stops to judge the others.
	// Its own heartbeats make it hear more often.
	Outdated = Heartbeat + Heartbeat/2
)

// View is what a member knows of the others. Times are by its own clock, which may be wrong but
// must not be set; only those in documents are by the store's clock.
type View struct {
	members map[domain.MemberID]sighted
	heard   time.Time // when it last heard from the store
	store   time.Time // the store's time then
}

// sighted is a member as last heard of, and when its heartbeat was.
type sighted struct {
	domain.Member
	beat time.Time // by the viewer's clock
}

// Saw takes in what the store told at a time: members that are new or have changed, and those that
// are gone. whole says that it told all. asOf is the store's time.
func (v *View) Saw(whole bool, changed []domain.Member, gone []string, asOf, at time.Time) {
	if whole || v.members == nil {
		v.members = map[domain.MemberID]sighted{}
	}
	for _, id := range gone {
		delete(v.members, domain.MemberID(id))
	}
	for _, m := range changed {
		v.members[m.ID] = sighted{m, at.Add(-max(0, asOf.Sub(m.BeatAt)))}
	}
	v.heard, v.store = at, asOf
}

// Living lists the members that live at a time, by id, and the store's time then. It returns false
// if the view is outdated: then a member that seems silent may live.
func (v *View) Living(now time.Time) (living []domain.Member, store time.Time, upToDate bool) {
	if v.members == nil || now.Sub(v.heard) > Outdated {
		return nil, time.Time{}, false
	}
	for _, m := range v.members {
		if now.Sub(m.beat) < Silence {
			living = append(living, m.Member)
		}
	}
	slices.SortFunc(living, func(a, b domain.Member) int { return cmp.Compare(a.ID, b.ID) })
	return living, v.store.Add(now.Sub(v.heard)), true
}
