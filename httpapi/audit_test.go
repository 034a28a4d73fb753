package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
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

// F-API-04: the API says who holds a lock, and keeps its id.
func TestAPI_ShowsOneLock(t *testing.T) {
	s := serve(t)
	h, ok, err := lock.TryAcquire(t.Context(), s.locks, "patients:ward-7", lock.WithTTL(time.Minute))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	defer h.Close()
	var state struct {
		Locked bool
		Lock   map[string]any
	}
	if s.get("/api/v1/locks/show?key=patients:ward-7", http.StatusOK, &state); !state.Locked || state.Lock["fence"] != string(h.Fence()) || state.Lock["lockId"] != nil {
		t.Errorf("lock %+v", state)
	}
	state.Lock = nil
	if s.get("/api/v1/locks/show?key=free", http.StatusOK, &state); state.Locked || state.Lock != nil {
		t.Errorf("lock %+v", state)
	}
	s.refused(http.MethodGet, "/api/v1/locks/show", http.StatusBadRequest, "key is missing; give one such as optimizer:cycle:DEPOT-1")
	s.refused(http.MethodGet, "/api/v1/locks/show?key=", http.StatusBadRequest, "key is empty")
	s.refused(http.MethodGet, "/api/v1/locks/show?key=a/b", http.StatusBadRequest, `key "a/b" is invalid`)
}

// F-API-04: the story of a place says what changed it, by whom and why, and who
// needs it, also after it was deleted.
func TestAPI_TellsTheStoryOfAPlace(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	g.fleet()
	token := g.token(asOperator)
	g.asks(token, "POST", "/api/v1/depots/apply", `{"reason": "more room", "depots": [{"id": "DEPOT-1", "name": "Main", "position": {"lat": 48.85, "lon": 2.35}, "capacity": 9}]}`, 200)
	g.asks(token, "POST", "/api/v1/warehouses/apply", `{"reason": "opened", "warehouses": [{"id": "W9", "position": {"lat": 48, "lon": 2}, "authorizedProductTypes": ["BLOOD"]}]}`, 200)
	g.asks(token, "POST", "/api/v1/warehouses/W9/delete", `{"reason": "burnt down"}`, 200)
	tell := func(path string) (s operator.StoryJSON) {
		t.Helper()
		if err := json.Unmarshal([]byte(g.asks(token, "GET", "/api/v1/"+path+"/story", "", 200).body), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	depot := tell("depots/DEPOT-1")
	if depot.Depot == nil || depot.Depot.Capacity != 9 || len(depot.Changes) != 1 || depot.Changes[0].ChangedBy != "ann@example.org" || depot.Changes[0].Why != "more room" ||
		!slices.Equal(depot.NeededBy, []string{"drone D1", "drone D2", "drone D3"}) || len(depot.Steps) != 1 || !strings.Contains(depot.Steps[0].Related, "capacity: 0 -> 9") {
		t.Errorf("depot %+v", depot)
	}
	if w := tell("warehouses/W1"); w.Warehouse == nil || len(w.NeededBy) != 1 || !strings.HasPrefix(w.NeededBy[0], "mission M-DEC-1 ") {
		t.Errorf("warehouse %+v", w)
	}
	if gone := tell("warehouses/W9"); gone.Warehouse != nil || len(gone.Changes) != 2 || gone.Changes[1].Action != domain.PlaceDeleted || gone.Changes[1].Why != "burnt down" {
		t.Errorf("deleted warehouse %+v", gone)
	}
	g.asks(token, "GET", "/api/v1/depots/NONE/story", "", 404, `nothing is recorded about depot "NONE"`)
}

// F-API-04: an operator can publish a message as the command line does; a report gets its
// drone's ordering key (F-TEL-13). What became of a refused one can be asked.
func TestAPI_PublishesMessages(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	if err := pubsubio.Ensure(t.Context(), g.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	token, path := g.token(asOperator), "/api/v1/messages/publish"
	for _, body := range []string{`"text": "{poison"`, `"data": "e3BvaXNvbg=="`} {
		g.asks(token, "POST", path, `{"reason": "a trial", "topic": "orders", `+body+`, "orderingKey": "K", "attributes": {"content-type": "application/json"}}`, 200, `"messageId":"`, `"topic":"orders"`)
	}
	received := 0
	emutest.Eventually(t, "both messages", func() error {
		pulled, err := g.clients.PubSub.SubscriptionAdminClient.Pull(t.Context(), &pubsubpb.PullRequest{
			Subscription: "projects/" + g.clients.PubSub.Project() + "/subscriptions/" + pubsubio.Subscription(pubsubio.TopicOrders), MaxMessages: 10,
		})
		if err != nil {
			return err
		}
		for _, m := range pulled.GetReceivedMessages() {
			received++
			if string(m.Message.Data) != "{poison" || m.Message.OrderingKey != "K" || m.Message.Attributes["content-type"] != "application/json" {
				t.Errorf("received %v", m)
			}
			if err := g.clients.PubSub.SubscriptionAdminClient.Acknowledge(t.Context(), &pubsubpb.AcknowledgeRequest{
				Subscription: "projects/" + g.clients.PubSub.Project() + "/subscriptions/" + pubsubio.Subscription(pubsubio.TopicOrders), AckIds: []string{m.AckId},
			}); err != nil {
				return err
			}
		}
		if received != 2 {
			return fmt.Errorf("%d messages", received)
		}
		return nil
	})
	for body, part := range map[string]string{
		`{"topic": "orders", "text": "x"}`:                                                                    "reason is blank",
		`{"reason": "x", "topic": "missions", "text": "x"}`:                                                   `topic is \"missions\"`,
		`{"reason": "x", "topic": "orders"}`:                                                                  "text is empty, and so is data",
		`{"reason": "x", "topic": "orders", "text": ""}`:                                                      "text is empty, and so is data",
		`{"reason": "x", "topic": "orders", "text": "x", "data": "eA=="}`:                                     "text is given, and so is data",
		`{"reason": "x", "topic": "orders", "data": "!"}`:                                                     "data is not base64",
		`{"reason": "x", "topic": "orders", "text": "x", "attributes": {"googx": "1"}}`:                       "attributes has the name",
		`{"reason": "x", "topic": "orders", "text": "x", "attributes": {"": "1"}}`:                            "attributes has the name",
		`{"reason": "x", "topic": "orders", "text": "x", "orderingKey": "` + strings.Repeat("k", 1025) + `"}`: "orderingKey has 1025 bytes",
	} {
		g.asks(token, "POST", path, body, 400, strings.ReplaceAll(part, `\"`, `"`))
	}
	g.asks(g.token(asViewer), "POST", path, `{"reason": "x", "topic": "orders", "text": "x"}`, 403)
	if text := g.log.String(); !strings.Contains(text, `command="messages publish"`) || !strings.Contains(text, `reason="a trial"`) {
		t.Error("the log does not say who published")
	}
}
