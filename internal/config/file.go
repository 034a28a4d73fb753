package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"
)

// maxFileBytes is far more than all settings take.
const maxFileBytes = 1 << 20

// Commands are the commands that have settings of their own in a file, of all
// the project's programs: each leaves the others' alone.
var Commands = []string{"serve", "dev", "emulators", "run", "once"}

// connection are settings that nearly every command has. A file may give them on
// top for all programs, although "dronefleet dev" brings its own servers.
var connection = []string{"project", "database", "firestore-host", "pubsub-host"}

// entry is a key of a file with its values, of which only a list has not one.
type entry struct {
	values  []string
	line    int
	problem string // why there are no values
}

// file is a configuration file. What it says for one command is in sections,
// what it says for all under "".
type file struct {
	name     string
	sections map[string]map[string]entry
	problems Problems
	readable bool // as settings, though some may be wrong
}

func (f *file) at(line int) origin {
	if line == 0 {
		return origin{byFile, f.name}
	}
	return origin{byFile, fmt.Sprintf("%s:%d", f.name, line)}
}

func (f *file) refuse(line int, setting, format string, args ...any) {
	f.problems = append(f.problems, Problem{Setting: setting, origin: f.at(line), Complaint: fmt.Sprintf(format, args...)})
}

// readFile reads a file as far as it can be read.
func readFile(name string) *file {
	f := &file{name: name, sections: map[string]map[string]entry{}}
	text, err := readBounded(name)
	if err != nil {
		f.refuse(0, "", "%s", err)
		return f
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF): // an empty file says nothing
		f.readable = true
		return f
	case err != nil:
		f.refuse(0, "", "is no YAML: %s", err)
		return f
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		f.refuse(0, "", "holds more than one document; give one")
	}
	top := resolved(document.Content[0])
	f.readable = isNull(top) || top.Kind == yaml.MappingNode
	if isNull(top) {
		return f
	}
	if top.Kind != yaml.MappingNode {
		f.refuse(top.Line, "", "is no mapping; give lines such as \"project: my-project\"")
		return f
	}
	f.read("", top)
	return f
}

func readBounded(name string) ([]byte, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w; give the name of a YAML file", err)
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot be read: %w; give the name of a YAML file", err)
	case len(text) > maxFileBytes:
		return nil, fmt.Errorf("has more than %d bytes; this is no configuration", maxFileBytes)
	}
	return text, nil
}

// read takes the keys of a mapping into a section.
func (f *file) read(section string, mapping *yaml.Node) {
	entries := map[string]entry{}
	f.sections[section] = entries
	for pair := range slices.Chunk(mapping.Content, 2) {
		key, value := pair[0], resolved(pair[1])
		name := key.Value
		if key.Kind != yaml.ScalarNode {
			f.refuse(key.Line, "", "a key is no text; give the name of a setting")
			continue
		}
		_, again := entries[name]
		if _, other := f.sections[name]; again || section == "" && other && name != "" {
			f.refuse(key.Line, name, "is there more than once; give it once")
			continue
		}
		if section == "" && slices.Contains(Commands, name) {
			switch {
			case value.Kind == yaml.MappingNode:
				f.read(name, value)
			case isNull(value):
				f.sections[name] = nil
			default:
				f.refuse(key.Line, name, "is no mapping; give the command's settings below it, indented")
			}
			continue
		}
		entries[name] = entryOf(key.Line, value)
	}
}

// entryOf is the value of a key: one scalar, or a list of them.
func entryOf(line int, value *yaml.Node) entry {
	e := entry{line: line}
	switch {
	case isNull(value):
		e.problem = "has no value; give one or delete the line"
	case value.Kind == yaml.ScalarNode:
		e.values = []string{value.Value}
	case value.Kind == yaml.SequenceNode:
		e.values = []string{}
		for _, item := range value.Content {
			if item = resolved(item); item.Kind != yaml.ScalarNode || isNull(item) {
				return entry{line: line, problem: "is a list of something else than texts and numbers; give those"}
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
