package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// lockSources is the text of the lock library's Go files by path, each line without
// its indentation.
func lockSources(t *testing.T) map[string]string {
	t.Helper()
	sources := map[string]string{}
	err := filepath.WalkDir("../lock", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		sources[path] = unindented(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

func unindented(code string) string {
	var text strings.Builder
	for line := range strings.Lines(code) {
		text.WriteString(strings.TrimSpace(line) + "\n")
	}
	return text.String()
}

// What the pages about the lock show in Go is part of an example, which compiles and
// runs.
func TestLock_SnippetsAreExamples(t *testing.T) {
	sources := lockSources(t)
	for page, want := range map[string]int{"lock.md": 9, "../lock/README.md": 1} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		snippets := regexp.MustCompile("(?ms)^```go\n(.*?)^```").FindAllStringSubmatch(string(text), -1)
		if len(snippets) != want {
			t.Errorf("%s has %d pieces of Go, want %d", page, len(snippets), want)
		}
	snippet:
		for _, snippet := range snippets {
			for path, source := range sources {
				if strings.Contains(filepath.Base(path), "example") && strings.Contains(source, unindented(snippet[1])) {
					continue snippet
				}
			}
			t.Errorf("%s: no example has\n%s", page, snippet[1])
		}
	}
}

// Messages that the troubleshooting table quotes are those that the library gives,
// and the examples and names in backquotes exist.
func TestLock_TroubleshootingQuotesTheLibrary(t *testing.T) {
	text, err := os.ReadFile("lock.md")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for path, source := range lockSources(t) {
		if !strings.HasSuffix(path, "_test.go") || strings.Contains(path, "example") {
			all.WriteString(source)
		}
	}
	source := all.String()
	_, table, _ := strings.Cut(string(text), "## Troubleshooting")
	quoted := regexp.MustCompile("log: `([^`]+)`|\"([^\"]+)\"").FindAllStringSubmatch(table, -1)
	if len(quoted) < 5 {
		t.Errorf("the table quotes %d messages", len(quoted))
	}
	for _, m := range quoted {
		if message := m[1] + m[2]; !strings.Contains(source, message) {
			t.Errorf("the library says nowhere %q", message)
		}
	}
	names := regexp.MustCompile("`(?:[a-z]+\\.)?((?:Err|Reason|With|Example|Clock|Fence|Default|Deny|Include|New|Get)[A-Za-z_]*)[(`]").FindAllStringSubmatch(string(text), -1)
	if len(names) < 15 {
		t.Errorf("the page names %d identifiers", len(names))
	}
	for _, m := range names {
		if !regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(source) {
			t.Errorf("the library has no %s", m[1])
		}
	}
}
