package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/domain"
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
