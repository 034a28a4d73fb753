package pdp

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Where more anchors share a place than are linked, each is near others all the
// same; otherwise no step would ruin around it.
func TestLinkAnchors_LinksAllAnchorsOfOnePlace(t *testing.T) {
	const anchors, places, k = 200, 2, 30
	in := NewInstance(places, 0, anchors, 1)
	list := make([]int32, anchors)
	for i := range list {
		list[i] = Delivery(int32(i))
	}
	in.LinkAnchors(list, k, func(a, b int32) float64 { return float64((a/Slots + b/Slots) % places) })
	near := map[int32]int{}
	for _, a := range list {
		seen := map[int32]bool{}
		for i, b := range in.Near[a] {
			if (b == a) != (i == 0) || seen[b] || (a/Slots+b/Slots)%places != 0 {
				t.Fatalf("anchor %d is near %v", a, in.Near[a])
			}
			seen[b] = true
			near[b]++
		}
	}
	for _, a := range list {
		if near[a] != k+1 {
			t.Errorf("anchor %d is near %d anchors, want %d", a, near[a], k+1)
		}
	}
}

func TestNearestFirst_SortsTheFront(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		links := make([]link, rng.IntN(200))
		for i := range links {
			links[i] = link{offset: int32(i), distance: float64(rng.IntN(1 + rng.IntN(100)))}
		}
		sorted := slices.Clone(links)
		slices.SortFunc(sorted, func(x, y link) int {
			if x.before(y) {
				return -1
			}
			return 1
		})
		n := rng.IntN(len(links) + 1)
		nearestFirst(links, n)
		if !slices.Equal(links[:n], sorted[:n]) {
			t.Fatalf("the nearest %d of %d: got %v, want %v", n, len(links), links[:n], sorted[:n])
		}
	}
}
