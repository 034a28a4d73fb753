package ownership

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// F-OWN-01, F-OWN-03: a member lives for two heartbeats after its latest one, by the server's time,
// whatever the clocks of both say. A view that hears nothing judges nobody.
func TestView_JudgesByTheStoresTime(t *testing.T) {
	mine := start.Add(5 * time.Hour) // the viewer's clock is off
	beat := func(id domain.MemberID, at time.Duration) domain.Member {
		return domain.Member{ID: id, BeatAt: start.Add(at), Share: 1}
	}
	var v View
	if _, _, ok := v.Living(mine); ok {
		t.Error("it judges before it has heard anything")
	}
	v.Saw(true, []domain.Member{beat("A", 0), beat("B", -19*time.Second), beat("DEAD", -20*time.Second), beat("AHEAD", time.Hour)}, nil, start, mine)
	for _, step := range []struct {
		after time.Duration
		do    func(at time.Time)
		want  string
	}{
		{0, func(time.Time) {}, "A AHEAD B"},
		{time.Second, func(time.Time) {}, "A AHEAD"},
		{10 * time.Second, func(at time.Time) {
			v.Saw(false, []domain.Member{beat("A", 10*time.Second)}, nil, start.Add(10*time.Second), at)
		}, "A AHEAD"},
		{19 * time.Second, func(time.Time) {}, "A AHEAD"},
		{20 * time.Second, func(at time.Time) { v.Saw(false, nil, []string{"C"}, start.Add(20*time.Second), at) }, "A"},
		{22 * time.Second, func(at time.Time) {
			v.Saw(false, []domain.Member{beat("C", 22*time.Second)}, nil, start.Add(22*time.Second), at)
		}, "A C"},
		{24 * time.Second, func(at time.Time) { v.Saw(false, nil, []string{"A"}, start.Add(24*time.Second), at) }, "C"},
		{39 * time.Second, func(time.Time) {}, "C"},
		{40 * time.Second, func(time.Time) {}, "outdated"},
		{41 * time.Second, func(at time.Time) {
			v.Saw(true, []domain.Member{beat("D", 41*time.Second)}, nil, start.Add(41*time.Second), at)
		}, "D"},
	} {
		at := mine.Add(step.after)
		step.do(at)
		living, store, ok := v.Living(at)
		got := "outdated"
		if ok {
			got = ""
			for _, m := range living {
				if got += " " + string(m.ID); got[0] == ' ' {
					got = got[1:]
				}
			}
			if want := start.Add(step.after); !store.Equal(want) {
				t.Errorf("after %s the store's time is %s, want %s", step.after, store, want)
			}
		}
		if got != step.want {
			t.Errorf("after %s: %s, want %s", step.after, got, step.want)
		}
	}
}

// F-OWN-02: the share of a member that is late is halved once a minute, down to an eighth, and grows
// again after five minutes without a late cycle. One that is failing keeps next to nothing meanwhile.
func TestLoad_FollowsHowAMemberKeepsUp(t *testing.T) {
	m := domain.Member{Share: 4, ShareSince: start}
	var l Load
	var late time.Time
	for _, step := range []struct {
		at, late time.Duration // late below 0: not late again; below -1 h: failing
		share    float64
	}{
		{0, -1, 4}, {10 * time.Second, 9 * time.Second, 2}, {20 * time.Second, 19 * time.Second, 2}, {70 * time.Second, 69 * time.Second, 1},
		{3 * time.Minute, 2*time.Minute + 30*time.Second, 0.5}, {5 * time.Minute, 5 * time.Minute, 0.5}, {9 * time.Minute, -1, 0.5},
		{10 * time.Minute, -1, 1}, {14 * time.Minute, -1, 1}, {15 * time.Minute, -1, 2}, {20 * time.Minute, -1, 4}, {30 * time.Minute, -1, 4},
		{31 * time.Minute, -2 * time.Hour, 0.004}, {35 * time.Minute, -1, 0.004}, {36 * time.Minute, -1, 0.5}, {41 * time.Minute, -1, 1},
	} {
		if step.late >= 0 {
			late = start.Add(step.late)
		}
		before := m.Share
		changed := l.Adapt(&m, start.Add(step.at), late, step.late < -time.Hour, 4)
		if m.Share != step.share || changed != (before != m.Share) || changed && (m.ShareBefore != before || !m.ShareSince.IsZero()) {
			t.Errorf("at %s: %+v, changed %t; want share %g", step.at, m, changed, step.share)
		}
	}
}
