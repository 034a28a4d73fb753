package ownership

import (
	"cmp"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// MoveEvery is the time between two areas that move to or from one member because its share
// changed.
const MoveEvery = time.Second

// Propose names the member that should own each area at a time by the store's clock. An area that
// no member serves is absent. Members must be living ones.
//
// A new share of a member comes into force one area at a time. Without that a member that comes back
// would interrupt the cycles of many areas at once. Areas whose owner is gone do not wait.
func Propose(areas []domain.Area, members []domain.Member, now time.Time) map[domain.DepotID]domain.MemberID {
	e := newElection(areas, members, now)
	proposed := make(map[domain.DepotID]domain.MemberID, len(areas))
	for i, area := range areas {
		best := e.best(i, func(k int) float64 { return e.inForce(i, k) })
		if best < 0 { // no owner is left to be interrupted
			best = e.best(i, func(k int) float64 { return members[k].Share })
		}
		if best >= 0 {
			proposed[area.ID()] = members[best].ID
		}
	}
	return proposed
}

// score is a random number below 0 of an area and a member, which all members compute alike.
// Divided by the members' shares it is highest for each member in proportion to its share. It is 0
// for an area that the member does not serve.
func score(area domain.Area, m domain.Member) float64 {
	if !m.Serves(area) {
		return 0
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, string(m.ID)+"\x00"+string(area.ID()))
	const steps = 1 << 53 // that a float64 tells apart
	return math.Log((float64(mix(h.Sum64())>>11) + 0.5) / steps)
}

// mix spreads similar hashes: FNV leaves those of similar texts similar.
func mix(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// election is one proposal for all areas. Areas and members are numbers in it.
type election struct {
	members []domain.Member
	now     time.Time
	scores  [][]float64         // by area and member
	since   map[int][]time.Time // by member whose share changed lately, and area: when that applies
}

func newElection(areas []domain.Area, members []domain.Member, now time.Time) *election {
	e := &election{members: members, now: now, scores: make([][]float64, len(areas)), since: map[int][]time.Time{}}
	for i, area := range areas {
		e.scores[i] = make([]float64, len(members))
		for k, m := range members {
			e.scores[i][k] = score(area, m)
		}
	}
	for k, m := range members {
		if m.Share != m.ShareBefore && now.Sub(m.ShareSince) < time.Duration(len(areas))*MoveEvery {
			e.since[k] = e.applies(k)
		}
	}
	return e
}

// applies is when a member's new share comes into force for each area. Areas that prefer the member
// most come first, or leave it last.
func (e *election) applies(k int) []time.Time {
	m := e.members[k]
	var order []int // the areas that it serves
	for area := range e.scores {
		if e.scores[area][k] != 0 {
			order = append(order, area)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(e.scores[b][k], e.scores[a][k]) })
	if m.Share < m.ShareBefore {
		slices.Reverse(order)
	}
	since := make([]time.Time, len(e.scores))
	for rank, area := range order {
		since[area] = m.ShareSince.Add(time.Duration(rank) * MoveEvery)
	}
	return since
}

// best is the member that an area prefers, -1 for none.
func (e *election) best(area int, share func(k int) float64) int {
	best, highest := -1, math.Inf(-1)
	for k, score := range e.scores[area] {
		s := share(k)
		if score == 0 || s <= 0 {
			continue
		}
		if score /= s; score > highest || score == highest && e.members[k].ID < e.members[best].ID {
			best, highest = k, score
		}
	}
	return best
}

// inForce is the share that a member has for an area now.
func (e *election) inForce(area, k int) float64 {
	m, since := e.members[k], e.since[k]
	switch {
	case since == nil:
		return m.Share
	case e.now.Before(since[area]):
		return m.ShareBefore
	case e.decides(area, k, since[area]):
		return m.Share
	}
	// The area is another member's that has just come, too. It must not move twice.
	return min(m.Share, m.ShareBefore)
}

// decides reports whether an area moves because of a member's new share, once all changes until
// then are in force.
func (e *election) decides(area, k int, until time.Time) bool {
	shares := func(own float64) func(int) float64 {
		return func(other int) float64 {
			m := e.members[other]
			switch {
			case other == k:
				return own
			case m.ShareSince.After(until):
				return m.ShareBefore
			}
			return m.Share
		}
	}
	return e.best(area, shares(e.members[k].Share)) != e.best(area, shares(e.members[k].ShareBefore))
}
