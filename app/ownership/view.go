package ownership

import (
	"cmp"
	"maps"
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
	// Poll is the time between two looks at the other members. A dead one is noticed that much later.
	Poll = Heartbeat / 4
	// Outdated is how long after it last heard from the store a member stops to judge the others.
	Outdated = Heartbeat + Heartbeat/2
	// rereadEvery is the time after which all members are read again, in case counts hid a mistake.
	rereadEvery = time.Hour
	// commitLimit is how long after its time by the store's clock a write may be committed.
	commitLimit = 10 * time.Second
)

// Late reports whether others may have taken a member for dead between two of its heartbeats. A
// write may be committed some time after its time, hence the margin.
func Late(before, at time.Time, silence time.Duration) bool { return at.Sub(before) >= silence*3/4 }

// View is what a member knows of the others. Times are by its own clock, which may be wrong but
// must not be set, or by the store's.
type View struct {
	members map[domain.MemberID]domain.Member
	heard   time.Time // when it last heard from the store, by its own clock
	whole   time.Time // when it last read all members, by its own clock
	counted time.Time // when the store last counted the members, by its own clock
	differs bool      // that count was not what it knows
	again   bool      // it must read all members again

	// By the store's clock.
	asOf   time.Time // when it last heard from the store
	newest time.Time // the latest ShareSince that it knows
	silent time.Time // members whose latest heartbeat was not after this are known to be dead
}

// Ask is what to ask the store at a time. It asks for all members at the start, after an outage,
// now and then, and when two counts in a row say that it missed something, such as a document deleted
// by hand.
func (v *View) Ask(silence time.Duration, now time.Time) domain.MemberPoll {
	if v.members == nil || v.again || now.Sub(v.heard) > Outdated || now.Sub(v.whole) > rereadEvery {
		return domain.MemberPoll{Silence: silence}
	}
	from := v.asOf.Add(-commitLimit)
	if v.newest.Before(from) {
		from = v.newest
	}
	return domain.MemberPoll{ChangedFrom: from, SilentAfter: v.silent, Silence: silence, Count: now.Sub(v.counted) >= Heartbeat}
}

// Saw takes in what the store answered at a time.
func (v *View) Saw(news domain.MemberNews, at time.Time) {
	if news.ReadTime.IsZero() {
		return // the collection is empty
	}
	if news.Whole {
		*v = View{members: map[domain.MemberID]domain.Member{}, whole: at, counted: at}
	}
	for _, m := range news.Changed {
		if m.ShareSince.After(v.newest) {
			v.newest = m.ShareSince
		}
		if m.BeatAt.After(news.SilentUntil) {
			v.members[m.ID] = m
		} else {
			delete(v.members, m.ID)
		}
	}
	for _, id := range news.Silent {
		delete(v.members, id)
	}
	if news.Counted {
		differs := news.Living != len(v.members)
		v.counted, v.differs, v.again = at, differs, differs && v.differs
	}
	v.heard, v.asOf, v.silent = at, news.ReadTime, news.SilentUntil
}

// Living lists the members that live at a time, by id, and the store's time then. It returns false
// if the view is outdated: then a member may have come or died.
func (v *View) Living(now time.Time) (living []domain.Member, store time.Time, upToDate bool) {
	if v.members == nil || now.Sub(v.heard) > Outdated {
		return nil, time.Time{}, false
	}
	living = slices.SortedFunc(maps.Values(v.members), func(a, b domain.Member) int { return cmp.Compare(a.ID, b.ID) })
	return living, v.asOf.Add(now.Sub(v.heard)), true
}
