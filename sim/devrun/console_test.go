package devrun

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// F-API-02: on a terminal, a line appears above the status, which stays the last
// thing shown.
func TestConsole_KeepsTheStatusLast(t *testing.T) {
	var out strings.Builder
	c := console{out: &out, terminal: true}
	c.show("head", "row 1")
	c.print(2, "news")
	c.show("head", "row 2")
	c.show()
	const erase = "\r\x1b[A\x1b[J"
	draw := func(row string) string { return "\x1b[?7lhead\r\n" + row + "\x1b[?7h" }
	if want := draw("row 1") + erase + "news\n" + draw("row 1") + erase + draw("row 2") + erase; out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
	out.Reset()
	c.show("head", "row 3")
	c.entered()
	c.show()
	if want := draw("row 3") + "\r\x1b[A\x1b[A\x1b[J"; out.String() != want {
		t.Errorf("after a line was typed: wrote %q, want %q", out.String(), want)
	}
	out.Reset()
	c.terminal = false
	c.show("head", "row")
	c.print(2, "line")
	if out.String() != "line\n" {
		t.Errorf("wrote %q to a file", out.String())
	}
}

// F-DAY-02: the documents list the incidents that there are.
func TestIncidents_AreDocumented(t *testing.T) {
	for page, form := range map[string]string{"gameday.md": "| `%s` |", "configuration.md": "%s"} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range incidentNames() {
			if !strings.Contains(string(text), fmt.Sprintf(form, name)) {
				t.Errorf("%s lacks %s", page, name)
			}
		}
	}
}

func TestWrap_BreaksBetweenWords(t *testing.T) {
	for line, want := range map[string]string{
		"":                      "",
		"short":                 "short",
		"one two three four":    "one two\n  three\n  four",
		"orders      1 created": "orders\n  1\n  created",
		"incomprehensibly long": "incomprehensibly\n  long",
		"incomprehensibly":      "incomprehensibly",
		"a incomprehensibly":    "a\n  incomprehensibly",
		"  export A=incompreh":  "  export\n  A=incompreh",
	} {
		if got := wrap(line, 8, 2); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

type unwritable struct{ err error }

func (u unwritable) Write([]byte) (int, error) { return 0, u.err }

// F-API-02: the first failure to print is reported once, and nothing is written
// after it.
func TestConsole_ReportsTheFirstFailure(t *testing.T) {
	var failures []error
	full := errors.New("no space left on device")
	c := console{out: unwritable{full}, failed: func(err error) { failures = append(failures, err) }}
	c.print(0, "a")
	c.print(0, "b")
	if len(failures) != 1 || !errors.Is(failures[0], full) {
		t.Errorf("failures %v", failures)
	}
}
