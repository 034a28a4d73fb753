package policy

import (
	"fmt"
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
