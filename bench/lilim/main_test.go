package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/testkit/clitest"
)

func TestMain(m *testing.M) { clitest.MainOf(m, main) }

// Flags with which nothing could be measured are refused.
func TestMain_RefusesNonsense(t *testing.T) {
	clitest.RefusesLines(t, map[string]string{
		"":                    "--dir",
		"--dir=. --workers=0": "workers (flag --workers)",
	})
}

func TestRun_EndsWithItsContext(t *testing.T) {
	text := "20 50 1\n0 50 50 0 0 1000 0 0 0\n"
	for i := 1; i < 40; i += 2 {
		text += fmt.Sprintf("%d %d 10 10 0 900 10 0 %d\n%d 70 %d -10 0 900 10 %d 0\n", i, i, i+1, i+1, i, i)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "small.txt"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	f := flags{Dir: folder, Instances: "*", Time: time.Hour, Seeds: 1, Workers: 1}
	if err := f.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended with %v", err)
	}
}
