package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/bench/dispatch/scenario"
	"github.com/dronefleet/dronefleet/testkit/clitest"
)

func TestMain(m *testing.M) { clitest.MainOf(m, main) }

// Flags with which nothing could be measured are refused.
func TestMain_RefusesNonsense(t *testing.T) {
	clitest.RefusesLines(t, map[string]string{
		"--drones=-1":   "drones (flag --drones)",
		"--instances=0": "instances (flag --instances)",
		"--seeds=0":     "seeds (flag --seeds)",
		"--fast":        "--fast",
	})
}

// F-OPT-05: a run that is stopped before its first row leaves the file of an earlier
// run as it is.
func TestRun_KeepsEarlierRowsWhenStopped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.json")
	if err := os.WriteFile(file, []byte("rows"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := flags{Drones: 2, Orders: 2, Instances: 1, First: 1, Time: time.Second, Seeds: 1, Workers: 1, Strategy: "sisr", Quiet: true, JSON: file}
	if err := f.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "rows" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

func TestRun_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	f := flags{Drones: 20, Orders: 60, Instances: 2, First: 1, Time: time.Hour, Seeds: 1, Workers: 1, Strategy: "sisr", Quiet: true}
	if err := f.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended with %v", err)
	}
}

// A rival that drops every order is passed by the first plan, one that flies a
// single metre never. Rows of other problems are ignored.
func TestRivals_CompareWithRunsOfTheSameProblem(t *testing.T) {
	rivals := func(rows string) ([]*rival, error) {
		file := filepath.Join(t.TempDir(), "rows.json")
		if err := os.WriteFile(file, []byte(rows), 0o600); err != nil {
			t.Fatal(err)
		}
		return readRivals([]string{file})
	}
	met, err := rivals(`
		{"instance": 7, "drones": 5, "orders": 60, "referenceScalar": 90e6}
		{"instance": 7, "drones": 5, "orders": 60, "referenceScalar": 12e6}
		{"instance": 8, "drones": 5, "orders": 60, "referenceScalar": 1}
		{"instance": 7, "drones": 4, "orders": 60, "referenceScalar": 1}`)
	if err != nil {
		t.Fatal(err)
	}
	f := flags{Drones: 5, Orders: 60, Time: time.Minute, Iterations: 1000, Workers: 1, Strategy: "sisr", Reference: true}
	for i := range uint64(3) {
		p := scenario.Generate(f.params(6 + i))
		met[0].meet(solve(t.Context(), f, p, 6+i, 1, f.Time), p)
	}
	if v := met[0]; v.met != 2 || v.behind != 1 || len(v.passed) != 1 || v.better[0] <= 0 || v.better[1] >= 0 {
		t.Errorf("%+v", v)
	}
	for rows, want := range map[string]string{"{": "unexpected EOF", `{"instance": 7}`: "instance 7 has neither routes nor a referenceScalar"} {
		if _, err := rivals(rows); err == nil || !strings.HasPrefix(err.Error(), "--rivals: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", rows, err)
		}
	}
}
