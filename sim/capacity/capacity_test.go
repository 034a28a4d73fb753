package capacity_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/sim/capacity"
	"github.com/dronefleet/dronefleet/testkit/docgen"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

var update = flag.Bool("update", false, "fly the samples anew, and write counts.json and the tables of docs/capacity.md")

// trials are the samples: few drones with many orders, in fleets of different shapes.
var trials = []capacity.Trial{
	{Areas: 1, Drones: 40, Duration: 20 * time.Minute, OrdersPerDroneDay: 150, Batch: 2, Iterations: 50, Seed: 1},
	{Areas: 1, Drones: 80, Duration: 15 * time.Minute, OrdersPerDroneDay: 30, Batch: 20, Iterations: 50, Seed: 2},
	{Areas: 3, Drones: 60, Duration: 15 * time.Minute, OrdersPerDroneDay: 60, Batch: 10, Iterations: 50, Seed: 3},
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(m.Run())
}

func fly(t *testing.T, trial capacity.Trial) capacity.Sample {
	t.Helper()
	s, err := capacity.Run(t.Context(), trial)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stored is the model of counts.json as it is now: the program's may be older.
func stored(t *testing.T) capacity.Model {
	t.Helper()
	var samples []capacity.Sample
	text, err := os.ReadFile("counts.json")
	if err == nil {
		err = json.Unmarshal(text, &samples)
	}
	if err != nil {
		t.Fatal(err)
	}
	return capacity.Fit(samples)
}

// What the model says of a larger fleet is what that fleet counts on the embedded Firestore.
// F-CAP-01
func TestModel_AgreesWithFleets(t *testing.T) {
	if *update {
		var samples []capacity.Sample
		for _, trial := range trials {
			samples = append(samples, fly(t, trial))
		}
		text, err := json.Marshal(samples)
		if err == nil {
			text = bytes.ReplaceAll(text, []byte(`},"`), []byte("},\n\"")) // a count in a line
			err = os.WriteFile("counts.json", append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	model := stored(t)
	for _, trial := range longtest.Size(t, "fleets", fleets[:1], fleets) {
		sample := fly(t, trial)
		t.Logf("%d drones: a document takes %.0f µs to read, the embedded server's part included", trial.Drones, 1e6*sample.PerRead)
		counted, said := capacity.Total(sample.Counts), capacity.Total(model.Of(sample.Work))
		for what, of := range map[string]func(capacity.Count) float64{
			"reads":  func(c capacity.Count) float64 { return c.Reads },
			"writes": func(c capacity.Count) float64 { return c.Writes },
			"bytes":  func(c capacity.Count) float64 { return c.Sent + c.Received },
		} {
			if off := of(said)/of(counted) - 1; math.Abs(off) > 0.1 {
				t.Errorf("%d drones: the fleet counts %.0f %s, the model says %.0f, %+.0f %%", trial.Drones, of(counted), what, of(said), 100*off)
				for kind, c := range sample.Counts {
					if apart := of(model.Of(sample.Work)[kind]) - of(c); math.Abs(apart) > 0.01*of(counted) {
						t.Logf("%v: counted %.0f, %+.0f by the model", kind, of(c), apart)
					}
				}
			} else {
				t.Logf("%d drones: the fleet counts %.0f %s, the model says %+.1f %%", trial.Drones, of(counted), what, 100*off)
			}
		}
	}
}

var fleets = []capacity.Trial{
	{Areas: 1, Drones: 1000, Duration: 12 * time.Second, OrdersPerDroneDay: 200, Batch: 13, Iterations: 20, Seed: 11},
	{Areas: 10, Drones: 10_000, Duration: 10 * time.Second, OrdersPerDroneDay: 200, Batch: 125, Iterations: 20, Seed: 12},
}

// TestDocument fails when the tables of docs/capacity.md are not those of the model.
func TestDocument(t *testing.T) {
	model := stored(t)
	if err := docgen.Hold("../../docs/capacity.md", model.Tables(capacity.Today), *update, "go test ./sim/capacity -update"); err != nil {
		t.Error(err)
	}
}
