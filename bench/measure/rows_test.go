package measure

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Rows written before a run failed stay. Errors of the file name the flag.
func TestWriteRows_KeepsRowsAndNamesTheFlag(t *testing.T) {
	name := filepath.Join(t.TempDir(), "rows.json")
	interrupted := errors.New("interrupted")
	err := WriteRows("--json", name, func(write func(any) error) error {
		for n := range 2 {
			if err := write(map[string]int{"n": n}); err != nil {
				t.Error(err)
			}
		}
		return interrupted
	})
	if !errors.Is(err, interrupted) {
		t.Error(err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "{\"n\":0}\n{\"n\":1}\n" {
		t.Errorf("the file holds %q, %v", text, err)
	}

	none := func(write func(any) error) error { return write(1) }
	if err := WriteRows("--json", "", none); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{filepath.Join(name, "rows.json"), "/dev/full"} {
		if err := WriteRows("--json", wrong, none); err == nil || !strings.HasPrefix(err.Error(), "--json: ") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
