package lilim_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/solver/lilim"
)

// generated is an instance in the published form: pairs on a square with wide
// windows.
func generated(seed uint64, pairs int) string {
	rng := rand.New(rand.NewPCG(seed, 3))
	var b strings.Builder
	fmt.Fprintf(&b, "%d\t50\t1\n0\t50\t50\t0\t0\t1000\t0\t0\t0\n", pairs)
	for r := range pairs {
		p, d := 2*r+1, 2*r+2
		early := rng.IntN(300)
		fmt.Fprintf(&b, "%d\t%d\t%d\t10\t%d\t%d\t10\t0\t%d\n", p, rng.IntN(100), rng.IntN(100), early, early+200, d)
		fmt.Fprintf(&b, "%d\t%d\t%d\t-10\t%d\t%d\t10\t%d\t0\n", d, rng.IntN(100), rng.IntN(100), early+100, early+500, p)
	}
	return b.String()
}

// The injected clock moves a millisecond per look, so that the run does not depend
// on the machine.
func TestSolve_PassesTheChecker(t *testing.T) {
	for seed := range uint64(6) {
		in, err := lilim.Parse("generated", strings.NewReader(generated(seed, 20+10*int(seed))))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(0, 0)
		fewest, least := math.MaxInt, math.Inf(1)
		improved := func(_ time.Duration, vehicles int, distance float64) {
			if vehicles > fewest || vehicles == fewest && distance >= least {
				t.Errorf("seed %d: %d vehicles, %f is no improvement on %d, %f", seed, vehicles, distance, fewest, least)
			}
			fewest, least = vehicles, distance
		}
		s, err := lilim.Solve(context.Background(), in, lilim.Options{Seed: seed, Workers: 1, TimeLimit: 300 * time.Millisecond, Improved: improved,
			Clock: func() time.Time { now = now.Add(time.Millisecond); return now }})
		if err != nil {
			t.Fatal(err)
		}
		vehicles, distance, err := lilim.Check(in, s.Routes)
		if err != nil || vehicles == 0 || distance == 0 {
			t.Fatalf("seed %d: %d vehicles, %f, %v", seed, vehicles, distance, err)
		}
		if vehicles != fewest || math.Abs(distance-least) > 1e-6 {
			t.Errorf("seed %d: the result is %d vehicles, %f, the last improvement %d, %f", seed, vehicles, distance, fewest, least)
		}
	}
}

func TestCheck_NamesTheBrokenRule(t *testing.T) {
	const text = "2 10 1\n0 0 0 0 0 100 0 0 0\n1 10 0 10 0 50 5 0 2\n2 20 0 -10 0 60 5 1 0\n3 0 10 10 0 50 5 0 4\n4 0 20 -10 0 60 5 3 0\n"
	in, err := lilim.Parse("hand", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	vehicles, distance, err := lilim.Check(in, [][]int{{1, 2}, {3, 4}})
	if err != nil || vehicles != 2 || math.Abs(distance-80) > 1e-9 {
		t.Fatalf("%d vehicles, distance %v, %v", vehicles, distance, err)
	}
	for name, routes := range map[string][][]int{
		"missing":    {{1, 2}},
		"twice":      {{1, 2}, {3, 4}, {1, 2}},
		"precedence": {{2, 1}, {3, 4}},
		"split":      {{1, 4}, {3, 2}},
		"overload":   {{1, 3, 2, 4}},
		"late":       {{1, 2, 3, 4}},
		"no task":    {{1, 2}, {3, 4, 9}},
	} {
		if _, _, err := lilim.Check(in, routes); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestParse_NamesTheLine(t *testing.T) {
	const depot, pair = "0 0 0 0 0 9 0 0 0\n", "1 0 1 5 0 9 0 0 2\n2 0 2 -5 0 9 0 1 0\n"
	for _, text := range []string{
		"", "x", "1 2", "1 10 1\n0 0 0 0 0 9 0 0", "1 10 1\n" + depot + "1 0 0 5 0 9 0 0 7\n",
		"NaN 10 1\n" + depot + pair, "1e300 10 1\n" + depot + pair, "Inf 10 1\n" + depot + pair,
		"1 10 1\n0 NaN 0 0 0 9 0 0 0\n" + pair, "1 10 1\n" + depot + "1 0 1 5 0 9 0 1 1\n",
		"1 10 1\n" + depot + "1 0 1 5 0 9 0 2 2\n2 0 2 -5 0 9 0 1 1\n",
	} {
		if _, err := lilim.Parse("broken", strings.NewReader(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
