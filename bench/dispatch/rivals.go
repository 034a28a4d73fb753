package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dronefleet/dronefleet/internal/cli"
)

// problem names a generated instance.
type problem struct {
	Instance uint64 `json:"instance"`
	Drones   int    `json:"drones"`
	Orders   int    `json:"orders"`
}

// rival is another solver, or another version of this one, known by its results.
type rival struct {
	name   string
	scalar map[problem]float64

	met, behind    int       // runs on its instances; those that ended worse than it
	better, passed []float64 // percent below it in the end; when first below it, in ms
}

// readRivals reads the rows of each file and keeps the best of each instance.
func readRivals(paths []string) ([]*rival, error) {
	var out []*rival
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("--rivals: %w", err)
		}
		r := &rival{name: filepath.Base(path), scalar: map[problem]float64{}}
		for rows := json.NewDecoder(bytes.NewReader(text)); rows.More(); {
			var row struct {
				problem
				Scalar float64 `json:"referenceScalar"`
			}
			if err := rows.Decode(&row); err != nil {
				return nil, fmt.Errorf("--rivals: %s: %w", path, err)
			}
			if row.Scalar <= 0 {
				return nil, fmt.Errorf("--rivals: %s: instance %d has no referenceScalar", path, row.Instance)
			}
			if best, ok := r.scalar[row.problem]; !ok || row.Scalar < best {
				r.scalar[row.problem] = row.Scalar
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// meet compares a run with the rival's on the same instance, if there is one, and
// describes the outcome.
func (v *rival) meet(r row) string {
	theirs, ok := v.scalar[problem{r.Instance, r.Drones, r.Orders}]
	if !ok {
		return ""
	}
	v.met++
	better := 100 * (1 - r.Scalar/theirs)
	v.better = append(v.better, better)
	if r.Scalar > theirs {
		v.behind++
	}
	// The search reports only now and then: it passes the rival at that time or
	// before.
	for _, p := range r.reports {
		if p.Objective.ReferenceScalar() < theirs {
			v.passed = append(v.passed, ms(p.Elapsed))
			return fmt.Sprintf(" passes %s by %.0f ms, %.1f %% better in the end", v.name, ms(p.Elapsed), better)
		}
	}
	if r.Scalar < theirs {
		v.passed = append(v.passed, r.ElapsedMs)
	}
	return fmt.Sprintf(" %s: %.1f %% better in the end", v.name, better)
}

func (v *rival) print() {
	fmt.Fprintf(cli.Stdout, "against %s: %d runs, worse in %d, better by median %.1f %%, least %.1f %%, passed in %d by p50 %.0f max %.0f ms\n",
		v.name, v.met, v.behind, quantile(v.better, 0.5), quantile(v.better, 0), len(v.passed), quantile(v.passed, 0.5), quantile(v.passed, 1))
}
