package policy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dronefleet/dronefleet/domain"
)

// inRow is a depot on a meridian, at some kilometres north of 48° N.
func inRow(id domain.DepotID, km float64) domain.Depot {
	const kmPerDegree = 111.19
	return domain.Depot{ID: id, Position: domain.Position{Lat: 48 + km/kmPerDegree, Lon: 2}}
}

func areaNames(areas []domain.Area) string {
	var text []string
	for _, a := range areas {
		text = append(text, fmt.Sprint(a.ID(), a.DepotIDs()))
	}
	return fmt.Sprint(text)
}

// F-ARE-01
func TestAreasOf_GroupsDepotsThatAreNear(t *testing.T) {
	for name, c := range map[string]struct {
		depots []domain.Depot
		radius float64
		want   string
	}{
		"no depot":                       {nil, 3, "[]"},
		"one depot":                      {[]domain.Depot{inRow("A", 0)}, 3, "[A[A]]"},
		"near depots are one area":       {[]domain.Depot{inRow("B", 0), inRow("A", 2.9)}, 3, "[A[A B]]"},
		"far depots are two":             {[]domain.Depot{inRow("B", 0), inRow("A", 3.1)}, 3, "[A[A] B[B]]"},
		"a chain links its ends":         {[]domain.Depot{inRow("C", 0), inRow("A", 2), inRow("B", 4), inRow("D", 6)}, 2.1, "[A[A B C D]]"},
		"a gap breaks the chain":         {[]domain.Depot{inRow("C", 0), inRow("A", 2), inRow("B", 5), inRow("D", 7)}, 2.1, "[A[A C] B[B D]]"},
		"radius 0 leaves each alone":     {[]domain.Depot{inRow("A", 0), inRow("B", 0)}, 0, "[A[A] B[B]]"},
		"depots in one place":            {[]domain.Depot{inRow("A", 0), inRow("B", 0)}, 0.001, "[A[A B]]"},
		"a negative radius counts as 0":  {[]domain.Depot{inRow("A", 0), inRow("B", 0)}, -1, "[A[A] B[B]]"},
		"the far one between two others": {[]domain.Depot{inRow("A", 0), inRow("B", 50), inRow("C", 1)}, 3, "[A[A C] B[B]]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := areaNames(AreasOf(c.depots, c.radius)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// F-ARE-01: depots near each other are found everywhere on earth, at its poles and across the
// antimeridian, for every radius: as if each were compared with each.
func TestAreasOf_FindsNearDepotsEverywhere(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for name, middle := range map[string]domain.Position{
		"equator": {}, "Paris": {Lat: 48.86, Lon: 2.35}, "antimeridian": {Lat: -17, Lon: 180}, "north pole": {Lat: 89.9}, "south pole": {Lat: -89.99, Lon: -90},
	} {
		for _, radius := range []float64{0.001, 0.5, 3, 13, 100} {
			depots := make([]domain.Depot, 150)
			for i := range depots {
				spread := radius / 10 * random.Float64() // degrees
				lat := middle.Lat + spread*(2*random.Float64()-1)
				lon := math.Remainder(middle.Lon+spread/math.Cos(lat*math.Pi/180)*(2*random.Float64()-1), 360)
				depots[i] = domain.Depot{ID: domain.DepotID(fmt.Sprintf("D%03d", i)), Position: domain.Position{Lat: max(-90, min(lat, 90)), Lon: lon}}
			}
			if got, want := areaNames(AreasOf(depots, radius)), areaNames(compared(depots, radius)); got != want {
				t.Errorf("%s, %g km: %s, want %s", name, radius, got, want)
			}
		}
	}
}

// compared groups depots, which are ordered by id, by comparing each with each.
func compared(depots []domain.Depot, radiusKm float64) (areas []domain.Area) {
	area := make([]int, len(depots)) // the lowest number that is linked
	for i := range area {
		area[i] = i
	}
	for changed := true; changed; {
		changed = false
		for i, a := range depots {
			for k, b := range depots {
				if area[k] < area[i] && a.Position.DistanceMetres(b.Position) <= radiusKm*1000 {
					area[i], changed = area[k], true
				}
			}
		}
	}
	for i := range depots {
		var a domain.Area
		for k, d := range depots {
			if area[k] == i {
				a.Depots = append(a.Depots, d)
			}
		}
		if len(a.Depots) > 0 {
			areas = append(areas, a)
		}
	}
	return areas
}

// F-ARE-01: every depot is in exactly one area, whatever the order of the depots, and no
// two areas are within the radius.
func TestAreasOf_PartitionsTheDepots(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		depots := make([]domain.Depot, random.IntN(12))
		for i := range depots {
			depots[i] = inRow(domain.DepotID(fmt.Sprint("D", i)), 30*random.Float64())
		}
		areas := AreasOf(depots, 3)
		want := areaNames(areas)
		random.Shuffle(len(depots), func(i, j int) { depots[i], depots[j] = depots[j], depots[i] })
		if got := areaNames(AreasOf(depots, 3)); got != want {
			t.Fatalf("the order matters: %s and %s", got, want)
		}
		for _, d := range depots {
			has := slices.DeleteFunc(slices.Clone(areas), func(a domain.Area) bool { return !a.Has(d.ID) })
			if of, ok := AreaOf(areas, d.ID); len(has) != 1 || !ok || of.ID() != has[0].ID() {
				t.Fatalf("depot %s is in %s", d.ID, areaNames(has))
			}
			for _, a := range areas {
				for _, other := range a.Depots {
					if !a.Has(d.ID) && d.Position.DistanceMetres(other.Position) <= 3000 {
						t.Fatalf("%s and %s are near and in different areas", d.ID, other.ID)
					}
				}
			}
		}
	}
}
