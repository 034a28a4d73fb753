package firestoretx_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-OWN-01: a heartbeat is one write, dated by the server, and is heard of by whoever follows the
// members. A member that leaves is gone. One that was killed expires, whatever its clock said.
func TestStore_KeepsMembers(t *testing.T) {
	clients := emutest.Clients(t)
	lost := func() time.Time { return time.Now().Add(-time.Hour) }
	store := firestoretx.New(clients.Firestore, firestoretx.Config{Now: lost})
	ctx, stop := context.WithCancel(t.Context())
	sights, ended := make(chan firestoretx.Sight[domain.Member], 10), make(chan error, 1)
	go func() {
		ended <- store.FollowMembers(ctx, func(s firestoretx.Sight[domain.Member]) { sights <- s })
	}()
	if s := <-sights; !s.Whole || len(s.Now) > 0 {
		t.Errorf("first %+v", s)
	}
	m := domain.Member{ID: "M1", Holder: "host", Depots: []domain.DepotID{"D1"}, Share: 2}
	began := time.Now()
	at, err := store.Beat(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	s := <-sights
	if len(s.Now) != 1 || s.Now[0].Holder != "host" || !slices.Equal(s.Now[0].Depots, m.Depots) || s.Now[0].Share != 2 || s.Now[0].BeatAt.Before(began.Add(-time.Minute)) {
		t.Fatalf("heard of %+v", s)
	}
	since := s.Now[0].ShareSince
	if since.IsZero() || at.Sub(since).Abs() > time.Minute || s.ReadTime.Before(s.Now[0].BeatAt) {
		t.Errorf("the share is %s old at %s", since, at)
	}
	m.ShareSince = since
	if _, err := store.Beat(ctx, m); err != nil {
		t.Fatal(err)
	}
	if s := <-sights; len(s.Now) != 1 || !s.Now[0].ShareSince.Equal(since) || s.Now[0].BeatAt.Before(since) {
		t.Errorf("after another heartbeat %+v", s)
	}
	doc, err := clients.Firestore.Doc("members/M1").Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if expires, ok := doc.Data()["expireAt"].(time.Time); !ok || expires.Before(time.Now()) {
		t.Errorf("it expires at %v", doc.Data()["expireAt"])
	}
	if err := store.Leave(ctx, "M1"); err != nil {
		t.Fatal(err)
	}
	if s := <-sights; !slices.Equal(s.Gone, []string{"M1"}) {
		t.Errorf("after it left %+v", s)
	}
	stop()
	<-ended
}
