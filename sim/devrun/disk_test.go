//go:build unix

package devrun_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/dronefleet/dronefleet/sim/devrun"
)

// dataDirVariable makes TestRun_EndsAtOnceOnAFullDisk the process under test.
const dataDirVariable = "DEVRUN_FULL_DISK"

// E-DU-01, F-API-02: a run whose data directory is full ends at once and says so,
// instead of retrying for minutes what can never succeed.
func TestRun_EndsAtOnceOnAFullDisk(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(dataDirVariable); dir != "" {
		fmt.Println("ended:", runOnFullDisk(t, dir))
		return
	}
	config(t) // skips on other servers
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestRun_EndsAtOnceOnAFullDisk$")
	cmd.Env = append(os.Environ(), dataDirVariable+"="+t.TempDir())
	out, err := cmd.CombinedOutput()
	_, ended, _ := strings.Cut(string(out), "ended: ")
	if err != nil || !strings.Contains(ended, "--data-dir: nothing more can be stored") || !strings.Contains(ended, "free space") {
		t.Errorf("%v: %s", err, out)
	}
}

// runOnFullDisk runs a fleet that may write no file beyond 1 MiB.
func runOnFullDisk(t *testing.T, dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur = 1 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	cfg := config(t)
	cfg.Duration, cfg.DataDir = 0, dir
	// Its time to stop is bounded, so a part of it may still log when the test has ended.
	cfg.Log = slog.New(slog.DiscardHandler)
	_, err := devrun.Run(t.Context(), cfg)
	return err
}
