package config

import (
	"fmt"
	"strings"
)

// origin is where a value came from.
type origin struct {
	source string // "file fleet.yaml", "variable DRONEFLEET_SEED", "flag --seed", "argument <id>"; empty for the default
	line   int    // of the file; 0 for the file as a whole
}

func (o origin) String() string {
	switch {
	case o.source == "":
		return "default"
	case o.line > 0:
		return fmt.Sprintf("%s:%d", o.source, o.line)
	}
	return o.source
}

// Problem is one thing that is wrong with the settings.
type Problem struct {
	Setting   string // empty when the file as a whole is concerned
	Complaint string // what is wrong and what to give instead
	origin    origin
}

// Error implements error.
func (p Problem) Error() string {
	if p.Setting == "" {
		return fmt.Sprintf("%s: %s", p.origin, p.Complaint)
	}
	return fmt.Sprintf("%s (%s): %s", p.Setting, p.origin, p.Complaint)
}

// Problems lists everything that is wrong with the settings.
type Problems []Problem

// Error implements error. Each problem is a line.
func (p Problems) Error() string {
	if len(p) == 1 {
		return p[0].Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d settings cannot be used:", len(p))
	for _, problem := range p {
		b.WriteString("\n  " + problem.Error())
	}
	return b.String()
}
