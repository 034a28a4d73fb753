package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write makes a file and returns its name.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// billOf is a bill that gives every module of a binary one licence, but some
// another.
func billOf(t *testing.T, binary, licence string, others map[string]string) string {
	t.Helper()
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	component := func(path string) {
		l, other := others[path]
		if !other {
			l = licence
		}
		if l == "left out" {
			return
		}
		parts = append(parts, fmt.Sprintf(`{"name": %q, "evidence": {"licenses": [{"license": {"id": %q}}]}}`, path, l))
	}
	component("std")
	for _, dep := range info.Deps {
		component(dep.Path)
	}
	for path := range others {
		if strings.HasPrefix(path, "added/") {
			component(path)
		}
	}
	return write(t, "bill.json", `{"components": [`+strings.Join(parts, ",")+`]}`)
}

// The marks of the generated section.
const (
	begin = "<!-- begin generated: licences -->\n"
	end   = "<!-- end generated: licences -->\n"
)

// A check that lets anything pass is none.
func TestRun_RefusesWhatItShould(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	empty := begin + end
	for _, c := range []struct {
		name     string
		licence  string
		others   map[string]string
		document string
		want     string // empty for success
	}{
		{"all is well", "MIT", nil, "current", ""},
		{"a licence that asks for more", "MIT", map[string]string{"std": "GPL-3.0-only"}, "current", "std is under GPL-3.0-only"},
		{"a module that is not in the bill", "MIT", map[string]string{"std": "left out"}, "current", "does not name std"},
		{"a module that is not in the binary", "MIT", map[string]string{"added/module": "MIT"}, "current", "names added/module"},
		{"a stale document", "MIT", nil, empty, "is stale"},
		{"a document without a table", "MIT", nil, "nothing", "has 0 generated sections"},
	} {
		bill := billOf(t, binary, c.licence, c.others)
		if c.document == "current" {
			linked := modules{}
			_ = linked.add(bill, binary) // what is wrong with it is run's to say
			c.document = begin + "\n" + linked.table() + "\n" + end
		}
		err := run(false, []string{write(t, "licences.md", c.document), bill + "=" + binary})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestRun_WritesTheTable(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	document := write(t, "licences.md", "before\n"+begin+"old\n"+end+"after\n")
	args := []string{document, billOf(t, binary, "MIT", nil) + "=" + binary}
	if err := run(true, args); err != nil {
		t.Fatal(err)
	}
	if err := run(false, args); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(document)
	if err != nil || !strings.Contains(string(text), "| Go's standard library | MIT |") || !strings.HasPrefix(string(text), "before\n") || !strings.HasSuffix(string(text), "after\n") {
		t.Errorf("%s %v", text, err)
	}
}

// The text of Go's licence is what it is taken for; one with a clause more, or
// less, is not.
func TestIsBSD3(t *testing.T) {
	dir, err := folder("std")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	if !isBSD3(string(text)) {
		t.Error("Go's licence is not recognised")
	}
	for _, other := range []string{
		"", string(text) + "\nAll advertising must name the author.",
		strings.Replace(string(text), "Redistributions in binary form", "Whatever is passed on in binary form", 1),
	} {
		if isBSD3(other) {
			t.Errorf("taken for BSD-3-Clause: %.80q", other)
		}
	}
}
