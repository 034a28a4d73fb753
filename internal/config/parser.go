package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// common are the flags that every command has.
type common struct {
	Config        string `help:"File of settings, in YAML; docs/configuration.md tells what may be in it." placeholder:"FILE" env:"CONFIG"`
	PrintConfig   bool   `help:"Print the settings the command would run with, and where each comes from, and end."`
	PrintSettings table  `help:"Print a table of all settings there are, in Markdown, and end."`
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

// Checker is a command that checks settings against each other, and the rest of
// its command line. Settings that were refused already, and may hold anything, are
// not refused again.
type Checker interface{ Check(*Report) }

// Report takes what a Checker finds.
type Report struct{ command *Command }

// Refuse says that a setting, flag or argument cannot be used as it is given: "is
// 5s, less than …; give more".
func (r *Report) Refuse(setting, format string, args ...any) {
	r.command.refuse(setting, fmt.Sprintf(format, args...))
}

// Given reports whether the command line has a flag, whose value may be one that
// stands for none.
func (r *Report) Given(flag string) bool {
	return slices.ContainsFunc(r.command.Path, func(step *kong.Path) bool { return step.Flag != nil && step.Flag.Name == flag })
}

// Parser reads command lines of one grammar.
type Parser struct {
	kong     *kong.Kong
	common   common
	settings map[*kong.Flag]*setting
	plain    map[*kong.Flag]*setting // flags that are no settings, which nothing else can give
	// given are the problems of flags on the command line, as kong finds them.
	given map[*kong.Flag]string
	// lookup is os.LookupEnv.
	lookup func(string) (string, bool)
	// environ is os.Environ.
	environ func() []string
}

// New returns a parser of grammar, a kong struct.
func New(grammar any, options ...kong.Option) (*Parser, error) {
	p := &Parser{settings: map[*kong.Flag]*setting{}, plain: map[*kong.Flag]*setting{}, given: map[*kong.Flag]string{}, lookup: os.LookupEnv, environ: os.Environ}
	options = append(slices.Clone(options), kong.Embed(&p.common), kong.ValueFormatter(p.help), kong.Bind(p))
	var err error
	if p.kong, err = kong.New(grammar, options...); err != nil {
		return nil, err
	}
	err = kong.Visit(p.kong.Model.Node, func(v kong.Visitable, next kong.Next) error {
		node, is := v.(*kong.Node)
		if app, isApp := v.(*kong.Application); isApp {
			node, is = app.Node, true
		}
		if !is {
			return next(nil)
		}
		if node.Tag.Has("settings") && !slices.Contains(Commands, node.Name) {
			return fmt.Errorf("command %s has settings, and config.Commands does not name it", node.Name)
		}
		for _, flag := range node.Flags {
			if err := p.adopt(node, flag); err != nil {
				return err
			}
		}
		return next(nil)
	})
	return p, err
}

// adopt makes a flag a setting: every flag of a command with settings, and
// elsewhere those that have a variable.
func (p *Parser) adopt(node *kong.Node, flag *kong.Flag) error {
	if len(flag.Tag.Envs) == 0 && !node.Tag.Has("settings") || flag.Name == "help" {
		return p.adoptPlain(flag)
	}
	s, err := newSetting(flag)
	if err != nil {
		return err
	}
	p.settings[flag] = s
	flag.Mapper = collector{s, p.given}
	return nil
}

// collector reads a value of the command line and notes what is wrong with it,
// where kong would end.
type collector struct {
	setting *setting
	given   map[*kong.Flag]string
}

// Decode implements kong.Mapper.
func (c collector) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	token := ctx.Scan.Peek()
	err := c.setting.parse.Decode(ctx, target)
	switch {
	case err == nil:
		return nil
	case lacksValue(token):
		return c.setting.lacking(token)
	}
	c.given[c.setting.flag] = c.setting.complaint([]string{fmt.Sprint(token.Value)}, err)
	return nil
}

// adoptPlain has a flag that is no setting checked and complained of like one,
// as far as what it takes can be said; kong would speak of "a valid 64 bit int".
func (p *Parser) adoptPlain(flag *kong.Flag) error {
	rule, err := parseRule(flag.Tag.Get("check"))
	if err != nil {
		return fmt.Errorf("--%s: %w", flag.Name, err)
	}
	if flag.Enum != "" {
		rule = oneOf(flag.EnumSlice()) // which kong checks first
	}
	s := &setting{name: flag.Name, flag: flag, parse: parser(flag), rule: rule}
	p.plain[flag] = s
	// A wrapped mapper of a boolean would ask for a value.
	if flag.IsBool() {
		return nil
	}
	flag.Mapper = kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		token := ctx.Scan.Peek()
		err := s.parse.Decode(ctx, target)
		switch {
		case err == nil:
			return nil
		case lacksValue(token):
			return s.lacking(token)
		case s.accepts() == "" || flag.IsSlice():
			return err
		}
		return errors.New(s.complaint([]string{fmt.Sprint(token.Value)}, err))
	})
	return nil
}

// lacksValue says that a flag is given without its value, a matter of the
// command line.
func lacksValue(token kong.Token) bool {
	return token.IsEOL() || token.InferredType().IsAny(kong.FlagToken, kong.ShortFlagToken)
}

// help is kong's formatter of a flag's help.
func (p *Parser) help(v *kong.Value) string {
	if s := p.settings[v.Flag]; s != nil {
		return s.help()
	}
	return kong.DefaultHelpValueFormatter(v)
}

// Command is a command line that was read.
type Command struct {
	*kong.Context
	// Prints says that the command only shows its settings; see Print.
	Prints bool

	parser   *Parser
	file     *file
	origins  map[*kong.Flag]origin
	refused  map[*kong.Flag]bool // one problem of each is enough
	problems Problems
}

// Parse reads a command line and the settings that come with it. The error is
// Problems if settings are wrong, and kong's if the command line is.
func (p *Parser) Parse(args []string) (*Command, error) {
	clear(p.given)
	for i, arg := range args {
		if !utf8.ValidString(arg) { // kong would alter it
			return nil, fmt.Errorf("argument %d, %q, %s", i+1, arg, noText)
		}
	}
	ctx, err := p.kong.Parse(args)
	if err != nil {
		return nil, err
	}
	c := &Command{
		Context: ctx, Prints: p.common.PrintConfig, parser: p,
		origins: map[*kong.Flag]origin{}, refused: map[*kong.Flag]bool{},
	}
	flags := c.flags()
	c.resolve(p.configFlag())
	c.readFile()
	for _, flag := range flags {
		c.resolve(flag)
	}
	c.checkPlain()
	// A file that cannot be read may give what a check would miss.
	if c.file == nil || c.file.readable {
		c.crossCheck()
	}
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return c, nil
}

// flags are the command's settings, in the order of its help.
func (c *Command) flags() []*kong.Flag {
	var flags []*kong.Flag
	for _, flag := range c.Flags() {
		if c.parser.settings[flag] != nil && flag != c.parser.configFlag() {
			flags = append(flags, flag)
		}
	}
	return flags
}

func (p *Parser) configFlag() *kong.Flag {
	for flag := range p.settings {
		if flag.Target.Addr().Interface() == any(&p.common.Config) {
			return flag
		}
	}
	return nil
}

// node is the command that was chosen, or the program, if it has but one.
func (c *Command) node() *kong.Node {
	return cmp.Or(c.Selected(), c.parser.kong.Model.Node)
}

// checkPlain refuses values out of range of flags that are no settings.
func (c *Command) checkPlain() {
	for _, flag := range c.Flags() {
		if s := c.parser.plain[flag]; s != nil {
			if text := s.violation(); text != "" {
				c.refuse(s.name, text)
			}
		}
	}
}

// resolve gives a flag the value of its best source, and checks it.
func (c *Command) resolve(flag *kong.Flag) {
	s := c.parser.settings[flag]
	values, from, problem := c.best(s)
	c.origins[flag] = from
	switch {
	case problem != "":
		c.refuse(s.name, problem)
		return
	case values != nil:
		if err := s.decode(values); err != nil {
			c.refuse(s.name, s.complaint(values, err))
			return
		}
	}
	if text := s.violation(); text != "" {
		c.refuse(s.name, text)
	}
}

// best finds the source of a setting that counts. Values are nil when the flag
// has its value already.
func (c *Command) best(s *setting) (values []string, from origin, problem string) {
	for _, step := range c.Path {
		if step.Flag == s.flag {
			return nil, origin{byFlag, "--" + s.name}, c.parser.given[s.flag]
		}
	}
	for _, name := range s.variables {
		v, set := c.parser.lookup(name)
		switch {
		case !set || v == "":
			continue
		case !utf8.ValidString(v):
			return nil, origin{byVariable, name}, "the value " + noText
		}
		return []string{v}, origin{byVariable, name}, ""
	}
	if e, ok := c.file.find(c.node().Name, s.name); ok {
		values := e.values
		if s.flag.IsSlice() {
			if slices.Contains(values, "") {
				e.problem = emptyEntry
			}
			values = slices.Clone(values)
			for i, v := range values {
				values[i] = escape(v, s.flag.Tag.Sep)
			}
		} else if len(values) != 1 && e.problem == "" {
			e.problem = "is a list; give one value"
		}
		return values, c.file.at(e.line), e.problem
	}
	return nil, origin{}, ""
}

const noText = "is not valid UTF-8"

// escape keeps an element of a list from being split: it is one already.
func escape(v string, separator rune) string {
	if separator == -1 {
		return v
	}
	return strings.ReplaceAll(v, string(separator), `\`+string(separator))
}

// refuse notes what is wrong with a setting, or with what the command line alone
// gives: a flag that is no setting, or an argument.
func (c *Command) refuse(name, complaint string) {
	p := Problem{Setting: name, Complaint: complaint, origin: c.given(name)}
	for flag, from := range c.origins {
		if flag.Name == name {
			if c.refused[flag] {
				return
			}
			c.refused[flag], p.origin = true, from
		}
	}
	c.problems = append(c.problems, p)
}

// given is where the command line has a value.
func (c *Command) given(name string) origin {
	for _, argument := range c.node().Positional {
		if argument.Name == name {
			return origin{byArgument, "<" + name + ">"}
		}
	}
	return origin{byFlag, "--" + name}
}

// crossCheck asks the command and what it is made of.
func (c *Command) crossCheck() {
	if checker, ok := c.node().Target.Addr().Interface().(Checker); ok {
		checker.Check(&Report{c})
	}
}

// readFile reads the file that --config names, and refuses keys that no command
// of this program has.
func (c *Command) readFile() {
	if c.parser.common.Config == "" || len(c.problems) > 0 {
		return
	}
	c.file = readFile(c.parser.common.Config)
	c.problems = append(c.problems, c.file.problems...)
	known := map[string][]string{} // settings by command
	var all []string
	_ = kong.Visit(c.parser.kong.Model.Node, func(v kong.Visitable, next kong.Next) error { // nothing in it fails
		if flag, is := v.(*kong.Flag); is && c.parser.settings[flag] != nil && flag != c.parser.configFlag() {
			all = append(all, flag.Name)
		}
		if node, is := v.(*kong.Node); is && node.Tag.Has("settings") {
			for _, flag := range node.Flags {
				known[node.Name] = append(known[node.Name], flag.Name)
			}
		}
		return next(nil)
	})
	known[""] = all
	for _, section := range append([]string{""}, Commands...) {
		if known[section] == nil {
			continue // another program's
		}
		for name, e := range c.file.sections[section] {
			if section == "" && slices.Contains(connection, name) {
				continue
			}
			if !slices.Contains(known[section], name) {
				c.problems = append(c.problems, Problem{Setting: fmt.Sprintf("%.80s", name), origin: c.file.at(e.line), Complaint: unknown(section, name, known[section])})
			}
		}
	}
	slices.SortStableFunc(c.problems, func(a, b Problem) int { return compareLines(c.file, a, b) })
}

// unknown says what to do about a key that is no setting.
func unknown(section, name string, known []string) string {
	text := "is no setting"
	if section != "" {
		text = "is no setting of " + section
	}
	if near := nearest(name, known); near != "" {
		return text + "; did you mean " + near + "?"
	}
	if section == "" {
		return text + "; delete it, or put what another program knows under its command's name (" + strings.Join(Commands, ", ") + ")"
	}
	return text + "; delete it, \"" + section + " --help\" lists those there are"
}

// find is what the file says about a setting of a command; nil says nothing.
func (f *file) find(command, name string) (entry, bool) {
	if f == nil {
		return entry{}, false
	}
	if e, ok := f.sections[command][name]; ok {
		return e, true
	}
	e, ok := f.sections[""][name]
	return e, ok
}

// compareLines orders the problems of a file as it does.
func compareLines(f *file, a, b Problem) int {
	line := func(p Problem) (n int) {
		_, _ = fmt.Sscanf(strings.TrimPrefix(p.origin.place, f.name+":"), "%d", &n) // 0 without one
		return n
	}
	return cmp.Compare(line(a), line(b))
}
