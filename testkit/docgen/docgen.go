package docgen

import (
	"fmt"
	"os"
	"strings"
)

// Elsewhere is the text of a section that another package generates.
const Elsewhere = "\x00"

// Hold fails unless the document, a file, has exactly these sections, by name,
// each once; their texts end with a newline. With update it writes stale ones anew; else the error tells the
// command that would.
func Hold(document string, sections map[string]string, update bool, command string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	fresh, err := fill(document, string(text), sections)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", document, err)
	case fresh == string(text):
		return nil
	case update:
		return os.WriteFile(document, []byte(fresh), 0o644)
	}
	return fmt.Errorf("%s is stale; run %s", document, command)
}

// mark is the line that begins or ends a section, with the blank line between it and the section.
// A section of YAML is indented as its marks are.
func mark(document, edge, name string) (line, blank string) {
	if strings.HasSuffix(document, ".yaml") {
		return "# " + edge + " generated: " + name + "\n", ""
	}
	return "<!-- " + edge + " generated: " + name + " -->\n", "\n"
}

// fill replaces what stands between each pair of marks.
func fill(document, text string, sections map[string]string) (string, error) {
	if n := strings.Count(text, " begin generated: "); n != len(sections) {
		return "", fmt.Errorf("it has %d generated sections, want %d", n, len(sections))
	}
	for name, section := range sections {
		begin, blank := mark(document, "begin", name)
		end, _ := mark(document, "end", name)
		before, rest, found := strings.Cut(text, begin)
		_, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			return "", fmt.Errorf("it needs a section between %q and %q", begin, end)
		}
		if section == Elsewhere {
			continue
		}
		indent := before[strings.LastIndexByte(before, '\n')+1:]
		text = before + begin + blank + section + blank + indent + end + after
	}
	return text, nil
}
