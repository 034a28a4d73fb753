package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/lock"
)

// F-API-04: the API tells the story of an entity as the command audit does.
func TestAPI_TellsTheStoryOfAnEntity(t *testing.T) {
	s := serve(t)
	s.fleet()
	for path, want := range map[string]struct{ subject, status string }{
		"orders/O1": {"order", "ASSIGNED"}, "drones/D1": {"drone", "MOVING"}, "missions/M-DEC-1": {"mission", "ACTIVE"}, "decisions/DEC-1": {"decision", ""},
	} {
		var story struct {
			Subject, ID string
			Order       entity.Order
			Drone       entity.Drone
			Mission     entity.Mission
			Events      []entity.Event
			Decisions   []entity.Decision
		}
		s.get("/api/v1/"+path+"/story", http.StatusOK, &story)
		status := map[string]string{"order": string(story.Order.Status), "drone": string(story.Drone.Status), "mission": string(story.Mission.Status)}[want.subject]
		if story.Subject != want.subject || status != want.status || len(story.Events) < 2 || len(story.Decisions) < 1 {
			t.Errorf("%s: %+v", path, story)
		}
	}
	s.refused(http.MethodGet, "/api/v1/orders/NONE/story", http.StatusNotFound, `nothing is recorded about order "NONE"`)
}

// F-API-04: the API lists locks and dead letters; only the keys of the fleet's own locks
// are shown, and never a lock's id.
func TestAPI_ListsLocksAndDeadLetters(t *testing.T) {
	s := serve(t)
	s.fleet()
	if err := pubsubio.Ensure(t.Context(), s.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{domain.CycleLockKey("DEPOT-1"), "patients:ward-7"} {
		h, ok, err := lock.TryAcquire(t.Context(), s.locks, key, lock.WithTTL(time.Minute))
		if err != nil || !ok {
			t.Fatalf("lock %s: %t, %v", key, ok, err)
		}
		defer h.Close()
	}
	var locks struct{ Locks []map[string]any }
	s.get("/api/v1/locks", http.StatusOK, &locks)
	var keys []string
	for _, l := range locks.Locks {
		key, _ := l["key"].(string)
		keys = append(keys, key)
		if l["lockId"] != nil || l["keyHash"] == nil || l["fence"] == nil {
			t.Errorf("lock %v", l)
		}
	}
	if got := strings.Join(keys, ""); len(keys) != 2 || got != domain.CycleLockKey("DEPOT-1") {
		t.Errorf("keys %q", keys)
	}
	var letters struct {
		DeadLetters []map[string]any
		More        bool
	}
	if s.get("/api/v1/deadletters?topic=orders", http.StatusOK, &letters); letters.DeadLetters == nil || len(letters.DeadLetters) > 0 {
		t.Errorf("dead letters %+v", letters)
	}
	s.refused(http.MethodGet, "/api/v1/deadletters?topic=missions", http.StatusBadRequest, "topic is")
}
