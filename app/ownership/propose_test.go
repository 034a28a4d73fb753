package ownership

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

var start = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

func areasOf(n int) (areas []domain.Area) {
	for i := range n {
		areas = append(areas, domain.Area{Depots: []domain.Depot{{ID: domain.DepotID(fmt.Sprintf("DEPOT-%03d", i))}}})
	}
	return areas
}

// settled are members whose shares have been the same for long.
func settled(from, to int) (members []domain.Member) {
	for i := from; i < to; i++ {
		members = append(members, domain.Member{ID: domain.MemberID(fmt.Sprintf("member-%d", i)), Share: 1, ShareSince: start.Add(-time.Hour)})
	}
	return members
}

// come are members that have just come.
func come(from, to int, at time.Time) []domain.Member {
	members := settled(from, to)
	for i := range members {
		members[i].ShareSince = at
	}
	return members
}

func count(proposed map[domain.DepotID]domain.MemberID) map[domain.MemberID]int {
	n := map[domain.MemberID]int{}
	for _, m := range proposed {
		n[m]++
	}
	return n
}

// moved are the areas that have another owner.
func moved(before, after map[domain.DepotID]domain.MemberID) (areas []domain.DepotID) {
	for area, member := range after {
		if before[area] != member {
			areas = append(areas, area)
		}
	}
	return areas
}

// F-OWN-01: areas are shared in proportion to the members' shares; the order of the members does not
// matter.
func TestPropose_SharesTheAreas(t *testing.T) {
	areas, members := areasOf(1000), settled(0, 10)
	members[3].Share, members[3].ShareBefore = 0.5, 0.5
	proposed := Propose(areas, members, start)
	if len(proposed) != len(areas) {
		t.Fatalf("%d of %d areas are proposed", len(proposed), len(areas))
	}
	for _, m := range members {
		want := 1000 * m.Share / 9.5
		if n := float64(count(proposed)[m.ID]); math.Abs(n-want) > 4*math.Sqrt(want) {
			t.Errorf("%s has %v areas, want about %.0f", m.ID, n, want)
		}
	}
	for i := range members[:5] {
		members[i], members[9-i] = members[9-i], members[i]
	}
	if n := len(moved(proposed, Propose(areas, members, start))); n > 0 {
		t.Errorf("%d areas move when members are listed in another order", n)
	}
}

// F-OWN-01: a member gets only areas that it serves, and an area that nobody serves has no owner.
func TestPropose_KeepsToTheDepotsOfAMember(t *testing.T) {
	areas, members := areasOf(3), settled(0, 2)
	members[0].Depots = []domain.DepotID{"DEPOT-000"}
	members[1].Depots = []domain.DepotID{"DEPOT-001"}
	proposed := Propose(areas, members, start)
	if len(proposed) != 2 || proposed["DEPOT-000"] != "member-0" || proposed["DEPOT-001"] != "member-1" {
		t.Errorf("proposed %v", proposed)
	}
	if proposed := Propose(areas, nil, start); len(proposed) > 0 {
		t.Errorf("without members: %v", proposed)
	}
}

// F-OWN-02: optimizers of an earlier version take State Managers, whose share is 0, for optimizers. They
// propose the same areas as without them.
func TestPropose_GivesNoAreasToAShareOfZero(t *testing.T) {
	areas, optimizers := areasOf(100), settled(0, 5)
	var sweepers []domain.Member
	for i := range 20 {
		sweepers = append(sweepers, domain.Member{ID: domain.MemberID(fmt.Sprint("S", i)), Sweeps: true})
	}
	want := Propose(areas, optimizers, start)
	if got := Propose(areas, slices.Concat(sweepers, optimizers), start); !maps.Equal(got, want) {
		t.Errorf("beside State Managers %v, want %v", got, want)
	}
	if got := Propose(areas, sweepers, start); len(got) > 0 {
		t.Errorf("without optimizers %v", got)
	}
}

// F-OWN-01: no member has many more areas than its part, and none is without one while another has
// two that it could take. Without bounds chance leaves a third of the members without an area where
// there are as many members as areas. The price is that a death or a newcomer moves a few areas of
// others.
func TestPropose_BoundsWhatAMemberHas(t *testing.T) {
	const rounds = 30
	for _, c := range []struct {
		areas, members, most int
		without              float64 // share of the members without an area
		others               float64 // areas of others that move when a member dies
		plain                [2]int  // without bounds: members of a hundred without an area, and areas of the busiest
	}{
		{10, 10, 1, 0, 3, [2]int{34, 3}}, {20, 10, 3, 0.03, 3, [2]int{10, 4}}, {30, 10, 4, 0.02, 3, [2]int{4, 6}},
		{100, 10, 13, 0, 3, [2]int{0, 15}}, {100, 100, 1, 0, 7, [2]int{36, 4}}, {1000, 10, 125, 0, 1, [2]int{0, 118}},
	} {
		var idle, moves, plainIdle, plainMost float64
		for round := range rounds {
			areas, members := areasOf(c.areas), settled(round*c.members, (round+1)*c.members)
			proposed := Propose(areas, members, start)
			n, e := count(proposed), newElection(areas, members, start)
			plain := map[int]int{}
			for i := range areas {
				plain[e.best(i, e.shares(start), func(int) bool { return true })]++
			}
			most := 0
			for k, m := range members {
				if n[m.ID] == 0 {
					idle++
				}
				if plain[k] == 0 {
					plainIdle++
				}
				if n[m.ID] > c.most {
					t.Errorf("%d areas: %s has %d, want at most %d", c.areas, m.ID, n[m.ID], c.most)
				}
				most = max(most, plain[k])
			}
			plainMost += float64(most)
			for _, area := range moved(proposed, Propose(areas, members[1:], start)) {
				if proposed[area] != members[0].ID {
					moves++
				}
			}
		}
		of := float64(rounds * c.members)
		if idle/of > c.without || moves/rounds > c.others {
			t.Errorf("%d areas, %d members: %.3f without an area, %.1f areas of others move", c.areas, c.members, idle/of, moves/rounds)
		}
		if got := [2]int{int(100*plainIdle/of + 0.5), int(plainMost/rounds + 0.5)}; got != c.plain {
			t.Errorf("%d areas, %d members: without bounds %v, want %v", c.areas, c.members, got, c.plain)
		}
		t.Logf("%d areas, %d members: %.1f %% without an area, without bounds %.1f %%; %.1f areas of others move when one dies", c.areas, c.members, 100*idle/of, 100*plainIdle/of, moves/rounds)
	}
}

// F-OWN-01, F-OWN-03: when members with many areas die these have new owners at once, and no other
// area moves.
func TestPropose_MovesOnlyTheAreasOfTheDead(t *testing.T) {
	areas, members := areasOf(300), settled(0, 9)
	before := Propose(areas, members, start)
	after := Propose(areas, members[:3], start)
	if len(after) != len(areas) {
		t.Errorf("%d areas have an owner", len(after))
	}
	for _, area := range moved(before, after) {
		if was := before[area]; was <= "member-2" {
			t.Errorf("%s moves from %s, which lives", area, was)
		}
	}
}

// F-OWN-03: when a member comes one area a second moves, nearly always to it. Areas whose owner is
// gone do not wait for it.
func TestPropose_MovesOneAreaASecondWhenAMemberComes(t *testing.T) {
	for _, c := range []struct{ areas, members, others int }{{200, 4, 0}, {10, 10, 3}, {30, 12, 5}, {100, 100, 10}} {
		areas, old := areasOf(c.areas), settled(0, c.members)
		members := append(old, come(c.members, c.members+1, start)...)
		came := members[c.members].ID
		last, others := Propose(areas, old, start.Add(-time.Second)), 0
		for second := range c.areas + 1 {
			now := Propose(areas, members, start.Add(time.Duration(second)*time.Second))
			moves := moved(last, now)
			if len(moves) > 1 {
				t.Fatalf("%d areas, second %d: %v move", c.areas, second, moves)
			}
			if len(moves) == 1 && now[moves[0]] != came {
				others++
			}
			last = now
		}
		if others > c.others {
			t.Errorf("%d areas: %d moved between the others, want at most %d", c.areas, others, c.others)
		}
		if n := len(moved(last, Propose(areas, settled(0, c.members+1), start))); n > 0 {
			t.Errorf("%d of %d areas have not moved in the end", n, c.areas)
		}
		if alone := Propose(areas, members[c.members:], start); len(alone) != len(areas) {
			t.Errorf("only %d of %d areas have an owner while all others are dead", len(alone), c.areas)
		}
	}
}

// F-OWN-03: two thirds of the members come back at once. Each takes at most one area a second, and
// no area moves twice. When one of them dies on the way, only its areas move.
func TestPropose_MovesNoAreaTwiceWhenManyCome(t *testing.T) {
	areas, old := areasOf(100), settled(0, 3)
	members := append(old, come(3, 10, start)...)
	last, moves := Propose(areas, old, start), map[domain.DepotID]int{}
	for second := range 101 {
		if second == 10 {
			members = members[:9]
		}
		now := Propose(areas, members, start.Add(time.Duration(second)*time.Second))
		taken := map[domain.MemberID]int{}
		for _, area := range moved(last, now) {
			if last[area] == "member-9" && second == 10 {
				moves[area] = 0 // it is dead
				continue
			}
			moves[area]++
			if taken[now[area]]++; taken[now[area]] > 1 {
				t.Errorf("second %d: %s takes %d areas", second, now[area], taken[now[area]])
			}
		}
		last = now
	}
	for area, n := range moves {
		if n > 1 {
			t.Errorf("%s moves %d times", area, n)
		}
	}
	if n := len(moved(last, Propose(areas, settled(0, 9), start))); n > 0 {
		t.Errorf("%d areas have not moved in the end", n)
	}
}

// F-OWN-02: a member that is too slow gives areas away, one a second, and gets them back when it
// keeps up again.
func TestPropose_TakesAreasFromASlowMember(t *testing.T) {
	areas, members := areasOf(200), settled(0, 4)
	all := Propose(areas, members, start)
	for _, change := range []struct{ before, share float64 }{{1, 0.25}, {0.25, 1}} {
		members[2].ShareBefore, members[2].Share, members[2].ShareSince = change.before, change.share, start
		last := Propose(areas, members, start.Add(-time.Second))
		had := count(last)["member-2"]
		for second := range 201 {
			now := Propose(areas, members, start.Add(time.Duration(second)*time.Second))
			if moves := moved(last, now); len(moves) > 1 {
				t.Fatalf("second %d: %v move", second, moves)
			}
			last = now
		}
		if has := count(last)["member-2"]; (has < had) != (change.share < change.before) {
			t.Errorf("it had %d areas and has %d after its share changed to %g", had, has, change.share)
		}
		if change.share == 1 && len(moved(all, last)) > 0 {
			t.Errorf("%d areas have not come back", len(moved(all, last)))
		}
	}
}

// F-OWN-01: members whose estimates of the store's time differ by some seconds disagree about that
// many areas at most, and only until the later one has seen the time pass.
func TestPropose_BearsClocksThatDiffer(t *testing.T) {
	areas, members := areasOf(200), append(settled(0, 4), come(4, 5, start)...)
	const off = 3
	for second := range 210 {
		at := start.Add(time.Duration(second) * time.Second)
		if n := len(moved(Propose(areas, members, at), Propose(areas, members, at.Add(off*time.Second)))); n > off || second > 200 && n > 0 {
			t.Fatalf("second %d: they disagree about %d areas", second, n)
		}
	}
}
