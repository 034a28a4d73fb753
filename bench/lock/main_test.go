package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/testkit/clitest"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

func TestMain(m *testing.M) { clitest.MainOf(m, main) }

// Flags with which nothing could be measured are refused.
func TestMain_RefusesBadFlags(t *testing.T) {
	clitest.RefusesLines(t, map[string]string{
		"--backends=0 --keys=1":          "backends (flag --backends)",
		"--duration=0s":                  "duration (flag --duration)",
		"--keys=9223372036854775807":     "keys (flag --keys)",
		"--workers=9223372036854775807":  "workers (flag --workers)",
		"--backends=9223372036854775807": "backends (flag --backends)",
		"--store=mysql://db":             "store (flag --store)",
	})
}

// The benchmark fails on two holders, a fence that does not rise and a starved worker.
// Even a busy machine serves each worker within seconds.
func TestMeasure_FindsNoViolation(t *testing.T) {
	var out bytes.Buffer
	runs := []run{
		{keys: 1, workers: 4, processes: 1, duration: 2 * time.Second},
		{keys: 8, workers: 4, processes: 2, duration: 2 * time.Second},
	}
	if err := measureFirestore(t.Context(), &out, runs); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 4 {
		t.Errorf("%d lines:\n%s", lines, out.String())
	}
}

// The same is measured on the stores that are given.
func TestMeasure_MeasuresOtherStores(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *storeserver.Server{
		"Redis":      func(tb testing.TB) *storeserver.Server { return storeserver.Redis(tb) },
		"PostgreSQL": func(tb testing.TB) *storeserver.Server { return storeserver.Postgres(tb) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := start(t).URL
			var out bytes.Buffer
			if err := measureStore(t.Context(), &out, url, []run{{keys: 1, workers: 4, processes: 2, duration: time.Second}}); err != nil {
				t.Fatal(err)
			}
			if lines := strings.Count(out.String(), "\n"); lines != 3 {
				t.Errorf("%d lines:\n%s", lines, out.String())
			}
		})
	}
}

// The measurement ends with its context.
func TestMeasure_EndsWithContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	runs := []run{{keys: 1, workers: 4, processes: 1, duration: time.Hour}}
	if err := measureFirestore(ctx, io.Discard, runs); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended with %v", err)
	}
}

// Either flag selects one measurement; without both, the whole matrix is measured.
func TestCommand_FlagsSelectMeasurement(t *testing.T) {
	for _, row := range []struct {
		given command
		want  []run
	}{
		{command{Keys: 2}, []run{{keys: 2, workers: 1}}},
		{command{Workers: 3}, []run{{keys: 1, workers: 3}}},
		{command{Keys: 2, Workers: 3}, []run{{keys: 2, workers: 3}}},
		{command{}, matrix},
	} {
		if got := row.given.runs(); !slices.Equal(got, row.want) {
			t.Errorf("%+v: %+v, want %+v", row.given, got, row.want)
		}
	}
}
