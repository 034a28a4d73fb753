package pdp_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
	"github.com/dronefleet/dronefleet/solver/internal/pdp/pdptest"
)

func TestInstance_FitsAgreesWithReplay(t *testing.T) {
	fits := 0
	for seed := range uint64(3000) {
		in := pdptest.Random(seed, 6, 2)
		rng := rand.New(rand.NewPCG(seed, 2))
		var visits []int32
		for _, r := range rng.Perm(in.Requests)[:1+rng.IntN(3)] {
			i := rng.IntN(len(visits) + 1)
			j := i + rng.IntN(len(visits)-i+1)
			visits = slices.Concat(visits[:i], []int32{int32(r * pdp.Slots)}, visits[i:j], []int32{pdp.Delivery(int32(r))}, visits[j:])
		}
		want := !math.IsInf(pdptest.Replay(in, 1, visits), 1)
		if got := in.Fits(1, visits); got != want {
			t.Fatalf("seed %d, %v: fits %v, replay %v", seed, visits, got, want)
		}
		if want {
			fits++
		}
	}
	if fits < 100 || fits > 2900 {
		t.Fatalf("%d of 3000 routes fit: the instances are too easy or too hard to compare anything", fits)
	}
}

// Two requests conflict if, and only if, no order of their visits makes a route.
func TestConflicts_ArePairsWithoutARoute(t *testing.T) {
	compatible, conflicting := 0, 0
	for seed := range uint64(20) {
		in := pdptest.Narrow(pdptest.IdenticalFleet(seed, 20, 4), seed)
		conflicts := pdp.NewConflicts(in)
		for a := range int32(in.Requests) {
			for b := range a {
				fits := false
				for pickups := range int32(in.Pickups[a]) * int32(in.Pickups[b]) {
					pa, pb := a*pdp.Slots+pickups%int32(in.Pickups[a]), b*pdp.Slots+pickups/int32(in.Pickups[a])
					da, db := pdp.Delivery(a), pdp.Delivery(b)
					for _, visits := range [][]int32{{pa, da, pb, db}, {pa, pb, da, db}, {pa, pb, db, da}, {pb, pa, da, db}, {pb, pa, db, da}, {pb, db, pa, da}} {
						fits = fits || in.Fits(0, visits)
					}
				}
				if conflicts.With(a).Has(b) == fits || conflicts.With(b).Has(a) == fits {
					t.Fatalf("seed %d: requests %d and %d: a route %v, conflict %v", seed, a, b, fits, conflicts.With(a).Has(b))
				}
				if fits {
					compatible++
				} else {
					conflicting++
				}
			}
		}
	}
	if compatible == 0 || conflicting == 0 {
		t.Errorf("%d pairs fit, %d conflict: nothing was compared", compatible, conflicting)
	}
}

// A pickup is in reach of a vehicle if, and only if, the vehicle could serve the
// request from there alone.
func TestReach_IsWhatAVehicleCanDoAlone(t *testing.T) {
	can, cannot := 0, 0
	for seed := range uint64(20) {
		in := pdptest.Random(seed, 14, 5)
		for i := range in.Vehicles {
			in.Vehicles[i].MaxDistance /= 2
		}
		reach := pdp.NewReach(in)
		for r := range int32(in.Requests) {
			for ro := range in.Vehicles {
				for pickup := range int32(in.Pickups[r]) {
					fits := !math.IsInf(pdptest.Replay(in, ro, []int32{r*pdp.Slots + pickup, pdp.Delivery(r)}), 1)
					if reached := reach.Pickups(r, int32(ro))>>pickup&1 != 0; reached != fits {
						t.Fatalf("seed %d request %d vehicle %d pickup %d: in reach %v, fits %v", seed, r, ro, pickup, reached, fits)
					}
					if fits {
						can++
					} else {
						cannot++
					}
				}
				server := reach.Servers(r).Has(int32(ro))
				if some := reach.Pickups(r, int32(ro)) != 0; server != some {
					t.Fatalf("seed %d request %d vehicle %d: a server %v, has a pickup %v", seed, r, ro, server, some)
				}
			}
		}
	}
	if can < 100 || cannot < 100 {
		t.Fatalf("%d pickups in reach and %d out of it show nothing", can, cannot)
	}
}
