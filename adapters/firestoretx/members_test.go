package firestoretx_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-OWN-01: a heartbeat is one write, dated by the server. Whoever polls the members hears of one that
// came or changed, left or fell silent, and not of heartbeats. One that was killed expires, whatever
// its clock said.
func TestStore_KeepsMembers(t *testing.T) {
	clock := clockwork.NewFakeClockAt(time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC))
	emutest.ServeFirestore(t, firestoreemu.Options{Clock: clock, Indexes: deploy.FirestoreIndexes})
	clients := emutest.Clients(t)
	lost := func() time.Time { return clock.Now().Add(-time.Hour) }
	store := firestoretx.New(clients.Firestore, firestoretx.Config{Now: lost})
	ctx := t.Context()
	const silence = 20 * time.Second
	poll := func(p domain.MemberPoll) domain.MemberNews {
		t.Helper()
		p.Silence = silence
		news, err := store.PollMembers(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		return news
	}
	beat := func(m domain.Member) time.Time {
		t.Helper()
		at, err := store.Beat(ctx, m)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	if news := poll(domain.MemberPoll{}); !news.Whole || !news.ReadTime.IsZero() {
		t.Errorf("without members %+v", news)
	}
	m := domain.Member{ID: "M1", Holder: "host", Depots: []domain.DepotID{"D1"}, Share: 2}
	came := beat(m)
	first := poll(domain.MemberPoll{})
	if !first.Whole || len(first.Changed) == 0 || first.SilentUntil != first.ReadTime.Add(-silence) {
		t.Fatalf("at first %+v", first)
	}
	got := first.Changed[0]
	if got.Holder != "host" || !slices.Equal(got.Depots, m.Depots) || got.Share != 2 || came.Sub(got.ShareSince).Abs() > time.Millisecond || came.Sub(got.BeatAt).Abs() > time.Millisecond {
		t.Errorf("heard of %+v, which came at %s", got, came)
	}
	clock.Advance(10 * time.Second)
	m.ShareSince, came = got.ShareSince, got.ShareSince
	beat(m)
	next := domain.MemberPoll{ChangedFrom: came.Add(time.Microsecond), SilentAfter: first.SilentUntil, Count: true}
	if news := poll(next); !news.Whole {
		t.Errorf("without a change that would tell the time: %+v", news)
	}
	next.ChangedFrom = came
	if news := poll(next); news.Whole || len(news.Changed) != 1 || len(news.Silent) > 0 || news.Living != 1 {
		t.Errorf("after another heartbeat %+v", news)
	}
	beat(domain.Member{ID: "M2", Share: 1})
	if news := poll(next); len(news.Changed) != 2 || news.Living != 2 || !news.Counted {
		t.Errorf("after another has come %+v", news)
	}
	if err := store.Leave(ctx, "M2"); err != nil {
		t.Fatal(err)
	}
	if news := poll(next); len(news.Changed) != 2 || !news.Changed[1].BeatAt.IsZero() || news.Living != 1 {
		t.Errorf("after it has left %+v", news)
	}
	if err := store.Leave(ctx, "STRANGER"); err != nil {
		t.Error(err)
	}
	clock.Advance(silence)
	if news := poll(next); !slices.Equal(news.Silent, []domain.MemberID{"M1"}) || news.Living != 0 {
		t.Errorf("after a silence %+v", news)
	}
	if _, err := clients.Firestore.Doc("members/M2").Set(ctx, map[string]any{"shareSince": clock.Now(), "share": "much"}); err != nil {
		t.Fatal(err)
	}
	if news := poll(next); len(news.Changed) != 1 || len(news.Malformed) != 1 {
		t.Errorf("with a malformed document %+v", news)
	}
	doc, err := clients.Firestore.Doc("members/M1").Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if expires, ok := doc.Data()["expireAt"].(time.Time); !ok || expires.Before(clock.Now()) {
		t.Errorf("it expires at %v", doc.Data()["expireAt"])
	}
}
