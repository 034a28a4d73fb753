package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dronefleet/dronefleet/internal/input"
)

// elsewhere lists settings of this project's other programs that look like misspelled
// ones of this program.
var elsewhere = []string{"depot", "learn", "leave", "name", "ramp", "report"}

// Misspelled returns a warning for each variable that looks like a misspelled
// setting. Other unknown variables pass: an environment may serve several programs,
// and clusters add variables of their own.
func (p *Parser) Misspelled() []string {
	known := slices.Clone(elsewhere)
	var names []string
	for _, s := range p.settings {
		if len(s.variables) > 0 {
			names = append(names, s.name)
		}
	}
	slices.Sort(names) // so that a tie always has the same answer
	known = append(known, names...)
	var all []string
	for _, entry := range p.environ() {
		given, value, _ := strings.Cut(entry, "=")
		rest, ours := strings.CutPrefix(given, prefix)
		name := strings.ToLower(strings.ReplaceAll(rest, "_", "-"))
		if !ours || value == "" || slices.Contains(known, name) {
			continue
		}
		if near := input.Nearest(name, names); near != "" {
			all = append(all, fmt.Sprintf("variable %.80s is not a setting and is ignored; did you mean %s?", given, variable(near)))
		}
	}
	slices.Sort(all)
	return all
}
