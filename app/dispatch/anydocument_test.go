package dispatch_test

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/type/latlng"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// anyDocuments are documents of a small fleet. About one field in n has an odd value, and as many
// are missing.
func anyDocuments(rng *rand.Rand, now time.Time, n int) map[string]map[string]any {
	near := func() *latlng.LatLng {
		return &latlng.LatLng{Latitude: 48.85 + 0.06*rng.Float64(), Longitude: 2.33 + 0.06*rng.Float64()}
	}
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	docs := map[string]map[string]any{
		"depots/DEPOT-2":       {"name": "Second", "position": near(), "chargingSlots": 2},
		"warehouses/WH":        {"name": "North", "position": near(), "authorizedProductTypes": []string{"BLOOD"}, "isColdStorageCapable": true},
		"learned/travel":       {"until": at(-600), "fromPickup": sums(rng), "fromDelivery": sums(rng), "delays": []float64{1, math.NaN()}},
		"learned/demand":       {"until": at(-600), "hours": []any{map[string]any{"hours": 1e300, "critical": math.Inf(1)}}},
		"learned/drone-D1":     {"flight": sums(rng)},
		"drones/" + awkwardID:  nil,
		"orders/" + awkwardID:  nil,
		"warehouses/two\nrows": {"name": "?", "position": near(), "authorizedProductTypes": []string{"BLOOD"}, "isColdStorageCapable": true},
	}
	statuses := []string{"IDLE", "IDLE", "IDLE", "CHARGING"}
	for _, id := range []string{"D1", "D2", "D3", "D4", awkwardID} {
		docs["drones/"+id] = map[string]any{
			"status": statuses[rng.IntN(4)], "reportedStatus": "IDLE", "position": near(), "batteryPercentage": 40 + 60*rng.Float64(), "speedKmh": 0.0,
			"lastUpdate": now, "seenAt": now, "homeDepotId": []string{"DEPOT-1", "DEPOT-2"}[rng.IntN(2)], "consumptionPerKm": 1.5, "consumptionPerKmKg": 0.1,
			"maxFlightTimeMinutes": 60, "payloadCapacityKg": 5.0, "chargeRate": 2.0, "supportsStandby": true, "supportsAmendments": true, "grounded": false, "idleSince": now,
		}
	}
	for i, id := range []string{"SERVED", "NOBODY-STOCKS-IT", "O1", "O2", "O3", awkwardID} {
		docs["orders/"+id] = map[string]any{
			"status": "PENDING", "held": false, "priority": domain.Priorities[rng.IntN(3)].String(), "productType": "BLOOD", "deliveryLocation": near(),
			"packageWeightKg": 2 * rng.Float64(), "requiresColdChain": i == 0, "createdAt": at(-60 * i), "deadline": at(600 * i), "pendingSince": at(-60 * i),
			"planningDepotId": []string{"DEPOT-1", "DEPOT-2", "GONE", ""}[rng.IntN(4)],
		}
	}
	flying := maps.Clone(docs["drones/D1"])
	maps.Copy(flying, map[string]any{"status": "MOVING", "currentMissionId": "M", "missionAcked": true, "namedRevision": 1, "position": near(), "freeAfter": at(-300)})
	docs["drones/FLYING"] = flying
	docs["orders/F"] = maps.Clone(docs["orders/O1"])
	maps.Copy(docs["orders/F"], map[string]any{"status": "ASSIGNED", "assignedDroneId": "FLYING", "assignedMissionId": "M"})
	stop := func(kind, order string, where any, eta int) map[string]any {
		s := map[string]any{"type": kind, "position": where, "relatedOrderId": order, "eta": at(eta)}
		if rng.IntN(n) == 0 {
			field := []string{"type", "position", "relatedOrderId", "eta"}[rng.IntN(4)]
			s[field] = awkward(rng, s[field])
		}
		return s
	}
	docs["missions/M"] = map[string]any{
		"droneId": "FLYING", "orderIds": []string{"F"}, "status": "ACTIVE", "startTime": at(-100), "routeRevision": 1, "reachedStops": rng.IntN(2),
		"route": []any{
			stop("DEPOT_START", "", near(), -100), stop("WAREHOUSE_PICKUP", "F", docs["warehouses/WH"]["position"], 60),
			stop("HOSPITAL_DELIVERY", "F", docs["orders/F"]["deliveryLocation"], 200), stop("DEPOT_RETURN", "", near(), 300),
		},
	}
	for _, path := range slices.Sorted(maps.Keys(docs)) {
		for _, field := range slices.Sorted(maps.Keys(docs[path])) {
			switch rng.IntN(n) {
			case 0:
				docs[path][field] = awkward(rng, docs[path][field])
			case 1:
				delete(docs[path], field)
			}
		}
	}
	return docs
}

// awkward is a value of the same type that nobody can mean or, now and then, of another.
func awkward(rng *rand.Rand, value any) any {
	values := []any{nil, true, "", 1.5, []any{}, map[string]any{}}
	if rng.IntN(5) > 0 {
		switch value.(type) {
		case float64:
			values = []any{math.NaN(), math.Inf(1), math.Inf(-1), -1.0, 0.0, 5e-324, 1e17, math.MaxFloat64}
		case int:
			values = []any{0, -1, math.MaxInt64, math.MinInt64}
		case time.Time:
			values = []any{time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, 0), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
		case string:
			values = []any{"", "two\nlines", strings.Repeat("x", 1000)}
		case *latlng.LatLng:
			values = []any{&latlng.LatLng{}, &latlng.LatLng{Latitude: 90}, &latlng.LatLng{Latitude: -90, Longitude: 180}, &latlng.LatLng{Latitude: 48.85, Longitude: -177.65}}
		}
	}
	return values[rng.IntN(len(values))]
}

// awkwardID is that of a document, and no message can carry it.
const awkwardID = "two\nlines"

func sums(rng *rand.Rand) map[string]any {
	values := []float64{math.NaN(), math.Inf(1), 1e38, 5e-324, 100, 300}
	value := func() float64 { return values[rng.IntN(len(values))] }
	return map[string]any{"legs": value(), "km": value(), "seconds": value(), "kmKm": value(), "kmSeconds": value()}
}

// F-OPT-03, F-OPT-04: whatever documents say, a cycle ends, its record can be read, and the wire
// accepts its decisions.
func TestRunner_NoDocumentStopsACycle(t *testing.T) {
	b := newBench(t)
	runner := b.configured(t, b.store, dispatch.Config{Iterations: 20, Limits: policy.Limits{MaxSilence: patient}, AreaRadius: 13})
	memory, seeds, ended := runner.NewMemory(), longtest.Size(t, "seeds", 4, 12), 0
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		batch := b.clients.Firestore.BulkWriter(context.Background())
		for path, fields := range anyDocuments(rng, time.Now(), []int{8, 30, 100}[seed%3]) {
			if _, err := batch.Set(b.clients.Firestore.Doc(path), fields); err != nil {
				t.Fatal(err)
			}
		}
		batch.End()
		b.published = nil
		cycle, err := runner.Once(t.Context(), depot.ID, memory)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if _, err := b.store.Cycle(t.Context(), cycle.ID); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		for _, d := range b.published {
			data, attrs, err := wire.EncodeDecision(d, wire.Protobuf)
			if err == nil {
				_, err = wire.DecodeDecision(data, attrs)
			}
			if err != nil {
				t.Errorf("seed %d: %v of %+v", seed, err, d)
			}
			ended++
		}
	}
	if ended == 0 {
		t.Error("no cycle has published anything")
	}
}
