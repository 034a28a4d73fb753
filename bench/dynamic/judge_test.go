package main

import (
	"bytes"
	"encoding/csv"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// Seeds and cities of the two sets must not meet, but for Paris.
func TestRunSets_AreApart(t *testing.T) {
	tuning, judging := runSets["tuning"], runSets["judging"]
	const mostRuns = 100_000 // as --runs allows
	if tuning.firstSeed+mostRuns >= judging.firstSeed {
		t.Errorf("seeds begin at %d and %d", tuning.firstSeed, judging.firstSeed)
	}
	for _, c := range tuning.cities {
		if found, err := judging.choose([]string{c.name}); err == nil && c.name != "paris" {
			t.Errorf("%v is in both sets", found)
		}
	}
	for name, set := range runSets {
		for _, c := range set.cities {
			day := (&command{Simulated: 10 * time.Minute, Drones: 10}).day(cell{city: c, perMinute: 6}, set.firstSeed)
			if w, orders, err := day.Day(); err != nil || len(orders) < 20 || len(w.Hospitals) < 8 {
				t.Errorf("%s, %s: %d orders, %v", name, c.name, len(orders), err)
			}
		}
	}
}

// Differences 1, 2, 3: mean 2, standard deviation 1; Student's t for 2 degrees of freedom
// is 4.303.
func TestCompare_IsPaired(t *testing.T) {
	p := compare([]float64{11, 22, 33}, []float64{10, 20, 30})
	if p.Mean != 2 || math.Abs(p.Half-4.3027/math.Sqrt(3)) > 1e-3 || p.Wins != 3 || p.Losses != 0 || p.Runs != 3 {
		t.Errorf("%+v", p)
	}
	if p := compare([]float64{1}, []float64{1}); p != (paired{Runs: 1}) {
		t.Errorf("one run: %+v", p)
	}
}

// Every rival serves the same orders, and a second judgement, with another number of runs
// at a time, is the same.
func TestJudge_IsFairAndDeterministic(t *testing.T) {
	c := &command{Simulated: 10 * time.Minute, Drones: 12, OrdersPerMinute: 3, Iterations: 20, judgeFlags: judgeFlags{
		Set: "tuning", Judged: "planner", Cities: []string{"lyon"}, BoundSteps: 50, Shock: 8, Failures: 6, FailedFor: time.Hour, Parallel: 2, Pace: 0.9,
	}}
	c.Runs = longtest.Size(t, "runs", 1, 2)
	cells, err := c.cells(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.judgeAll(t.Context(), cells)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range first {
		want := first[i/len(rivals)*len(rivals)].Created // of the planner, with the same seed
		if r.Rival == criticalOnlyName {
			want[1], want[2] = 0, 0
		}
		if r.Created != want {
			t.Errorf("%s, seed %d: %v created, the planner has %v", r.Rival, r.Seed, r.Created, want)
		}
		if r.OnTime[0] > r.Created[0] || r.Delivered == 0 {
			t.Errorf("%+v", r)
		}
	}
	if longtest.Full(t, "a second judgement") {
		c.Parallel = 1
		if again, err := c.judgeAll(t.Context(), cells); err != nil || !cmp.Equal(first, again) {
			t.Errorf("%v, the second judgement differs: %s", err, cmp.Diff(first, again))
		}
	}
	var out bytes.Buffer
	if err := writeRuns(&out, first); err != nil {
		t.Fatal(err)
	}
	if rows, err := csv.NewReader(&out).ReadAll(); err != nil || len(rows) != 1+c.Runs*len(rivals) {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	list := c.comparisons(cells, first)
	if len(list) != len(rivals) || list[0].Ours[0].Mean != 0 || list[0].Ratio != 100 {
		t.Errorf("%+v", list)
	}
}
