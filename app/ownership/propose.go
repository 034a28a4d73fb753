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

// MoveEvery is the time between two areas that move because a member came or its share changed.
const MoveEvery = time.Second

// Propose names the member that should own each area at a time by the store's clock. An area that
// no member serves is absent. Members must be living ones.
//
// A change of shares moves one area at a time. Without that a member that comes back would interrupt
// the cycles of many areas at once. Areas without an owner do not wait.
func Propose(areas []domain.Area, members []domain.Member, now time.Time) map[domain.DepotID]domain.MemberID {
	e := newElection(areas, members, now)
	owners := e.assign(e.shares(time.Time{}))
	var moves []move
	for _, at := range e.changes {
		moves = e.schedule(owners, moves, at)
	}
	carryOut(owners, moves, now)
	proposed := make(map[domain.DepotID]domain.MemberID, len(areas))
	for area, k := range owners {
		if k != nobody {
			proposed[areas[area].ID()] = members[k].ID
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
	return math.Log(unit(hash(string(m.ID) + "\x00" + string(area.ID()))))
}

// unit is a number above 0 and below 1.
func unit(hash uint64) float64 {
	const steps = 1 << 53 // that a float64 tells apart
	return (float64(hash>>11) + 0.5) / steps
}

func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, text)
	return mix(h.Sum64())
}

// mix spreads similar hashes: FNV leaves those of similar texts similar.
func mix(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// nobody is the owner of an area that no member serves.
const nobody = -1

// move gives an area to a member at a time.
type move struct {
	area, to int
	at       time.Time
}

// election is one proposal. Areas and members are numbers.
type election struct {
	members []domain.Member
	now     time.Time
	scores  [][]float64 // by area and member
	order   []int       // in which areas choose their owners
	changes []time.Time // when shares changed lately, the earliest first
}

func newElection(areas []domain.Area, members []domain.Member, now time.Time) *election {
	e := &election{members: members, now: now, scores: make([][]float64, len(areas)), order: make([]int, len(areas))}
	ranks := make([]uint64, len(areas))
	for i, area := range areas {
		e.order[i], ranks[i] = i, hash(string(area.ID()))
		e.scores[i] = make([]float64, len(members))
		for k, m := range members {
			e.scores[i][k] = score(area, m)
		}
	}
	slices.SortFunc(e.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(ranks[a], ranks[b]), cmp.Compare(areas[a].ID(), areas[b].ID()))
	})
	// A change moves each area at most once, and a later one may delay a move by as much again.
	over := now.Add(-2 * time.Duration(len(areas)) * MoveEvery)
	for _, m := range members {
		if m.Share != m.ShareBefore && m.ShareSince.After(over) {
			e.changes = append(e.changes, m.ShareSince)
		}
	}
	slices.SortFunc(e.changes, time.Time.Compare)
	e.changes = slices.CompactFunc(e.changes, time.Time.Equal)
	return e
}

// shares are those of the members at a time. The zero time is before all recent changes.
func (e *election) shares(at time.Time) []float64 {
	shares := make([]float64, len(e.members))
	for k, m := range e.members {
		shares[k] = m.Share
		recent := len(e.changes) > 0 && !m.ShareSince.Before(e.changes[0])
		if recent && m.Share != m.ShareBefore && m.ShareSince.After(at) {
			shares[k] = m.ShareBefore
		}
	}
	return shares
}

// bounds are how many areas each member may have: its part, and a quarter more for what is above one
// area. With few areas one more is a long wait for its cycles; with many, equal parts would cost many
// moves. Parts are rounded at random, which is the same for all, because rounding up would let many
// areas move when one member dies. A member that fails may have none.
func (e *election) bounds(shares []float64) []int {
	sum := 0.0
	for _, share := range shares {
		sum += share
	}
	bounds := make([]int, len(shares))
	for k, share := range shares {
		part := float64(len(e.scores)) * share / sum
		part += max(0, part-1) / 4
		const rounding = 1e-9 // sums depend on the order of the members
		bounds[k] = int(part + rounding + (1-2*rounding)*unit(hash(string(e.members[k].ID))))
		if share*float64(len(shares))*100 >= sum {
			bounds[k] = max(1, bounds[k])
		}
	}
	return bounds
}

// assign gives each area, in an order that is random and the same for all, to the member with the
// highest score that has room. If none of those that serve it has room, the bound gives way.
func (e *election) assign(shares []float64) []int {
	owners, room := make([]int, len(e.scores)), e.bounds(shares)
	for _, area := range e.order {
		best := e.best(area, shares, func(k int) bool { return room[k] > 0 })
		if best == nobody {
			best = e.best(area, shares, func(int) bool { return true })
		}
		if owners[area] = best; best != nobody {
			room[best]--
		}
	}
	return owners
}

func (e *election) best(area int, shares []float64, admits func(k int) bool) int {
	best, highest := nobody, math.Inf(-1)
	for k, score := range e.scores[area] {
		if score == 0 || shares[k] <= 0 || !admits(k) {
			continue
		}
		if score /= shares[k]; score > highest || score == highest && e.members[k].ID < e.members[best].ID {
			best, highest = k, score
		}
	}
	return best
}

// carryOut carries out the moves that are due, and returns the others.
func carryOut(owners []int, moves []move, now time.Time) []move {
	return slices.DeleteFunc(moves, func(m move) bool {
		due := !m.at.After(now)
		if due {
			owners[m.area] = m.to
		}
		return due
	})
}

// schedule carries out the moves before a change of shares, and returns those after it. A move that
// the change makes wrong is dropped, so that no area moves to a member that must give it away.
func (e *election) schedule(owners []int, moves []move, change time.Time) []move {
	moves = carryOut(owners, moves, slices.MinFunc([]time.Time{change, e.now}, time.Time.Compare))
	wanted := e.assign(e.shares(change))
	moves = slices.DeleteFunc(moves, func(m move) bool { return m.to != wanted[m.area] })
	moving := map[int]bool{}
	for _, m := range moves {
		moving[m.area] = true
	}
	at := change
	for _, area := range e.order {
		switch {
		case owners[area] == nobody: // there is no owner to interrupt
			owners[area] = wanted[area]
		case owners[area] != wanted[area] && !moving[area]:
			moves = append(moves, move{area, wanted[area], at})
			at = at.Add(MoveEvery)
		}
	}
	return moves
}
