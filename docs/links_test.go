package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
)

// anchors is what can be linked to within a page, as GitHub names headings.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		found[anchor(m[1])] = true
	}
	return found
}

func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, heading)
}

// Links within the project lead somewhere.
func TestLinks_LeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := filepath.Glob("decisions/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, decisions...)
	for _, name := range append(pages, "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md", "../lock/README.md", "../bench/peers/README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, fragment, _ := strings.Cut(m[1], "#")
			target := name
			if path != "" {
				target = filepath.Join(filepath.Dir(name), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
				continue
			}
			if fragment == "" {
				continue
			}
			page, err := os.ReadFile(target)
			if err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			} else if !anchors(string(page))[fragment] {
				t.Errorf("%s links to %s, but no heading of %s is called so", name, m[1], target)
			}
		}
	}
}

// A record of a decision keeps to one page. Contracts belong to the document that
// readers look for, figures to the command that measures them.
func TestDecisions_KeepToOnePage(t *testing.T) {
	const page = 4000 // bytes
	records, err := filepath.Glob("decisions/[0-9]*.md")
	if err != nil || len(records) == 0 {
		t.Fatalf("found %d records: %v", len(records), err)
	}
	for _, name := range records {
		if info, err := os.Stat(name); err != nil {
			t.Error(err)
		} else if info.Size() > page {
			t.Errorf("%s has %d bytes, more than %d: keep context, choice and cost", name, info.Size(), page)
		}
	}
}

// docs/README.md lists every document.
func TestDocuments_AreListed(t *testing.T) {
	list, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if page != "README.md" && !strings.Contains(string(list), "("+page+")") {
			t.Errorf("docs/README.md does not list %s", page)
		}
	}
}
