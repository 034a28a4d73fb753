package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/type/latlng"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
)

// past stores missions of D1 that took twice the time that is assumed, and ended some
// minutes ago.
func (b *bench) past(t *testing.T, missions int) {
	t.Helper()
	wh, hospital := domain.Position{Lat: 48.87, Lon: 2.35}, domain.Position{Lat: 48.86, Lon: 2.36}
	batch := b.clients.Firestore.BulkWriter(t.Context())
	for i := range missions {
		start := time.Now().Add(-time.Hour - time.Duration(i)*time.Minute)
		at, sightings := start, []map[string]any{}
		stops := []domain.Position{depot.Position, wh, hospital, wh, hospital}
		for k, p := range stops {
			if k > 0 {
				at = at.Add(time.Duration(stops[k-1].DistanceMetres(p) / 25 * 3.6 * float64(time.Second)))
			}
			sightings = append(sightings, map[string]any{"stop": k, "at": at, "claimed": false})
		}
		var route []map[string]any
		for k, p := range append(stops, depot.Position) {
			kinds := []domain.WaypointType{
				domain.WaypointDepotStart, domain.WaypointWarehousePickup, domain.WaypointHospitalDelivery,
				domain.WaypointWarehousePickup, domain.WaypointHospitalDelivery, domain.WaypointDepotReturn,
			}
			route = append(route, map[string]any{"type": string(kinds[k]), "position": &latlng.LatLng{Latitude: p.Lat, Longitude: p.Lon}})
		}
		ref := b.clients.Firestore.Collection(firestoretx.Missions).NewDoc()
		if _, err := batch.Create(ref, map[string]any{
			"droneId": "D1", "status": string(domain.MissionCompleted), "startTime": start, "endTime": at, "route": route, "sightings": sightings, "reachedStops": 5,
		}); err != nil {
			t.Fatal(err)
		}
	}
	batch.End()
}

// F-LRN-01, F-LRN-02: a cycle learns from missions that ended, stores it, and plans with it;
// the next process begins with what is stored.
func TestRunner_PlansWithWhatItLearned(t *testing.T) {
	b := newBench(t)
	b.past(t, 120)
	for name, cfg := range map[string]dispatch.Config{"learns": {}, "does not": {NoLearning: true}} {
		cfg.Iterations, cfg.LockTTL, cfg.Limits.MaxSilence = steps, 15*time.Second, patient
		b.published = nil
		if _, err := b.configured(t, b.store, cfg).Once(t.Context(), depot.ID, nil); err != nil || len(b.published) != 1 {
			t.Fatal(b.published, err)
		}
		minutes, slow := b.published[0].EstimatedDurationMinutes, name == "learns"
		if (minutes > 7) != slow {
			t.Errorf("%s: the flight is planned to take %.1f min", name, minutes)
		}
	}
	learned, malformed, err := b.store.Learned(t.Context())
	if err != nil || len(malformed) > 0 || learned.Travel.Missions != 120 || learned.Travel.SpeedKmh > 45 || learned.Drones["D1"].SpeedKmh > 45 {
		t.Errorf("stored %+v, %v, %v", learned.Travel, malformed, err)
	}
	if learned.Demand.Until.IsZero() {
		t.Error("no demand is stored")
	}
}

// forgetful is a store whose documents of what was learned cannot be read.
type forgetful struct{ *firestoretx.Store }

func (forgetful) LearnedIn(context.Context, domain.LearningScope) (domain.Learned, []error, error) {
	return domain.Learned{}, []error{errors.New("document learned/travel: damaged")}, status.Error(codes.Unavailable, "away")
}

// F-LRN-02: a cycle that cannot learn plans as if there were no past.
func TestRunner_PlansWithoutWhatItCannotRead(t *testing.T) {
	b := newBench(t)
	cycle, err := b.runner(t, forgetful{b.store}, 15*time.Second).Once(t.Context(), depot.ID, nil)
	if err != nil || len(b.published) != 1 || cycle.Outcome != domain.CyclePublished {
		t.Errorf("%+v, %v", cycle, err)
	}
}
