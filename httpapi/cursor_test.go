package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-API-09: drones that exist throughout are listed once each, whatever is created and
// deleted between pages, the drone that a page ended with included; a page costs at most
// one read more than it shows.
func TestCursor_IsStableWhileDocumentsChange(t *testing.T) {
	s := serve(t)
	add := func(ids ...string) {
		t.Helper()
		var drones []domain.Drone
		for _, id := range ids {
			drones = append(drones, domain.Drone{ID: domain.DroneID(id)})
		}
		if err := s.store.Setup(t.Context(), nil, nil, drones); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for i := range 9 {
		want = append(want, fmt.Sprintf("D%d", i))
		add(want[i], fmt.Sprintf("D%d-goes", i))
	}
	var seen []string
	for query, pages := "?limit=4", 0; query != ""; pages++ {
		var page struct {
			Drones     []entity.Drone
			NextCursor string
		}
		before := s.clients.Meter.FirestoreByOperation()["http"].Reads
		s.get("/api/v1/drones"+query, http.StatusOK, &page)
		if reads := s.clients.Meter.FirestoreByOperation()["http"].Reads - before; reads > int64(len(page.Drones))+1 {
			t.Errorf("page %d shows %d drones for %d reads", pages, len(page.Drones), reads)
		}
		for _, d := range page.Drones {
			if slices.Contains(seen, string(d.ID)) {
				t.Errorf("%s is listed twice", d.ID)
			}
			seen = append(seen, string(d.ID))
		}
		if query = ""; page.NextCursor != "" {
			query = "?limit=4&cursor=" + page.NextCursor
		}
		for i := range want {
			if _, err := s.clients.Firestore.Doc(fmt.Sprintf("drones/D%d-goes", i)).Delete(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		add(fmt.Sprintf("A%d-new", pages), fmt.Sprintf("D5-new%d", pages))
		if pages > 9 {
			t.Fatal("the pages do not end")
		}
	}
	for _, id := range want {
		if !slices.Contains(seen, id) {
			t.Errorf("%s is missing in %q", id, seen)
		}
	}
}

// each asks for all pages of a list and returns how many entries each had.
func (s *served) each(list, field string, see func(map[string]any)) (sizes []int) {
	s.t.Helper()
	for query := ""; len(sizes) < 20; {
		var page map[string]any
		s.get(list+query, http.StatusOK, &page)
		entries, _ := page[field].([]any)
		for _, e := range entries {
			see(e.(map[string]any))
		}
		sizes = append(sizes, len(entries))
		next, more := page["nextCursor"].(string)
		if !more {
			return sizes
		}
		query = "&cursor=" + next
	}
	s.t.Fatalf("the pages of %s do not end", list)
	return nil
}

// F-API-09: dead letters have pages in the order in which the original messages were
// published, locks in that of their hash.
func TestCursor_PagesThroughDeadLettersAndLocks(t *testing.T) {
	s := serve(t)
	if err := pubsubio.Ensure(t.Context(), s.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	publisher := pubsubio.NewPublisher(s.clients.PubSub)
	defer publisher.Stop()
	var want []string
	for i := range 12 {
		topic := pubsubio.InboundTopics[i%len(pubsubio.InboundTopics)]
		text := fmt.Sprintf("message %d", i)
		if _, err := publisher.Publish(t.Context(), pubsubio.DeadLetterTopic(topic), []byte(text), map[string]string{
			pubsubio.AttrReason: "INVALID", pubsubio.AttrPublishTime: time.Date(2026, 11, 21, 12, 0, i/4, 0, time.UTC).Format("2006-01-02T15:04:05.000000Z07:00"),
		}, "").Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		want = append(want, text)
	}
	var seen []string
	emutest.Eventually(t, "all letters", func() error {
		seen = nil
		sizes := s.each("/api/v1/deadletters?limit=5", "deadLetters", func(l map[string]any) { seen = append(seen, l["text"].(string)) })
		if !slices.Equal(sizes, []int{5, 5, 2}) {
			return fmt.Errorf("pages of %v letters", sizes)
		}
		return nil
	})
	for i := range 3 { // letters of one second may stand in any order
		slices.Sort(seen[4*i : 4*i+4])
		slices.Sort(want[4*i : 4*i+4])
	}
	if !slices.Equal(seen, want) {
		t.Errorf("letters %q, want %q", seen, want)
	}
	for i := range 7 {
		h, ok, err := lock.TryAcquire(t.Context(), s.locks, fmt.Sprintf("key %d", i), lock.WithTTL(time.Minute))
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		defer h.Close()
	}
	var hashes []string
	sizes := s.each("/api/v1/locks?limit=3", "locks", func(l map[string]any) { hashes = append(hashes, l["keyHash"].(string)) })
	if !slices.Equal(sizes, []int{3, 3, 1}) || !slices.IsSorted(hashes) || len(slices.Compact(hashes)) != 7 {
		t.Errorf("pages of %v locks: %q", sizes, hashes)
	}
}
