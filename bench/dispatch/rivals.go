package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/check"
	"github.com/dronefleet/dronefleet/solver/model"
)

// problem names a generated instance.
type problem struct {
	Instance uint64 `json:"instance"`
	Drones   int    `json:"drones"`
	Orders   int    `json:"orders"`
	// Geography is empty where it is drawn from the seed.
	Geography string `json:"geography,omitempty"`
}

// rival is another solver, or another version of this one, known by its results.
type rival struct {
	name   string
	scalar map[problem]float64
	routes map[problem][]flownRoute

	met, behind    int       // runs on its instances; those that ended worse than it
	better, passed []float64 // percent below it in the end; when first below it, in ms

	// Of runs against routes: what both miss in time by priority, the most urgent first,
	// and, where that is equal, percent of its distance saved.
	missed, ours [model.PriorityCount]int
	saved        []float64
	violations   int // plans that break a rule
}

// readRivals reads the rows of each file and keeps the best of each instance.
func readRivals(paths []string) ([]*rival, error) {
	var out []*rival
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("--rivals: %w", err)
		}
		r := &rival{name: filepath.Base(path), scalar: map[problem]float64{}, routes: map[problem][]flownRoute{}}
		for rows := json.NewDecoder(bytes.NewReader(text)); rows.More(); {
			var row struct {
				problem
				Scalar float64      `json:"referenceScalar"`
				Routes []flownRoute `json:"routes"`
			}
			if err := rows.Decode(&row); err != nil {
				return nil, fmt.Errorf("--rivals: %s: %w", path, err)
			}
			if row.Routes != nil {
				r.routes[row.problem] = row.Routes
				continue
			}
			if row.Scalar <= 0 {
				return nil, fmt.Errorf("--rivals: %s: instance %d has neither routes nor a referenceScalar", path, row.Instance)
			}
			if best, ok := r.scalar[row.problem]; !ok || row.Scalar < best {
				r.scalar[row.problem] = row.Scalar
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// meet compares a run of a problem with the rival's on the same instance, if there is
// one, and describes the outcome.
func (v *rival) meet(r row, p solver.Problem) string {
	if routes, ok := v.routes[r.problem]; ok {
		return v.meetRoutes(r, p, routes)
	}
	theirs, ok := v.scalar[r.problem]
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
	for _, p := range r.progress {
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

// meetRoutes has the checker judge the rival's routes and compares what both leave
// out, then the distances.
func (v *rival) meetRoutes(r row, p solver.Problem, routes []flownRoute) string {
	theirs, err := planOf(p, routes)
	if err == nil {
		err = check.Plan(p, theirs)
	}
	if err != nil {
		v.violations++
		return fmt.Sprintf(" %s: %v", v.name, err)
	}
	v.met++
	a, b := r.Objective.MissedByRank[:model.PriorityCount], theirs.Objective.MissedByRank[:model.PriorityCount]
	for k := range a {
		v.ours[k] += a[k]
		v.missed[k] += b[k]
	}
	saved := 100 * (1 - r.Objective.DistanceKm/theirs.Objective.DistanceKm)
	c := slices.Compare(a, b)
	if c > 0 || c == 0 && saved < 0 {
		v.behind++
	}
	if c == 0 {
		v.saved = append(v.saved, saved)
	}
	return fmt.Sprintf(" %s: missed %v, %.3f km, ours %.1f %% less", v.name, b, theirs.Objective.DistanceKm, saved)
}

func (v *rival) print() {
	if len(v.routes) > 0 {
		fmt.Fprintf(cli.Stdout, "against %s: %d runs, worse in %d, missed in time %v where it missed %v; %d equal in that, km less mean %.1f %%, least %.1f %%; violations %d\n",
			v.name, v.met, v.behind, v.ours, v.missed, len(v.saved), mean(v.saved), quantile(v.saved, 0), v.violations)
		return
	}
	fmt.Fprintf(cli.Stdout, "against %s: %d runs, worse in %d, better by median %.1f %%, least %.1f %%, passed in %d by p50 %.0f max %.0f ms\n",
		v.name, v.met, v.behind, quantile(v.better, 0.5), quantile(v.better, 0), len(v.passed), quantile(v.passed, 0.5), quantile(v.passed, 1))
}

// sameOrders returns a problem with nothing but the orders that the rival serves.
func sameOrders(p solver.Problem, rivals []*rival, name problem) (solver.Problem, error) {
	if len(rivals) != 1 || rivals[0].routes[name] == nil {
		return p, fmt.Errorf("--same-orders needs one file of --rivals, with routes for instance %d", name.Instance)
	}
	return only(p, rivals[0].routes[name]), nil
}
