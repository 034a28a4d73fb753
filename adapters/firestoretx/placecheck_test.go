package firestoretx

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-OWN-05: a listener that has missed a change serves nobody. If it still has not seen the change when
// it is checked again, it begins anew.
func TestStore_FollowsPlacesAnewAfterAMissedChange(t *testing.T) {
	now := time.Now()
	s := New(emutest.Clients(t).Firestore, Config{Now: func() time.Time { return now }})
	begun := 0
	s.places.begin(now, func() { begun++ }, func() bool { return s.checkPlaces(t.Context()) })
	sight := func(at time.Time) {
		s.places.seen.depots.saw(Sight[domain.Depot]{Whole: true, ReadTime: at}, nil)
		s.places.seen.warehouses.saw(Sight[domain.Warehouse]{Whole: true, ReadTime: at}, nil)
	}
	if s.followed(t.Context()) != nil {
		t.Error("places are known before the first sight")
	}
	sight(time.Now().Add(-time.Minute))
	if s.followed(t.Context()) == nil {
		t.Error("without changes a listener counts as out of date")
	}
	if _, err := s.ApplyDepot(t.Context(), domain.Depot{ID: "A"}, Change{By: "ann", Why: "test"}); err != nil {
		t.Fatal(err)
	}
	if s.followed(t.Context()) == nil {
		t.Error("places are checked more than once in ten seconds")
	}
	for i := range 3 {
		now = now.Add(placesRemembered + time.Second)
		if known := s.followed(t.Context()); known != nil || begun != i {
			t.Errorf("after a missed change, check %d: known %v, listeners begun anew %d times", i, known != nil, begun)
		}
	}
	sight(time.Now().Add(time.Minute))
	if s.followed(t.Context()) == nil {
		t.Error("what the listener has seen since does not count")
	}
}
