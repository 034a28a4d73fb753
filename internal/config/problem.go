package config

import (
	"fmt"
	"strings"
)

// kind is where a value came from, the weakest first.
type kind int

const (
	byDefault kind = iota
	byFile
	byVariable
	byFlag
	byArgument
)

// origin is where a value came from.
type origin struct {
	kind  kind
	place string // "fleet.yaml:3", "DRONEFLEET_SEED", "--seed", "<id>"
}

func (o origin) String() string {
	switch o.kind {
	case byFile:
		return "file " + o.place
	case byVariable:
		return "variable " + o.place
	case byFlag:
		return "flag " + o.place
	case byArgument:
		return "argument " + o.place
	}
	return "default"
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

// Problems is all that is wrong with the settings.
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
