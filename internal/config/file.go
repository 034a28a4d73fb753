package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"github.com/dronefleet/dronefleet/internal/input"
)

// maxFileBytes is far more than all settings take.
const maxFileBytes = 1 << 20

// Commands lists the commands, of all programs of this project, that have a section
// of their own in a file. A program ignores the sections of the others.
var Commands = []string{"serve", "dev", "emulators", "fleet", "run", "once", "link", "mqtt"}

// connection lists settings that nearly every command has. A file for all programs
// may have them at the top, although "dronefleet dev" starts its own servers.
var connection = []string{"project", "database", "firestore-host", "pubsub-host"}

// entry is what a file says about a key.
type entry struct {
	values  []any // strings, of which a scalar has one; kong takes a list in this form
	line    int
	problem string // why there are no values
}

// file is a configuration file: its entries by section and key. The section "" is
// for all commands.
type file struct {
	name       string
	sections   map[string]map[string]entry
	problems   Problems
	unreadable bool // none of its settings could be read
}

func (f *file) at(line int) origin { return origin{"file " + f.name, line} }

func (f *file) refuse(line int, setting, format string, args ...any) {
	f.problems = append(f.problems, Problem{Setting: setting, origin: f.at(line), Complaint: fmt.Sprintf(format, args...)})
}

// readFile reads what it can of a file and notes the problems.
func readFile(name string) *file {
	f := &file{name: name, sections: map[string]map[string]entry{}}
	text, err := input.File(name, maxFileBytes)
	if problems, is := errors.AsType[input.Problems](err); is {
		return f.fail(0, "%s", problems)
	} else if err != nil {
		return f.fail(0, "cannot be read: %s; give the name of a YAML file", err)
	}
	top, err := input.YAML(text)
	switch problems, _ := errors.AsType[input.Problems](err); {
	case top == nil && problems == nil: // an empty file says nothing
		return f
	case top == nil:
		return f.fail(0, "%s", problems)
	default:
		for _, p := range problems {
			f.refuse(p.Line, "", "%s", p.Text)
		}
	}
	top = resolved(top)
	switch {
	case isNull(top):
	case top.Kind == yaml.MappingNode:
		f.read("", top)
	default:
		return f.fail(top.Line, "is not a mapping; give lines such as \"project: my-project\"")
	}
	return f
}

// fail refuses the file as a whole.
func (f *file) fail(line int, format string, args ...any) *file {
	f.unreadable = true
	f.refuse(line, "", format, args...)
	return f
}

// read reads the keys of a mapping into a section.
func (f *file) read(section string, mapping *yaml.Node) {
	entries := map[string]entry{}
	f.sections[section] = entries
	for pair := range slices.Chunk(mapping.Content, 2) {
		key, value := pair[0], resolved(pair[1])
		name := key.Value
		if key.Kind != yaml.ScalarNode {
			f.refuse(key.Line, "", "a key is not a string; give the name of a setting")
			continue
		}
		if _, again := entries[name]; again { // refused already
			continue
		}
		if section == "" && slices.Contains(Commands, name) {
			switch {
			case value.Kind == yaml.MappingNode:
				f.read(name, value)
			case isNull(value):
				f.sections[name] = nil
			default:
				f.refuse(key.Line, name, "is not a mapping; give the command's settings below it, indented")
			}
			continue
		}
		entries[name] = entryOf(key.Line, value)
	}
}

// entryOf reads the value of a key: a scalar, or a list of scalars.
func entryOf(line int, value *yaml.Node) entry {
	e := entry{line: line}
	switch {
	case isNull(value):
		e.problem = "has no value; give one or delete the line"
	case value.Kind == yaml.ScalarNode:
		e.values = []any{value.Value}
	case value.Kind == yaml.SequenceNode:
		e.values = []any{}
		for _, item := range value.Content {
			if item = resolved(item); item.Kind != yaml.ScalarNode || isNull(item) {
				return entry{line: line, problem: "has an entry that is neither a string nor a number; give those only"}
			}
			e.values = append(e.values, item.Value)
		}
	default:
		e.problem = "is a mapping; give one value"
	}
	return e
}

// resolved follows an alias to its anchor.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// find returns what the file says about a setting of a command.
func (f *file) find(command, name string) (entry, bool) {
	if e, ok := f.sections[command][name]; ok {
		return e, true
	}
	e, ok := f.sections[""][name]
	return e, ok
}

// checkKeys refuses keys that no command of this program has.
func (f *file) checkKeys(p *Parser) {
	known := map[string][]string{"": nil}          // settings by command
	_ = p.visitNodes(func(node *kong.Node) error { // which fails only if this does
		for _, flag := range node.Flags {
			if s := p.settings[flag]; s != nil && p.inFile(s) {
				known[""] = append(known[""], s.name)
				if node.Tag.Has("settings") {
					known[node.Name] = append(known[node.Name], s.name)
				}
			}
		}
		return nil
	})
	for section, names := range known { // others are another program's
		for name, e := range f.sections[section] {
			if !slices.Contains(names, name) && (section != "" || !slices.Contains(connection, name)) {
				f.refuse(e.line, fmt.Sprintf("%.80s", name), "%s", unknown(section, name, names))
			}
		}
	}
	slices.SortStableFunc(f.problems, func(a, b Problem) int { return cmp.Compare(a.origin.line, b.origin.line) })
}

// unknown is the problem of a key that is not a setting.
func unknown(section, name string, known []string) string {
	text := "unknown setting"
	if section != "" {
		text += " of " + section
	}
	if near := input.Nearest(name, known); near != "" {
		return text + "; did you mean " + near + "?"
	}
	if section == "" {
		return text + "; delete it, or move it below the command it belongs to (" + strings.Join(Commands, ", ") + ")"
	}
	return text + "; delete it, or see \"" + section + " --help\" for the valid ones"
}
