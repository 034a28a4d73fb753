package config

import (
	"fmt"
	"slices"
	"strings"
)

// elsewhere are settings of one of the project's programs that differ from one
// of another's by no more than a typing mistake may.
var elsewhere = []string{"depot", "report"}

// Misspelt says of every variable that is no setting, but nearly one, that it is
// ignored. Others pass: an environment may serve several programs, and clusters
// add variables of their own.
func (p *Parser) Misspelt() []string {
	known := slices.Clone(elsewhere)
	var names []string
	for _, s := range p.settings {
		names = append(names, s.name)
	}
	slices.Sort(names) // of several that are near, always the same
	known = append(known, names...)
	var all []string
	for _, entry := range p.environ() {
		given, value, _ := strings.Cut(entry, "=")
		rest, ours := strings.CutPrefix(given, prefix)
		name := strings.ToLower(strings.ReplaceAll(rest, "_", "-"))
		if !ours || value == "" || slices.Contains(known, name) {
			continue
		}
		if near := nearest(name, names); near != "" {
			all = append(all, fmt.Sprintf("variable %.80s is no setting and is ignored; did you mean %s?", given, variable(near)))
		}
	}
	slices.Sort(all)
	return all
}
