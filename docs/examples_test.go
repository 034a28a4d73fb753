package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// F-DOC-11: each example is short, has no library of ours, is listed, and says what it takes. The
// pages that explain them are replayed by docs/transcript.
func TestExamples_AreShortAndListed(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../examples/*.*")
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	list, err := os.ReadFile("../examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if name == "README.md" || name == "doc.go" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			limit := 100
			if filepath.Ext(name) == ".go" { // which writes out types and errors
				limit = 165
			}
			if n := strings.Count(string(text), "\n"); n >= limit {
				t.Errorf("it has %d lines; leave something out", n)
			}
			if !strings.Contains(string(list), "["+name+"]("+name+")") {
				t.Error("README.md does not list it")
			}
			var help *exec.Cmd
			switch filepath.Ext(name) {
			case ".py":
				python := os.Getenv("EXAMPLES_PYTHON") // has the modules that some need
				if python == "" {
					python = "python3"
				}
				help = exec.CommandContext(t.Context(), python, file, "--help")
			case ".go":
				help = exec.CommandContext(t.Context(), "go", "run", file, "--help")
			case ".sh":
				help = exec.CommandContext(t.Context(), "bash", file, "--help")
			default:
				return
			}
			out, err := help.CombinedOutput()
			switch usage := strings.ToLower(string(out)); {
			case strings.Contains(usage, "no module named"), help.Process == nil:
				t.Skipf("what it needs is not installed: %v: %s", err, out)
			case err != nil || !strings.Contains(usage, "usage: "):
				t.Errorf("--help: %v: %s", err, out)
			}
		})
	}
}
