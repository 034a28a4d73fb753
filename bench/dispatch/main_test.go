package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/internal/cli/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, main) }

// A benchmark that could measure nothing is refused.
func TestMain_RefusesNonsense(t *testing.T) {
	clitest.Refuses(t, map[string]string{
		"--drones=-1":   "drones (flag --drones)",
		"--instances=0": "instances (flag --instances)",
		"--seeds=0":     "seeds (flag --seeds)",
		"--fast":        "--fast",
	})
}

// F-OPT-05: a run that is stopped before it has a row costs nobody the rows of the
// one before.
func TestRun_KeepsTheFormerRows(t *testing.T) {
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

// Who is told to stop searches no longer.
func TestRun_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	f := flags{Drones: 20, Orders: 60, Instances: 2, First: 1, Time: time.Hour, Seeds: 1, Workers: 1, Strategy: "sisr", Quiet: true}
	if err := f.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended with %v", err)
	}
}
