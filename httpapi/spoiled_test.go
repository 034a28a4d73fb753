package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/genproto/googleapis/type/latlng"
)

// soundDocuments are one document of each kind with every field.
func soundDocuments(now time.Time) map[string]map[string]any {
	point := &latlng.LatLng{Latitude: 48.8566, Longitude: 2.3522}
	stop := map[string]any{"type": "HOSPITAL_DELIVERY", "position": point, "relatedOrderId": "O1", "relatedWarehouseId": "W1", "eta": now, "chargeToPercent": 80.0, "waitUntil": now}
	return map[string]map[string]any{
		"drones": {
			"status": "IDLE", "reportedStatus": "IDLE", "position": point, "batteryPercentage": 90.0, "speedKmh": 0.0, "lastUpdate": now, "seenAt": now, "currentMissionId": "", "missionAcked": false,
			"namedRevision": int64(0), "supportsAmendments": true, "faultSince": now, "groundedReason": "", "ghostMissionId": "M9", "failedMissions": []any{map[string]any{"missionId": "M9", "failedAt": now}},
			"homeDepotId": "DEPOT-1", "consumptionPerKm": 1.0, "consumptionPerKmKg": 0.1, "maxFlightTimeMinutes": int64(30), "payloadCapacityKg": 5.0, "chargeRate": 1.0, "revision": int64(1),
		},
		"orders": {
			"status": "PENDING", "priority": "CRITICAL", "productType": "BLOOD", "pickupLocation": point, "deliveryLocation": point, "packageWeightKg": 1.0, "createdAt": now, "deadline": now, "pendingSince": now,
			"deliveredAt": now, "attempts": int64(0), "held": false, "late": false, "pinnedDroneId": "", "forbiddenDroneIds": []any{"D9"}, "planningDepotId": "DEPOT-1", "planningSince": now, "handedOverBy": []any{"DEPOT-9"},
			"assignedDroneId": "D1", "assignedMissionId": "M1", "contentPublishedAt": now, "revision": int64(1),
		},
		"missions": {
			"droneId": "D1", "orderIds": []any{"O1"}, "route": []any{stop, stop}, "status": "ACTIVE", "startTime": now, "endTime": now, "estimatedBatteryConsumption": 10.0, "estimatedDurationMinutes": 5.0,
			"decisionId": "DEC-1", "cycleId": "C1", "fence": "1", "reachedStops": int64(1), "sightings": []any{map[string]any{"stop": int64(0), "at": now, "claimed": true}}, "droppedStops": []any{int64(1)}, "routeRevision": int64(1),
			"amendment":     map[string]any{"revision": int64(2), "route": []any{stop}, "droppedStops": []any{int64(1)}, "addedOrderIds": []any{"O2"}, "estimatedDurationMinutes": 5.0, "decidedAt": now},
			"earlierRoutes": []any{map[string]any{"revision": int64(1), "shared": int64(1)}}, "amendedAt": now, "recalledAt": now, "commandExpiresAt": now, "revision": int64(1),
		},
		"decisions": {
			"outcome": "APPLIED", "reason": "", "missionId": "M1", "droneId": "D1", "orderIds": []any{"O1"}, "cycleId": "C1", "depotId": "DEPOT-1", "snapshotTime": now, "appliedAt": now, "amendsMissionId": "M1", "revision": int64(1), "addedOrderIds": []any{"O1"},
		},
		"cycles": {
			"depotId": "DEPOT-1", "depotIds": []any{"DEPOT-1"}, "snapshotTime": now, "orders": int64(1), "distanceKm": 1.0, "unserved": []any{map[string]any{"orderId": "O1", "reason": "why", "freeDrones": int64(1), "battery": int64(1)}}, "leftOut": []any{"order O2: why"},
			"startedAt": now, "readMs": int64(1), "endedAt": now, "outcome": "EMPTY",
		},
		"depots":     {"name": "Main", "position": point, "capacity": int64(5), "chargingSlots": int64(2)},
		"warehouses": {"name": "Main", "position": point, "authorizedProductTypes": []any{"BLOOD"}, "isColdStorageCapable": true},
		"events": {
			"entity": "order", "id": "O1", "revision": int64(1), "from": "PENDING", "to": "ASSIGNED", "cause": "DECISION", "time": now, "droneId": "D1", "orderId": "O1", "missionId": "M1", "decisionId": "DEC-1", "cycleId": "C1",
			"state": map[string]any{"attempts": int64(1), "deadline": "x"},
		},
		"learned": {
			"until": now, "fromStart": map[string]any{"legs": 1.0, "km": 1.0}, "delays": []any{1.0}, "missions": int64(1), "speedKmh": 50.0, "flight": map[string]any{"legs": 1.0},
			"hours": []any{map[string]any{"hours": 1.0, "critical": 1.0}}, "places": []any{map[string]any{"position": point, "critical": 1.0, "weightKg": 1.0}},
		},
		"alertAcks": {"by": "ann", "at": now, "reason": "why"},
		"control":   {"fence": "1", "deletedWarehouses": map[string]any{"W1": now}},
	}
}

// spoiledValues are what a document may have in point of a value: of its type, and of another.
func spoiledValues(was any) []any {
	switch was := was.(type) {
	case string:
		return []any{"a/b", "__x__", "\x07\u202e", "FLYING", int64(7), nil}
	case int64, float64:
		return []any{int64(-1), int64(math.MaxInt64), int64(math.MinInt64), math.NaN(), math.Inf(1), 1e300, "7"}
	case time.Time:
		return []any{time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC), "now", nil}
	case bool:
		return []any{!was, nil}
	case []any:
		values := []any{[]any{}, []any{nil}, []any{[]byte("x")}, nil}
		for _, v := range spoiledValues(was[0]) {
			if _, list := v.([]any); !list && v != nil {
				values = append(values, []any{v, was[0]})
			}
		}
		return values
	case map[string]any:
		values := []any{map[string]any{}, "x"}
		for _, name := range slices.Sorted(maps.Keys(was)) {
			for _, v := range spoiledValues(was[name]) {
				other := maps.Clone(was)
				if other[name] = v; v == nil {
					delete(other, name)
				}
				values = append(values, other)
			}
		}
		return values
	}
	return []any{&latlng.LatLng{Latitude: -90, Longitude: 180}, "x", nil}
}

// spoil writes, for each field of each kind of document and each value, a document in which the
// field has that value. It returns the ids by collection.
func (s *served) spoil() map[string][]string {
	s.t.Helper()
	client, ids := s.clients.Firestore, map[string][]string{}
	writer := client.BulkWriter(s.t.Context())
	for collection, sound := range soundDocuments(time.Now().UTC().Truncate(time.Microsecond)) {
		for _, field := range slices.Sorted(maps.Keys(sound)) {
			for i, value := range spoiledValues(sound[field]) {
				fields, id := maps.Clone(sound), fmt.Sprintf("%s-%d", field, i)
				if fields[field] = value; value == nil {
					delete(fields, field)
				}
				if _, err := writer.Set(client.Doc(collection+"/"+id), fields); err != nil {
					s.t.Fatal(err)
				}
				ids[collection] = append(ids[collection], id)
			}
		}
	}
	writer.End()
	return ids
}

// answers requests a path and returns the body. An error of the server must name a document.
func (s *served) answers(path string) []byte {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Errorf("%s: %v", path, err)
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Errorf("%s: %v", path, err)
	}
	if resp.StatusCode >= 500 && !strings.Contains(string(body), ": field ") {
		s.t.Errorf("%s: status %d: %s", path, resp.StatusCode, body)
	}
	return body
}

// F-API-01: whatever documents say, every list shows the sound ones and names the others, every
// error names its document, and the live view goes on.
func TestAPI_AnswersWhateverDocumentsSay(t *testing.T) {
	beside(t)
	s := serve(t)
	s.fleet()
	s.client = &http.Client{Transport: &http.Transport{}} // the OpenAPI document knows only sound values
	ids := s.spoil()
	for collection, list := range ids {
		path := "/api/v1/" + collection
		switch collection {
		case "events", "learned", "alertAcks", "control":
			continue
		}
		listed := 0
		for next := "?limit=1000"; next != ""; {
			var page map[string]json.RawMessage
			body := s.answers(path + next)
			if err := json.Unmarshal(body, &page); err != nil {
				t.Fatalf("%s: %v: %s", path, err, body)
			}
			var items []map[string]any
			var malformed []string
			if err := json.Unmarshal(page[collection], &items); err != nil {
				t.Fatalf("%s: %v: %s", path, err, body)
			}
			if page["malformed"] != nil {
				if err := json.Unmarshal(page["malformed"], &malformed); err != nil {
					t.Fatal(err)
				}
			}
			listed += len(items) + len(malformed)
			if next = ""; page["nextCursor"] != nil {
				var cursor string
				if err := json.Unmarshal(page["nextCursor"], &cursor); err != nil {
					t.Fatal(err)
				}
				next = "?limit=1000&cursor=" + url.QueryEscape(cursor)
			}
		}
		if listed < len(list) {
			t.Errorf("%s lists %d of %d", path, listed, len(list))
		}
		for i := 0; i < len(list); i += 10 {
			s.answers(path + "/" + list[i] + "/story")
		}
		if collection != "depots" && collection != "warehouses" {
			s.answers(path + "/" + list[0])
		}
	}
	for _, path := range []string{"/api/v1/optimizer/snapshot?depot=DEPOT-1", "/api/v1/snapshot?at=" + url.QueryEscape(time.Now().UTC().Format(time.RFC3339Nano)), "/api/v1/orders/O1/story", "/api/v1/drones/D1/story"} {
		s.answers(path)
	}
	for _, id := range []string{"packageWeightKg-3", "planningDepotId-0"} {
		s.answers("/api/v1/orders/" + id + "/explanation")
	}
	p := s.watch("/api/v1/stream", "")
	p.has("drone/D1", `"id":"D1"`)
	p.has("order/O2", `"id":"O2"`)
	p.close()
}

// F-LIVE-01: a delivered order is shown as delivered, even if another one that was closed at the
// same moment is malformed.
func TestStream_ShowsWhatEndedBesideAMalformedDocument(t *testing.T) {
	beside(t)
	s := serve(t)
	s.fleet()
	p := s.watch("/api/v1/stream", "")
	p.has("order/O2", `"status":"PENDING"`)
	orders := s.clients.Firestore.Collection("orders")
	//lint:ignore SA1019 both leave at one moment
	batch := s.clients.Firestore.Batch()
	batch.Update(orders.Doc("O2"), []firestore.Update{{Path: "status", Value: "DELIVERED"}, {Path: "deliveredAt", Value: time.Now()}})
	batch.Update(orders.Doc("O3"), []firestore.Update{{Path: "status", Value: 7}})
	if _, err := batch.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.has("order/O2", `"status":"DELIVERED"`)
	p.close()
}
