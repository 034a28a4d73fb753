package config

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// common are the flags that every command has.
type common struct {
	Config        string `help:"YAML file with settings; see docs/configuration.md." placeholder:"FILE" env:"CONFIG"`
	PrintConfig   bool   `help:"Print the effective settings and the origin of each, and exit."`
	PrintSettings table  `help:"Print a table of all settings as Markdown, and exit."`
}

// table is a flag that prints the parser's settings.
type table bool

// BeforeReset is called by kong when the flag is given, before it asks for a
// command.
func (table) BeforeReset(app *kong.Kong, p *Parser) error {
	p.printReference(app.Stdout)
	app.Exit(0)
	return nil
}

// Parser parses command lines of one grammar.
//
// kong parses the command line and applies the values. A kong.Resolver gives it those of
// the environment and the file, and a kong.Mapper around each flag's own notes wrong
// ones. Three checks follow, because kong would stop at the first problem: ranges and
// enumerations, settings against each other, and unknown keys.
type Parser struct {
	kong     *kong.Kong
	common   common
	config   *kong.Flag              // --config
	settings map[*kong.Flag]*setting // of every flag that takes a value
	lookup   func(string) (string, bool)
	environ  func() []string
	command  *Command // the command line being parsed
}

// New returns a parser of grammar, a kong struct.
func New(grammar any, options ...kong.Option) (*Parser, error) {
	p := &Parser{settings: map[*kong.Flag]*setting{}, lookup: os.LookupEnv, environ: os.Environ}
	options = append(slices.Clone(options), kong.Embed(&p.common), kong.ValueFormatter(p.help), kong.Bind(p),
		kong.WithBeforeResolve(func(ctx *kong.Context) error { p.command.readFile(ctx); return nil }), kong.Resolvers(kong.ResolverFunc(p.resolve)))
	var err error
	if p.kong, err = kong.New(grammar, options...); err != nil {
		return nil, err
	}
	err = p.visitNodes(func(node *kong.Node) error {
		if node.Tag.Has("settings") && !slices.Contains(Commands, node.Name) {
			return fmt.Errorf("command %s has settings, but config.Commands lacks it", node.Name)
		}
		for _, flag := range node.Flags {
			if err := p.adopt(node, flag); err != nil {
				return err
			}
		}
		return nil
	})
	return p, err
}

// Model is the program with its commands and flags.
func (p *Parser) Model() *kong.Node { return p.kong.Model.Node }

// Choices lists the values that a flag accepts; nil if they are not listed.
func (p *Parser) Choices(flag *kong.Flag) []string {
	s := p.settings[flag]
	if s == nil {
		return nil
	}
	return s.rule.choices
}

// visitNodes calls f with the program and each of its commands.
func (p *Parser) visitNodes(f func(*kong.Node) error) error {
	return kong.Visit(p.kong.Model.Node, func(v kong.Visitable, next kong.Next) error {
		switch v := v.(type) {
		case *kong.Application:
			return next(f(v.Node))
		case *kong.Node:
			return next(f(v))
		}
		return next(nil)
	})
}

// adopt reads a flag's values through its setting. All flags of a command with settings
// have variables; other flags have them if tagged env.
func (p *Parser) adopt(node *kong.Node, flag *kong.Flag) error {
	if flag == p.kong.Model.HelpFlag {
		return nil
	}
	s, err := newSetting(flag, node.Tag.Has("settings") || len(flag.Tag.Envs) > 0)
	if err != nil {
		return err
	}
	p.settings[flag] = s
	flag.Mapper = reader{p, s}
	if flag.Target.Addr().Interface() == any(&p.common.Config) {
		p.config = flag
	}
	return nil
}

// reader is a flag's mapper. It notes a wrong value and goes on, where kong would stop.
type reader struct {
	parser  *Parser
	setting *setting
}

// Decode implements kong.Mapper.
func (r reader) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	token := ctx.Scan.Peek()
	err := r.setting.parse.Decode(ctx, target)
	switch {
	case err == nil:
		return nil
	case token.IsEOL() || token.InferredType().IsAny(kong.FlagToken, kong.ShortFlagToken):
		return r.setting.lacking(token)
	}
	r.parser.command.wrong[r.setting] = r.setting.complaint(token.Value, err)
	return nil
}

// help is kong's formatter of a flag's help.
func (p *Parser) help(v *kong.Value) string {
	if s := p.settings[v.Flag]; s != nil && len(s.variables) > 0 {
		return s.help()
	}
	return kong.DefaultHelpValueFormatter(v)
}

// Parse parses a command line and the settings that come with it. The error is
// Problems if values are wrong, and kong's if the command line is.
func (p *Parser) Parse(args []string) (*Command, error) {
	for i, arg := range args {
		if !utf8.ValidString(arg) { // kong would alter it
			return nil, fmt.Errorf("argument %d, %q, %s", i+1, arg, notUTF8)
		}
	}
	c := newCommand(p)
	p.command = c
	ctx, err := p.kong.Parse(args)
	if err != nil {
		return nil, err
	}
	c.Context, c.Prints = ctx, p.common.PrintConfig
	c.check()
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return c, nil
}

// resolve is the kong.Resolver that has the values of variables and the file.
func (p *Parser) resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	s, c := p.settings[flag], p.command
	if s == nil {
		return nil, nil
	}
	if value, ok := c.variable(s); ok {
		return value, nil
	}
	e, ok := c.file.find(p.node(ctx).Name, s.name)
	switch {
	case !ok || !p.inFile(s):
		return nil, nil
	case flag.IsSlice() && slices.Contains(e.values, any("")):
		e.problem = emptyEntry
	case !flag.IsSlice() && len(e.values) != 1 && e.problem == "":
		e.problem = "is a list; give one value"
	}
	c.origins[s] = c.file.at(e.line)
	switch {
	case e.problem != "":
		c.wrong[s] = e.problem
		return nil, nil
	case flag.IsSlice():
		return e.values, nil
	}
	return e.values[0], nil
}

// inFile reports whether a file may give a flag's value.
func (p *Parser) inFile(s *setting) bool { return len(s.variables) > 0 && s.flag != p.config }

// node is the chosen command, or the program if it has no commands.
func (p *Parser) node(ctx *kong.Context) *kong.Node {
	if selected := ctx.Selected(); selected != nil {
		return selected
	}
	return p.kong.Model.Node
}
