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

func inGroup(name string, d domain.Depot) domain.Depot {
	d.Group = name
	return d
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
		"groups are apart":               {[]domain.Depot{inGroup("x", inRow("A", 0)), inRow("B", 1), inGroup("x", inRow("C", 2)), inRow("D", 3)}, 3, "[A[A C] B[B D]]"},
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
func TestChainsOf_FindsNearDepotsEverywhere(t *testing.T) {
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
			if got, want := areaNames(ChainsOf(depots, radius)), areaNames(compared(depots, radius)); got != want {
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

// F-ARE-01: every depot is in exactly one chain, whatever the order of the depots, and no
// two chains are within the radius.
func TestChainsOf_PartitionsTheDepots(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		depots := make([]domain.Depot, random.IntN(12))
		for i := range depots {
			depots[i] = inRow(domain.DepotID(fmt.Sprint("D", i)), 30*random.Float64())
		}
		areas := ChainsOf(depots, 3)
		want := areaNames(areas)
		random.Shuffle(len(depots), func(i, j int) { depots[i], depots[j] = depots[j], depots[i] })
		if got := areaNames(ChainsOf(depots, 3)); got != want {
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

// F-OWN-04: a chain is cut at its widest gaps, so that no part exceeds a cap.
func TestAreasOf_CutsChainsWhereTheyAreThinnest(t *testing.T) {
	with := func(drones int, d domain.Depot) domain.Depot { d.Drones = drones; return d }
	row := func(gap func(i int) float64, drones int) (depots []domain.Depot) {
		km := 0.0
		for i := range 10 {
			depots = append(depots, with(drones, inRow(domain.DepotID(rune('A'+i)), km)))
			km += gap(i)
		}
		return depots
	}
	wideAfter := func(letters ...rune) func(int) float64 {
		return func(i int) float64 {
			if slices.Contains(letters, rune('A'+i)) {
				return 2
			}
			return 1
		}
	}
	for name, c := range map[string]struct {
		depots []domain.Depot
		want   string
	}{
		"eight depots are one area":            {row(wideAfter(), 0)[:8], "[A[A B C D E F G H]]"},
		"ten are cut at the gap":               {row(wideAfter('D'), 0), "[A[A B C D] E[E F G H I J]]"},
		"a second gap needs no cut":            {row(wideAfter('A', 'E'), 0), "[A[A B C D E] F[F G H I J]]"},
		"a thousand drones are one area":       {row(wideAfter('D'), 125)[:8], "[A[A B C D E F G H]]"},
		"more are cut at the gap":              {row(wideAfter('C'), 126)[:8], "[A[A B C] D[D E F G H]]"},
		"more than one gap where one is short": {row(wideAfter('C'), 300)[:6], "[A[A B C] D[D E F]]"},
		"a large depot is alone":               {[]domain.Depot{with(1200, inRow("A", 0)), inRow("B", 1), inRow("C", 2)}, "[A[A] B[B C]]"},
		"one large depot":                      {[]domain.Depot{with(1200, inRow("A", 0))}, "[A[A]]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := areaNames(AreasOf(c.depots, 3)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// F-OWN-04: whatever the depots, their order and their numbers of drones, areas keep to the caps and
// never reach beyond a chain. A chain within the caps stays whole, and no two areas could be one.
func TestAreasOf_KeepsToTheCaps(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	const radius = 13
	for range 100 {
		depots := make([]domain.Depot, 1+random.IntN(80))
		for i := range depots {
			depots[i] = domain.Depot{ID: domain.DepotID(fmt.Sprintf("D%03d", i)), Drones: random.IntN(400), Position: domain.Position{Lat: 48 + random.Float64()/2, Lon: 2 + random.Float64()}}
		}
		areas, chains := AreasOf(depots, radius), ChainsOf(depots, radius)
		want := areaNames(areas)
		random.Shuffle(len(depots), func(i, j int) { depots[i], depots[j] = depots[j], depots[i] })
		if got := areaNames(AreasOf(depots, radius)); got != want {
			t.Fatalf("the order matters: %s and %s", got, want)
		}
		n := 0
		for i, a := range areas {
			n += len(a.Depots)
			chain, _ := AreaOf(chains, a.ID())
			if !fitsOneCycle(a.Depots...) || i > 0 && a.ID() <= areas[i-1].ID() {
				t.Fatalf("%s is too large or out of order", a.ID())
			}
			for _, d := range a.Depots {
				if !chain.Has(d.ID) {
					t.Fatalf("%s is not linked with %s", d.ID, a.ID())
				}
			}
			if fitsOneCycle(chain.Depots...) && len(chain.Depots) != len(a.Depots) {
				t.Fatalf("the chain of %s is cut though it fits", a.ID())
			}
			for _, b := range areas[:i] {
				near := slices.ContainsFunc(linksOf(slices.Concat(a.Depots, b.Depots), radius), func(l link) bool { return l.a < len(a.Depots) && l.b >= len(a.Depots) })
				if near && fitsOneCycle(slices.Concat(a.Depots, b.Depots)...) {
					t.Fatalf("%s and %s are near and fit one cycle", a.ID(), b.ID())
				}
			}
		}
		if n != len(depots) {
			t.Fatalf("%d of %d depots are in areas", n, len(depots))
		}
	}
}

// F-OWN-04: a number of drones that swings moves no border.
func TestCountedDrones_IgnoresSmallChanges(t *testing.T) {
	for _, c := range []struct{ stored, counted, want int }{
		{0, 0, 0}, {0, 25, 0}, {0, 26, 26}, {26, 1, 26}, {26, 0, 0}, {1000, 1100, 1000}, {1000, 900, 1000}, {1000, 1101, 1101}, {1000, 899, 899},
	} {
		if got := CountedDrones(c.stored, c.counted); got != c.want {
			t.Errorf("stored %d, counted %d: %d, want %d", c.stored, c.counted, got, c.want)
		}
	}
}
