package ownership

import (
	"fmt"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// ids are those of members, in their order.
func ids(members []domain.Member) (list []domain.MemberID) {
	for _, m := range members {
		list = append(list, m.ID)
	}
	return list
}

// F-OWN-01, F-OWN-03: a member lives for two heartbeats after its latest one, by the server's time,
// whatever the clocks of both say. A view that hears nothing judges nobody, and then asks for all.
func TestView_JudgesByTheStoresTime(t *testing.T) {
	mine := start.Add(5 * time.Hour) // the viewer's clock is off
	beat := func(id domain.MemberID, at time.Duration) domain.Member {
		return domain.Member{ID: id, BeatAt: start.Add(at), ShareSince: start.Add(-time.Hour), Share: 1}
	}
	var v View
	if _, _, ok := v.Living(mine); ok {
		t.Error("it judges before it has heard anything")
	}
	if p := v.Ask(Silence, mine); !p.ChangedFrom.IsZero() {
		t.Errorf("at first it asks for %+v", p)
	}
	for _, step := range []struct {
		at   time.Duration
		news *domain.MemberNews // nil: the store does not answer
		want string
	}{
		{0, &domain.MemberNews{Whole: true, Changed: []domain.Member{beat("A", 0), beat("B", -19*time.Second), beat("DEAD", -20*time.Second), beat("AHEAD", time.Hour)}}, "[A AHEAD B]"},
		{time.Second, &domain.MemberNews{Silent: []domain.MemberID{"B"}}, "[A AHEAD]"},
		{3 * time.Second, &domain.MemberNews{Changed: []domain.Member{beat("C", 2*time.Second), beat("A", 1*time.Second)}}, "[A AHEAD C]"},
		{5 * time.Second, &domain.MemberNews{Changed: []domain.Member{{ID: "A", ShareSince: start.Add(4 * time.Second)}}}, "[AHEAD C]"}, // it left
		{20 * time.Second, nil, "[AHEAD C]"},
		{20*time.Second + 1, nil, "outdated"},
		{40 * time.Second, &domain.MemberNews{Whole: true, Changed: []domain.Member{beat("D", 39*time.Second)}}, "[D]"},
	} {
		at := mine.Add(step.at)
		if asksForAll := v.Ask(Silence, at).ChangedFrom.IsZero(); step.news != nil && asksForAll != step.news.Whole {
			t.Errorf("after %s it asks for all: %t", step.at, asksForAll)
		}
		if step.news != nil {
			step.news.ReadTime, step.news.SilentUntil = start.Add(step.at), start.Add(step.at-Silence)
			v.Saw(*step.news, at)
		}
		living, store, ok := v.Living(at)
		got := "outdated"
		if ok {
			got = fmt.Sprint(ids(living))
		}
		if want := start.Add(step.at); ok && !store.Equal(want) {
			t.Errorf("after %s the store's time is %s, want %s", step.at, store, want)
		}
		if got != step.want {
			t.Errorf("after %s: %s, want %s", step.at, got, step.want)
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
