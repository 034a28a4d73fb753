// Package transcript replays documents of transcripts: it types the commands of a page
// into a shell and compares the output with what the page promises. It knows nothing of
// the fleet. A failure names the command, the promised line and the lines that came.
package transcript

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Step is a command and the output that the page promises for it.
type Step struct {
	Line    int // of the page, counted from 1
	Command string
	Output  []string
}

// Section is a part of the page under a heading of the second level.
type Section struct {
	Title  string
	Blocks [][]Step // one for each fenced block of transcript
}

// Steps are those of all blocks in order.
func (s Section) Steps() []Step {
	var all []Step
	for _, b := range s.Blocks {
		all = append(all, b...)
	}
	return all
}

// Parse finds the transcripts of a Markdown page: blocks fenced as "console",
// in which a line that begins with "$ " is a command and every other line is
// output of the one before.
func Parse(page string) ([]Section, error) {
	var sections []Section
	inBlock, inConsole := false, false
	for i, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			inConsole = !inBlock && line == "```console"
			inBlock = !inBlock
			if inConsole && len(sections) == 0 {
				return nil, fmt.Errorf("line %d: a transcript before the first section", i+1)
			}
			if inConsole {
				s := &sections[len(sections)-1]
				s.Blocks = append(s.Blocks, nil)
			}
		case !inBlock && strings.HasPrefix(line, "## "):
			sections = append(sections, Section{Title: strings.TrimPrefix(line, "## ")})
		case inConsole:
			blocks := sections[len(sections)-1].Blocks
			block := &blocks[len(blocks)-1]
			if command, is := strings.CutPrefix(line, "$ "); is {
				*block = append(*block, Step{Line: i + 1, Command: command})
				continue
			}
			if len(*block) == 0 {
				return nil, fmt.Errorf("line %d: output before the first command of a transcript", i+1)
			}
			last := &(*block)[len(*block)-1]
			last.Output = append(last.Output, line)
		}
	}
	if inBlock {
		return nil, fmt.Errorf("the last block of the page is not closed")
	}
	return sections, nil
}

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
