// Package docs holds documents for people. Its tests keep them true.
package docs

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// An id as code cites it. Lock decisions (D11) are left out: drones in
	// tests are called so too.
	citation = regexp.MustCompile(`\b([FLEP]-[A-Z]+-[0-9]{2}|B-[0-9]{2}|I[1-9][0-9]?)\b`)
	// A line that explains one.
	explained = regexp.MustCompile(`(?m)^\| ([A-Z][-A-Z0-9]*[0-9]) \|(?: [MS] \|)? \S.* \|$`)
)

// explanations is the ids requirements.md explains.
func explanations(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, m := range explained.FindAllStringSubmatch(string(text), -1) {
		if ids[m[1]] {
			t.Errorf("%s is explained twice", m[1])
		}
		ids[m[1]] = true
	}
	return ids
}

// citations is where each id is cited in Go code, by id.
func citations(t *testing.T) map[string][]string {
	t.Helper()
	cited := map[string][]string{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != ".." && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, id := range citation.FindAllString(string(text), -1) {
			if !slices.Contains(cited[id], path) {
				cited[id] = append(cited[id], path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return cited
}

// unproven are the requirements that no test cites, with the reason.
var unproven = map[string]string{
	"E-PF-01": "a measurement of the Go client against a stub, to know what can be had; nothing of ours to hold to it",
	"E-PF-02": "a measurement of a prototype, for comparison; E-PF-03 holds the targets",
	"E-PR-01": "a suite of others, in another language; what it showed are the tests of E-TX-09",
}

// proves says whether a file is part of a test: the lock's contract suite is run
// by the tests of every backend. This file only names requirements.
func proves(path string) bool {
	path = filepath.ToSlash(path)
	return strings.HasSuffix(path, "_test.go") && path != "../docs/requirements_test.go" || path == "../lock/locktest/run.go"
}

// TestRequirements fails when code cites what nobody can look up, and when no
// test cites a requirement.
func TestRequirements(t *testing.T) {
	explained, cited := explanations(t), citations(t)
	for _, id := range slices.Sorted(maps.Keys(cited)) {
		if !explained[id] {
			t.Errorf("%s is not explained in requirements.md; cited in %s", id, strings.Join(cited[id], ", "))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(explained)) {
		if !citation.MatchString(id) {
			continue
		}
		inTest, excused := slices.ContainsFunc(cited[id], proves), unproven[id] != ""
		switch {
		case !inTest && !excused:
			t.Errorf("no test cites %s", id)
		case inTest && excused:
			t.Errorf("%s is said to be without a test, and %s cites it", id, strings.Join(cited[id], ", "))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(unproven)) {
		if !explained[id] {
			t.Errorf("%s is not explained in requirements.md", id)
		}
	}
}
