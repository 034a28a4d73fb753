package dispatch

import (
	"bytes"
	"errors"
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
func TestTeam_LogsMalformedMembers(t *testing.T) {
	var logged bytes.Buffer
	team := newTeam(&Runner{clock: simclock.Real(), log: slog.New(slog.NewTextHandler(&logged, nil))})
	team.saw(domain.MemberNews{Whole: true, Malformed: []error{errors.New("members/M1: field share")}})
	if text := logged.String(); !strings.Contains(text, "members/M1: field share") || strings.Count(text, "\n") != 1 {
		t.Errorf("log %q", text)
	}
}

// F-OWN-03: a member whose heartbeat was so late that others may take it for dead tells them that it
// changed, and keeps its share.
func TestTeam_TellsThatItIsBack(t *testing.T) {
	clock := clockwork.NewFakeClockAt(time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC))
	client := firestoreemu.StartT(t, firestoreemu.Options{InProcess: true, Clock: clock}).ClientT(t, "team")
	store := firestoretx.New(client, firestoretx.Config{Now: clock.Now})
	team := newTeam(&Runner{clock: simclock.ByHand(clock), log: slog.New(slog.DiscardHandler), store: store, cfg: Config{Searches: 4}})
	team.self.ID = "M1"
	var told time.Time
	for i, step := range []struct {
		after time.Duration
		tells bool
	}{{0, true}, {10 * time.Second, false}, {16 * time.Second, false}, {0, true}, {10 * time.Second, false}} {
		clock.Advance(step.after)
		if err := team.beatOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		news, err := store.PollMembers(t.Context(), domain.MemberPoll{Silence: team.silence})
		if err != nil {
			t.Fatal(err)
		}
		m := news.Changed[0]
		if since := m.ShareSince.Truncate(time.Millisecond); since.After(told) != step.tells || m.Share != 4 {
			t.Errorf("heartbeat %d: %+v", i, m)
		}
		told = m.ShareSince.Truncate(time.Millisecond)
		if back := i == 3; back && m.ShareBefore != 4 {
			t.Errorf("once back its share was %g before", m.ShareBefore)
		}
	}
}
