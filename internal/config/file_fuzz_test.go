package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Reading any file ends, and every problem names the file.
func FuzzFile(f *testing.F) {
	for _, text := range []string{
		"", "size: 2\nserve:\n  size: 3\n  depot: [A, 'B,C']\n", "a: [", "serve: {size: 1}\nserve: {size: 2}\n",
		"a: &a [*a]\nb: *a\n", "serve: &s {size: 1}\ndev: *s\n", "? [a]\n: 3\n", "<<: {a: 1}\n", "size: !!binary AAAA\n", "---\n---\n",
	} {
		f.Add(text)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		name := filepath.Join(dir, "fleet.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		read := readFile(name)
		for _, p := range read.problems {
			if !strings.Contains(p.Error(), "fleet.yaml") || p.Complaint == "" {
				t.Errorf("problem %q", p.Error())
			}
		}
		for section, entries := range read.sections {
			for key, e := range entries {
				if (e.values == nil) == (e.problem == "") || e.line < 1 {
					t.Errorf("section %q, key %q: %+v", section, key, e)
				}
			}
		}
	})
}
