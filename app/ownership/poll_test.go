package ownership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// crowd are members that come, change, pause, die, leave and come back at random, and viewers that
// poll them.
type crowd struct {
	*testing.T
	*rand.Rand
	clock   *clockwork.FakeClock
	client  *firestore.Client
	store   *firestoretx.Store
	members []*crowdMember
	views   []*crowdView
	edited  time.Time // when somebody last deleted a document by hand
}

type crowdMember struct {
	domain.Member
	lives        bool
	beaten, next time.Time
}

type crowdView struct {
	View
	next time.Time
}

// noticed is how long after an edit by hand all views are right again: members write a deleted
// document anew after 40 s at most, and two counts take 30 s.
const noticed = 90 * time.Second

func newCrowd(t *testing.T, seed uint64) *crowd {
	t.Helper()
	clock := clockwork.NewFakeClockAt(start)
	server, err := firestoreemu.Start(firestoreemu.Options{InProcess: true, Clock: clock, Indexes: deploy.FirestoreIndexes, Retention: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	client, err := server.Client(t.Context(), "members")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = client.Close(), server.Close()
	})
	c := &crowd{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), clock: clock, client: client, store: firestoretx.New(client, firestoretx.Config{Now: clock.Now})}
	for i := range 12 {
		c.members = append(c.members, &crowdMember{Member: domain.Member{ID: domain.MemberID(fmt.Sprintf("M%02d", i))}})
	}
	c.views = []*crowdView{{}, {}, {}}
	return c
}

// beat writes a heartbeat as a member does.
func (c *crowd) beat(m *crowdMember) {
	at, err := c.store.Beat(c.Context(), m.Member)
	if err != nil {
		c.Fatal(err)
	}
	late := Late(m.beaten, at, Silence)
	m.beaten, m.next = at, c.clock.Now().Add(Heartbeat)
	if c.IntN(10) == 0 { // it will be late
		m.next = m.next.Add(time.Duration(c.IntN(300)) * 100 * time.Millisecond)
	}
	switch {
	case m.ShareSince.IsZero():
		m.ShareSince = at
	case late:
		m.ShareBefore, m.ShareSince = m.Share, time.Time{}
		c.beat(m)
	}
}

// happens lets something happen to a member.
func (c *crowd) happens(m *crowdMember) {
	switch what := c.IntN(10); {
	case !m.lives && what < 3: // it comes, or comes back
		m.lives, m.Share, m.ShareBefore, m.ShareSince = true, 1+float64(c.IntN(4)), 0, time.Time{}
		c.beat(m)
	case m.lives && what == 3: // it is killed
		m.lives = false
	case m.lives && what == 4:
		m.lives = false
		if err := c.store.Leave(c.Context(), m.ID); err != nil {
			c.Fatal(err)
		}
	case m.lives && what == 5:
		m.ShareBefore, m.Share, m.ShareSince = m.Share, m.Share/2, time.Time{}
		c.beat(m)
	case what == 6 && c.clock.Since(c.edited) > 3*noticed: // somebody deletes it
		if _, err := c.client.Doc("members/" + string(m.ID)).Delete(c.Context()); err != nil {
			c.Fatal(err)
		}
		c.edited = c.clock.Now()
	}
}

// poll polls as a member does, and compares what it knows with all documents.
func (c *crowd) poll(v *crowdView, broken func(*domain.MemberPoll)) error {
	ask := v.Ask(Silence, c.clock.Now())
	if broken != nil {
		broken(&ask)
	}
	news, err := c.store.PollMembers(c.Context(), ask)
	if err != nil {
		c.Fatal(err)
	}
	if v.Saw(news, c.clock.Now()); news.ReadTime.IsZero() {
		return nil
	}
	living, _, ok := v.Living(c.clock.Now())
	if !ok {
		return fmt.Errorf("outdated after a poll")
	}
	docs, err := c.client.Collection("members").Documents(c.Context()).GetAll()
	if err != nil {
		c.Fatal(err)
	}
	var got, want []string
	for _, m := range living {
		got = append(got, fmt.Sprint(m.ID, " ", m.Share, " ", m.ShareBefore))
	}
	for _, doc := range docs {
		data := doc.Data()
		if beat, ok := data["beatAt"].(time.Time); ok && beat.After(news.SilentUntil) {
			want = append(want, fmt.Sprint(doc.Ref.ID, " ", data["share"], " ", data["shareBefore"]))
		}
	}
	if c.clock.Since(c.edited) > noticed && !slices.Equal(got, want) {
		return fmt.Errorf("at %s it knows %q, want %q; asked %+v, heard %+v", c.clock.Since(start), got, want, ask, news)
	}
	return nil
}

// run lets time pass. It returns the first mistake of a view.
func (c *crowd) run(d time.Duration, broken func(*domain.MemberPoll)) error {
	for c.clock.Since(start) < d {
		for _, v := range c.views {
			if c.clock.Now().Before(v.next) {
				continue
			}
			if err := c.poll(v, broken); err != nil {
				return err
			}
			v.next = c.clock.Now().Add(time.Duration(c.IntN(50)) * 100 * time.Millisecond)
			if c.IntN(100) == 0 { // it pauses
				v.next = v.next.Add(time.Minute)
			}
		}
		// Heartbeats are often a millisecond after the time until which some poll looked.
		c.clock.Advance(time.Millisecond)
		if c.IntN(20) == 0 {
			c.happens(c.members[c.IntN(len(c.members))])
		}
		for _, m := range c.members {
			if m.lives && !c.clock.Now().Before(m.next) {
				c.beat(m)
			}
		}
		c.clock.Advance(99 * time.Millisecond)
	}
	return nil
}

// F-OWN-01, F-OWN-03: whoever polls the members knows, after each poll, exactly those that a reader
// of all documents would take for living, with their shares. What was deleted by hand is noticed by
// counts. A poll that leaves out a millisecond is found out.
func TestView_KnowsWhoLives(t *testing.T) {
	const long = 10 * time.Minute
	for seed := range longtest.Size(t, "seeds", uint64(1), 5) {
		if err := newCrowd(t, seed).run(long, nil); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	if err := newCrowd(t, 0).run(long, func(p *domain.MemberPoll) { p.SilentAfter = p.SilentAfter.Add(time.Millisecond) }); err == nil {
		t.Error("polls that leave out a millisecond are not noticed")
	}
}
