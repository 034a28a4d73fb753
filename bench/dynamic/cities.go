package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/plannersim"
)

// city is a place of judged runs.
type city struct {
	name  string
	world func(drones int, seed uint64) (*fleetsim.World, error)
	// areaRadius groups depots, in km.
	areaRadius float64
}

// runSet is a set of cities and seeds. Planning rules are tuned on one set and judged on
// the other. Paris, which the tests use, is in both; its seeds are not.
type runSet struct {
	cities    []city
	firstSeed uint64
}

var runSets = map[string]runSet{
	"tuning": {[]city{
		{"paris", nil, 0},
		{"generated", plannersim.City, 0},
		{"lyon", lyon.world, 0},
		{"accra", accra.world, 0},
	}, 1},
	"judging": {[]city{
		{"paris", nil, 0},
		{"two-depots", layout{depots: 2, apart: 6}.world, 10},
		{"berlin", berlin.world, 0},
		{"nairobi", nairobi.world, 0},
		{"quito", quito.world, 0},
	}, 1_000_001},
}

// choose lists the named cities of the set, or all.
func (s runSet) choose(names []string) ([]city, error) {
	if len(names) == 0 {
		return s.cities, nil
	}
	var list []city
	for _, name := range names {
		i := slices.IndexFunc(s.cities, func(c city) bool { return c.name == name })
		if i < 0 {
			var known []string
			for _, c := range s.cities {
				known = append(known, c.name)
			}
			return nil, fmt.Errorf("has %q; the cities of this set are %s", name, strings.Join(known, ", "))
		}
		list = append(list, s.cities[i])
	}
	return list, nil
}

// places is a city on a coarse map: to a hundredth of a degree, about a kilometre.
type cityMap struct {
	id        string
	depot     domain.Position
	cold      domain.Position // warehouse of what must be kept cold, and of medicine
	dry       domain.Position // warehouse of devices and medicine
	hospitals []domain.Position
}

// world puts a reference fleet at the city's depot.
func (p cityMap) world(drones int, seed uint64) (*fleetsim.World, error) {
	w, err := fleetsim.NewWorld(fleetsim.WorldConfig{Drones: drones, Seed: seed})
	if err != nil {
		return nil, err
	}
	depot := domain.DepotID("DEPOT-" + p.id)
	w.Depots = []domain.Depot{{ID: depot, Name: p.id, Position: p.depot}}
	w.Warehouses = []domain.Warehouse{
		{ID: "WH-COLD", Position: p.cold, ProductTypes: []string{"BLOOD", "MEDICINE", "VACCINE"}, ColdStorage: true},
		{ID: "WH-DRY", Position: p.dry, ProductTypes: []string{"MEDICINE", "MEDICAL_DEVICE"}},
	}
	w.Hospitals = nil
	for i, at := range p.hospitals {
		w.Hospitals = append(w.Hospitals, fleetsim.Hospital{ID: fmt.Sprintf("HOSP-%s-%02d", p.id, i+1), Position: at})
	}
	for i := range w.Drones {
		w.Drones[i].HomeDepotID, w.Drones[i].Position = depot, p.depot
	}
	return w, nil
}

// at is a position.
func at(lat, lon float64) domain.Position { return domain.Position{Lat: lat, Lon: lon} }

var (
	lyon = cityMap{
		"LYON", at(45.75, 4.85), at(45.78, 4.88), at(45.72, 4.86),
		[]domain.Position{
			at(45.74, 4.88), at(45.78, 4.83), at(45.70, 4.80), at(45.74, 4.90), at(45.75, 4.84), at(45.77, 4.92),
			at(45.77, 4.87), at(45.73, 4.88), at(45.79, 4.77), at(45.76, 4.81), at(45.70, 4.87),
		},
	}
	accra = cityMap{
		"ACCRA", at(5.57, -0.20), at(5.60, -0.23), at(5.55, -0.17),
		[]domain.Position{
			at(5.54, -0.23), at(5.59, -0.18), at(5.56, -0.20), at(5.56, -0.18), at(5.56, -0.16), at(5.55, -0.21),
			at(5.62, -0.22), at(5.65, -0.18), at(5.60, -0.11), at(5.54, -0.25), at(5.57, -0.23), at(5.61, -0.18),
		},
	}
	berlin = cityMap{
		"BERLIN", at(52.51, 13.39), at(52.55, 13.36), at(52.47, 13.40),
		[]domain.Position{
			at(52.53, 13.38), at(52.54, 13.34), at(52.53, 13.44), at(52.49, 13.41), at(52.44, 13.46), at(52.47, 13.37),
			at(52.52, 13.26), at(52.49, 13.28), at(52.44, 13.32), at(52.53, 13.40), at(52.52, 13.50), at(52.47, 13.34),
		},
	}
	nairobi = cityMap{
		"NAIROBI", at(-1.29, 36.82), at(-1.26, 36.80), at(-1.32, 36.85),
		[]domain.Position{
			at(-1.30, 36.81), at(-1.30, 36.80), at(-1.26, 36.82), at(-1.26, 36.81), at(-1.31, 36.83), at(-1.31, 36.80),
			at(-1.28, 36.85), at(-1.27, 36.90), at(-1.26, 36.83), at(-1.33, 36.72), at(-1.29, 36.88), at(-1.24, 36.88),
		},
	}
	quito = cityMap{
		"QUITO", at(-0.20, -78.49), at(-0.15, -78.48), at(-0.24, -78.52),
		[]domain.Position{
			at(-0.21, -78.50), at(-0.20, -78.50), at(-0.20, -78.49), at(-0.18, -78.50), at(-0.18, -78.49), at(-0.12, -78.49),
			at(-0.26, -78.54), at(-0.21, -78.51), at(-0.10, -78.48), at(-0.20, -78.43), at(-0.23, -78.52),
		},
	}
)
