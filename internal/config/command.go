package config

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// Checker is a command that checks its settings against each other, and its other
// flags and arguments.
type Checker interface{ Check(*Refuser) }

// Refuser takes what a Checker finds.
type Refuser struct{ command *Command }

// Refuse reports that a setting, flag or argument cannot be used as given: "is 5s,
// less than …; give more". Only the first problem of each is kept, and a value
// that was refused already may be anything.
func (r *Refuser) Refuse(setting, format string, args ...any) {
	r.command.refuse(setting, fmt.Sprintf(format, args...))
}

// Given reports whether the command line has a flag, even if its value is the
// default.
func (r *Refuser) Given(flag string) bool {
	return slices.ContainsFunc(r.command.settings(), func(s *setting) bool { return s.name == flag && r.command.given(s) })
}

// Command is a parsed command line.
type Command struct {
	*kong.Context
	// Prints reports that the command only shows its settings; see Print.
	Prints bool

	parser   *Parser
	file     *file
	origins  map[*setting]origin
	wrong    map[*setting]string // what is wrong with values that were read
	refused  map[string]bool     // names with a problem
	problems Problems
}

func newCommand(p *Parser) *Command {
	return &Command{parser: p, origins: map[*setting]origin{}, wrong: map[*setting]string{}, refused: map[string]bool{}}
}

// given reports whether the command line has a flag.
func (c *Command) given(s *setting) bool {
	return slices.ContainsFunc(c.Path, func(step *kong.Path) bool { return step.Flag == s.flag && !step.Resolved })
}

// variable is the value of a setting's first variable that is not empty.
func (c *Command) variable(s *setting) (string, bool) {
	for _, name := range s.variables {
		v, set := c.parser.lookup(name)
		if !set || v == "" {
			continue
		}
		c.origins[s] = origin{source: "variable " + name}
		if !utf8.ValidString(v) {
			c.wrong[s] = "the value " + notUTF8
		}
		return v, true
	}
	return "", false
}

const notUTF8 = "is not valid UTF-8"

// readFile reads the file that --config or its variables name, once.
func (c *Command) readFile(ctx *kong.Context) {
	if c.file != nil {
		return
	}
	c.Context, c.file = ctx, new(file)
	s := c.parser.settings[c.parser.config]
	name := fmt.Sprint(ctx.FlagValue(s.flag))
	if !c.given(s) {
		name, _ = c.variable(s)
	}
	if name != "" && c.wrong[s] == "" {
		c.file = readFile(name)
		c.file.checkKeys(c.parser)
	}
}

// settings lists the flags of the command that take values, in the order of its help.
func (c *Command) settings() (list []*setting) {
	for _, flag := range c.Flags() {
		if s := c.parser.settings[flag]; s != nil {
			list = append(list, s)
		}
	}
	return list
}

// check collects the problems: those of the file, of each value, and of values
// that do not go together.
func (c *Command) check() {
	c.problems = slices.Clone(c.file.problems)
	for _, s := range c.settings() {
		if c.given(s) || len(s.variables) == 0 {
			c.origins[s] = origin{source: "flag --" + s.name}
		}
		text := c.wrong[s]
		if text == "" {
			text = s.violation()
		}
		if text != "" {
			c.refuse(s.name, text)
		}
	}
	// A file that cannot be read may have what a Checker would miss.
	if c.file.unreadable {
		return
	}
	if checker, ok := c.parser.node(c.Context).Target.Addr().Interface().(Checker); ok {
		checker.Check(&Refuser{c})
	}
}

// refuse notes a problem, unless the setting, flag or argument has one already.
func (c *Command) refuse(name, complaint string) {
	if c.refused[name] {
		return
	}
	c.refused[name] = true
	c.problems = append(c.problems, Problem{Setting: name, Complaint: complaint, origin: c.origin(name)})
}

// origin is where the value of a setting, flag or argument came from.
func (c *Command) origin(name string) origin {
	for _, s := range c.settings() {
		if s.name == name {
			return c.origins[s]
		}
	}
	return origin{source: "argument <" + name + ">"}
}
