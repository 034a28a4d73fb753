package fleetsim

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dronefleet/dronefleet/domain"
)

// F-API-02
func TestNewWorld_IsTheReferenceFleet(t *testing.T) {
	w := newWorld(t, 40)
	if len(w.Drones) != 40 || len(w.Hospitals) < 20 {
		t.Errorf("%d drones and %d hospitals, want 40 and at least 20", len(w.Drones), len(w.Hospitals))
	}
	if d := w.Depots[0]; d.ID != "DEPOT-PARIS-01" || d.Name != "Paris Main Hub" || d.Position != (domain.Position{Lat: 48.8566, Lon: 2.3522}) {
		t.Errorf("depot is %+v", d)
	}
	north, south := w.Warehouses[0], w.Warehouses[1]
	if north.ID != "WH-NORTH" || !north.ColdStorage || strings.Join(north.ProductTypes, " ") != "BLOOD MEDICINE VACCINE" {
		t.Errorf("first warehouse is %+v", north)
	}
	if south.ID != "WH-SOUTH" || south.ColdStorage || strings.Join(south.ProductTypes, " ") != "MEDICINE MEDICAL_DEVICE" {
		t.Errorf("second warehouse is %+v", south)
	}
	ids := map[string]bool{}
	for _, h := range w.Hospitals {
		if err := domain.CheckID(h.ID); err != nil || ids[h.ID] {
			t.Errorf("hospital id %q: repeated %v, %v", h.ID, ids[h.ID], err)
		}
		ids[h.ID] = true
		if km := h.Position.DistanceMetres(parisDepot.Position) / 1000; km > 15 {
			t.Errorf("%s is %.1f km from the depot", h.Name, km)
		}
	}
	for _, d := range w.Drones {
		if d.Battery < 80 || d.Battery > 100 || d.HomeDepotID != "DEPOT-PARIS-01" || d.Status != domain.DroneUnknown {
			t.Errorf("drone is %+v", d)
		}
	}
}

func TestNewWorld_IsRepeatedByItsSeed(t *testing.T) {
	a, b := newWorld(t, 100), newWorld(t, 100)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("one seed made two worlds:\n%s", diff)
	}
	other, err := NewWorld(WorldConfig{Drones: 100, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	if cmp.Equal(a.Drones, other.Drones) {
		t.Error("two seeds made one world")
	}
}

func TestNewWorld_RefusesImpossibleSizes(t *testing.T) {
	for _, n := range []int{-1, 100_001} {
		if _, err := NewWorld(WorldConfig{Drones: n}); err == nil || !strings.Contains(err.Error(), "give 0 to 100000") {
			t.Errorf("%d drones: %v", n, err)
		}
	}
}

// F-CHG-02: where payload counts, it does so for every second drone, and for nothing else.
func TestNewWorld_HasPayloadCountForEverySecondDrone(t *testing.T) {
	plain, err := NewWorld(WorldConfig{Drones: 5, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWorld(WorldConfig{Drones: 5, Seed: 3, Payload: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.Drones {
		want := plain.Drones[i]
		want.ConsumptionPerKmKg = []float64{0, ConsumptionPerKmKg}[i%2]
		if !reflect.DeepEqual(w.Drones[i], want) {
			t.Errorf("drone %d is %+v, want %+v", i, w.Drones[i], want)
		}
	}
}
