package main

import (
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

// F-LRN-01: the command prints what was learned and the estimates that plans use, and forgets
// it when told to.
func TestLearned_ShowsAndForgets(t *testing.T) {
	connection, client, store := connected(t)
	show := &learnedShow{Connection: connection, confidenceFlag: confidenceFlag{0.8}}
	run := func() string { return printed(t, func() error { return show.Run(t.Context()) }) }
	expect := func(text string, words ...string) {
		t.Helper()
		for _, want := range words {
			if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
				t.Errorf("prints\n%s\nand not %q", text, want)
			}
		}
	}
	expect(run(), "missions counted 0, up to never", "speed 50.0 km/h (assumed: 50.0)")

	now := time.Now().Truncate(time.Microsecond)
	legs := domain.LegSums{Weight: 1000, Km: 3000, Seconds: 3000 * 90, KmKm: 10000, KmSeconds: 10000 * 90} // 40 km/h
	l := domain.Learned{
		Travel: domain.Travel{Until: now, FromPickup: legs, Missions: 500, Legs: 1000, Refused: 7},
		Drones: map[domain.DroneID]domain.DroneTravel{"D1": {Flight: legs}},
		Demand: domain.Demand{
			Until: now, Hours: make([]domain.HourDemand, 24), Seen: 12,
			Points: []domain.PointDemand{{Position: domain.Position{Lat: 48.85, Lon: 2.35}, Orders: [3]float64{3, 2, 1}}},
		},
	}
	l.Demand.Hours[9] = domain.HourDemand{Hours: 2, Orders: [3]float64{6, 4, 2}}
	if saved, err := store.SaveLearned(t.Context(), domain.LearningScope{Area: "DEPOT"}, domain.Learned{}, l); err != nil || !saved {
		t.Fatal(saved, err)
	}
	expect(run(), "missions counted 500", "1000, and 7 left out", "D1 1000 40.", "09 1.0 2.0 3.0 2.0", "48.8500, 2.3500 1.0 2.0 3.0", "orders counted 12")

	if err := (&learnedReset{connection}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(run(), "missions counted 0, up to 20", "orders counted 0")

	if _, err := client.Collection(firestoretx.Learned).Doc("travel").Set(t.Context(), map[string]any{"legs": "many"}); err != nil {
		t.Fatal(err)
	}
	if err := show.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "legs") || !strings.Contains(err.Error(), "optimizer learned reset") {
		t.Errorf("a damaged document: %v", err)
	}
}
