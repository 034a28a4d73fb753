package transcript

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	page := "# Page\n## One\n```console\n$ a\nx\n\ny\n$ b\n```\ntext\n```sh\n$ not this\n```\n```console\n$ c\n```\n## Two\n"
	got, err := Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []Section{
		{Title: "One", Blocks: [][]Step{
			{{Line: 4, Command: "a", Output: []string{"x", "", "y"}}, {Line: 8, Command: "b"}},
			{{Line: 15, Command: "c"}},
		}},
		{Title: "Two"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(got[0].Steps()) != 3 {
		t.Errorf("%d steps", len(got[0].Steps()))
	}
	for name, bad := range map[string]string{
		"first section":   "```console\n$ a\n```\n",
		"first command":   "## One\n```console\nx\n```\n",
		"is not closed":   "## One\n```console\n$ a\n",
		"line 2: a trans": "# One\n```console\n```\n",
	} {
		if _, err := Parse(bad); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: error is %v, want %q", bad, err, name)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, row := range []struct {
		name, promised, output, difference string
	}{
		{"the same", "a\nb", "a\nb", ""},
		{"spaces of a table", "a b", "a      b  ", ""},
		{"anything within a line", "at … o'clock", "at 12 o'clock", ""},
		{"anything may be nothing", "a …", "a", ""},
		{"no pattern but that", "a.c", "abc", "promised: a.c"},
		{"another text", "applied: 3", "applied: 4", "promised: applied: 3"},
		{"a line too few", "a\nb", "a", "missing: b"},
		{"a line too many", "a", "a\nb", "not promised: b"},
		{"not in this order", "a\nb", "b\na", "promised: a"},
	} {
		difference := Match(strings.Split(row.promised, "\n"), strings.Split(row.output, "\n"))
		if row.difference == "" && difference != "" || !strings.Contains(difference, row.difference) {
			t.Errorf("%s: %q", row.name, difference)
		}
	}
}
