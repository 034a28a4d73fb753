package transcript

import (
	"regexp"
	"strings"
)

// anything stands for any text within a line.
const anything = "…"

// Match says what is wrong with output in the light of the promised lines; ""
// if they agree. Each promised line must come, in order and with nothing
// between; runs of spaces count as one, and those at the ends not at all.
func Match(promised, output []string) string {
	for i, want := range promised {
		if i >= len(output) {
			return "missing: " + want
		}
		if !lineMatches(want, output[i]) {
			return "promised: " + want + "\n     came: " + output[i]
		}
	}
	if len(output) > len(promised) {
		return "not promised: " + output[len(promised)]
	}
	return ""
}

func lineMatches(want, got string) bool {
	parts := strings.Split(oneSpaced(want), anything)
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(oneSpaced(got))
}

// oneSpaced makes a table's widths irrelevant. Spaces beside what stands for
// anything are optional.
func oneSpaced(line string) string {
	line = strings.Join(strings.Fields(line), " ")
	line = strings.ReplaceAll(line, " "+anything, anything)
	return strings.ReplaceAll(line, anything+" ", anything)
}
