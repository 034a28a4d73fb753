package main_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/internal/connect"
)

// F-REL-03: nothing is coloured, so there is nothing for NO_COLOR to turn off, and what goes to a
// pipe has no control characters.
func TestOutput_HasNoColour(t *testing.T) {
	t.Parallel()
	out, errs := dronefleet.Run(t, connect.Config{}, 0, "dev", "--drones=1", "--orders-per-minute=0", "--duration=1s", "--http-addr=off", "--firestore-addr=127.0.0.1:0", "--pubsub-addr=127.0.0.1:0")
	if strings.Contains(out+errs, "\x1b") || out == "" {
		t.Errorf("to a pipe: %q %q", out, errs)
	}
	colour := regexp.MustCompile(`(\\x1b|\\033|\\u001b|\\e)\[[0-9;]*m`)
	err := filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		if colour.Match(text) && !strings.HasSuffix(name, ".pb.go") {
			t.Errorf("%s colours what it prints; honour NO_COLOR and pipes, and say so in docs/configuration.md", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
