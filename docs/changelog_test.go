package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// changelogErrors lists what breaks the form of the changelog: dated sections,
// newest first, with entries of at most two lines under Added, Changed, Fixed or
// Upgrade.
func changelogErrors(text string) (found []string) {
	date := regexp.MustCompile(`^## \d{4}-\d\d-\d\d( to \d{4}-\d\d-\d\d)?$`)
	kinds := []string{"Added", "Changed", "Fixed", "Upgrade"}
	last, kind, lines := "", "", 0
	for _, line := range strings.Split(text, "\n") {
		problem := ""
		switch {
		case strings.HasPrefix(line, "## "):
			if !date.MatchString(line) || last != "" && line >= last {
				problem = "sections are dates, newest first"
			}
			last, kind = line, ""
		case strings.HasPrefix(line, "### "):
			if kind = strings.TrimPrefix(line, "### "); !slices.Contains(kinds, kind) {
				problem = "subsections are " + strings.Join(kinds, ", ")
			}
		case strings.HasPrefix(line, "- "):
			lines = 1
			if kind == "" {
				problem = "entries stand in a subsection"
			}
		case strings.HasPrefix(line, "  "):
			if lines++; lines == 3 {
				problem = "an entry has at most two lines; link to a page for more"
			}
		}
		if len(line) > 150 {
			problem = "lines have at most 150 characters"
		}
		if problem != "" {
			found = append(found, line+": "+problem)
		}
	}
	return found
}

func TestChangelog_HasDatedSectionsAndShortEntries(t *testing.T) {
	text, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range changelogErrors(string(text)) {
		t.Error(problem)
	}
	for _, broken := range []string{
		"## Unreleased",
		"## 2026-11-25\n## 2026-11-26",
		"## 2026-11-25\n### News",
		"## 2026-11-25\n- one",
		"## 2026-11-25\n### Added\n- one\n  two\n  three",
		"## 2026-11-25\n### Added\n- " + strings.Repeat("x", 150),
	} {
		if len(changelogErrors(broken)) == 0 {
			t.Errorf("nothing found in %q", broken)
		}
	}
}
