package membership

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/internal/simclock"
)

// F-OWN-01: a member whose document is malformed is named in the log, because it gets no areas.
func TestMembership_LogsMalformedMembers(t *testing.T) {
	var logged bytes.Buffer
	m := New(Config{Clock: simclock.Real(), Log: slog.New(slog.NewTextHandler(&logged, nil))})
	m.saw(domain.MemberNews{Whole: true, Malformed: []error{errors.New("members/M1: field share")}})
	if text := logged.String(); !strings.Contains(text, "members/M1: field share") || strings.Count(text, "\n") != 1 {
		t.Errorf("log %q", text)
	}
}

// F-OWN-02: optimizers and State Managers are members of two kinds, and share nothing.
func TestMembership_KnowsItsOwnKind(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	news := domain.MemberNews{Whole: true, ReadTime: now, SilentUntil: now.Add(-20 * time.Second), Changed: []domain.Member{
		{ID: "O1", Share: 1, BeatAt: now}, {ID: "S1", Sweeps: true, BeatAt: now}, {ID: "O2", Share: 1, BeatAt: now},
	}}
	for _, c := range []struct {
		self domain.Member
		want string
	}{
		{domain.Member{ID: "O2"}, "O1 O2 true"},
		{domain.Member{ID: "S1", Sweeps: true}, "S1 true"},
		{domain.Member{ID: "S2", Sweeps: true}, "S1 false"},
	} {
		m := New(Config{Clock: simclock.Real(), Self: c.self})
		m.saw(news)
		living, self, _, ok := m.Living()
		var got string
		for _, other := range living {
			got += string(other.ID) + " "
		}
		if got += fmt.Sprint(ok); got != c.want || self != c.self.ID {
			t.Errorf("%s knows %s, want %s", self, got, c.want)
		}
	}
}

// F-OWN-03: a member whose heartbeat was so late that others may take it for dead tells them that it
// changed, and keeps its share.
func TestMembership_TellsThatItIsBack(t *testing.T) {
	clock := clockwork.NewFakeClockAt(time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC))
	client := firestoreemu.StartT(t, firestoreemu.Options{InProcess: true, Clock: clock}).ClientT(t, "team")
	store := firestoretx.New(client, firestoretx.Config{Now: clock.Now})
	m := New(Config{Clock: simclock.ByHand(clock), Log: slog.New(slog.DiscardHandler), Store: store, Self: domain.Member{ID: "M1", Share: 4}})
	var told time.Time
	for i, step := range []struct {
		after time.Duration
		tells bool
	}{{0, true}, {10 * time.Second, false}, {16 * time.Second, false}, {0, true}, {10 * time.Second, false}} {
		clock.Advance(step.after)
		if err := m.beatOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		news, err := store.PollMembers(t.Context(), domain.MemberPoll{Silence: m.silence})
		if err != nil {
			t.Fatal(err)
		}
		was := news.Changed[0]
		if since := was.ShareSince.Truncate(time.Millisecond); since.After(told) != step.tells || was.Share != 4 {
			t.Errorf("heartbeat %d: %+v", i, was)
		}
		told = was.ShareSince.Truncate(time.Millisecond)
		if back := i == 3; back && was.ShareBefore != 4 {
			t.Errorf("once back its share was %g before", was.ShareBefore)
		}
	}
}
