//go:build unix

package transcript

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// The page under test, and the folder from which it starts.
const (
	page = "../../docs/gameday.md"
	root = "../.."
)

// sections is what the page holds: how to prepare, then the exercises.
func sections(t *testing.T) (prepare Section, exercises []Section) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 5 || all[0].Title != "Prepare" || len(all[0].Blocks) != 2 {
		t.Fatalf("the page has %d sections; want Prepare with two transcripts, and four exercises or more", len(all))
	}
	return all[0], all[1:]
}

// patience bounds one exercise against a machine that is busy with others.
const patience = 5 * time.Minute

// TestGameDay plays the page: it builds as the page says, once, and then goes
// through every exercise in a shell of its own, all at the same time.
func TestGameDay(t *testing.T) {
	longtest.Only(t, "runs whole fleets in real time")
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the page needs %s, which is not installed", tool)
		}
	}
	prepare, exercises := sections(t)
	bin := t.TempDir()
	if err := play(t.Context(), root, environment(t, bin), prepare.Blocks[0]); err != nil {
		t.Fatal(err)
	}
	// They mostly wait, so a few share the machine, whatever -parallel says; all
	// at once would take it from the tests of other packages.
	turns := make(chan struct{}, 2)
	outcomes := make([]chan error, len(exercises))
	for i, e := range exercises {
		outcomes[i] = make(chan error, 1)
		dir, env := t.TempDir(), environment(t, bin)
		steps := slices.Concat(prepare.Blocks[1], e.Steps())
		go func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			outcomes[i] <- play(t.Context(), dir, env, steps)
		}()
	}
	t.Parallel() // the other pages are replayed while the exercises run
	for i, e := range exercises {
		t.Run(e.Title, func(t *testing.T) {
			if err := <-outcomes[i]; err != nil {
				t.Error(err)
			}
		})
	}
}

// play types steps into a shell and holds their output to what is promised.
func play(ctx context.Context, dir string, env []string, steps []Step) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	shell, err := Start(ctx, dir, env)
	if err != nil {
		return err
	}
	defer shell.Close()
	for _, step := range steps {
		output, code, err := shell.Run(step.Command)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("line %d: %s is over and this is not: %s\n%s", step.Line, patience, step.Command, logs(dir))
		case err != nil:
			return fmt.Errorf("line %d: %s: %w", step.Line, step.Command, err)
		}
		if difference := Match(step.Output, output); difference != "" || code != 0 {
			return fmt.Errorf("line %d: exit code %d of: %s\n%s\nall that came:\n%s\n%s", step.Line, code, step.Command, difference, strings.Join(output, "\n"), logs(dir))
		}
	}
	return nil
}

// environment is what a reader's shell has, without a fleet of the reader's own.
func environment(t *testing.T, bin string) []string {
	env := []string{"bin=" + bin, "TMPDIR=" + t.TempDir()}
	for _, name := range []string{"PATH", "HOME", "GOFLAGS", "CGO_ENABLED", "GOPATH", "GOMODCACHE", "GOCACHE", "GOPROXY", "GOTOOLCHAIN"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	for _, setting := range os.Environ() { // of the machine, without which pip installs nothing
		if strings.HasPrefix(setting, "PIP_") {
			env = append(env, setting)
		}
	}
	return env
}

// logs is the end of what the processes of an exercise left in files.
func logs(dir string) string {
	var all strings.Builder
	names, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, name := range names {
		text, _ := os.ReadFile(name) // without it the failure still stands
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		all.WriteString(filepath.Base(name) + ":\n" + strings.Join(lines[max(0, len(lines)-12):], "\n") + "\n")
	}
	return all.String()
}
