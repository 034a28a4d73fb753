package config

import (
	"encoding"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// Print writes the effective settings as a file that gives the same settings, with
// the origin of each. Secrets are left out.
func (c *Command) Print(w io.Writer) error {
	mapping := &yaml.Node{Kind: yaml.MappingNode, HeadComment: "The settings of \"" + c.parser.node(c.Context).FullPath() + "\"."}
	var hidden []string
	for _, s := range c.settings() {
		flag, from := s.flag, c.origins[s]
		if !c.parser.inFile(s) {
			continue
		}
		if s.secret {
			state := "not set"
			if !flag.Target.IsZero() {
				state = "hidden, from " + from.String()
			}
			hidden = append(hidden, s.name+": "+state)
			continue
		}
		var value yaml.Node
		if err := value.Encode(plain(flag.Target)); err != nil {
			return fmt.Errorf("print %s: %w", s.name, err)
		}
		key := yaml.Node{Kind: yaml.ScalarNode, Value: s.name}
		if value.Kind == yaml.SequenceNode {
			value.Style = yaml.FlowStyle
		}
		value.LineComment = from.String()
		mapping.Content = append(mapping.Content, &key, &value)
	}
	mapping.FootComment = strings.Join(hidden, "\n")
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(mapping); err != nil {
		return err
	}
	return encoder.Close()
}

// plain converts a value to what YAML writes and the parser reads.
func plain(v reflect.Value) any {
	switch {
	case v.Type() == durationType:
		return fmt.Sprint(v.Interface())
	case v.Kind() == reflect.Slice:
		list := []any{}
		for i := range v.Len() {
			list = append(list, plain(v.Index(i)))
		}
		return list
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		if text, err := m.MarshalText(); err == nil {
			return string(text)
		}
	}
	if v.Kind() == reflect.String {
		return withoutPassword(v.String())
	}
	return v.Interface()
}

// printReference writes all settings of all commands as a Markdown table.
func (p *Parser) printReference(w io.Writer) {
	type row struct {
		setting  *setting
		commands []string
		defaults []string // of each command
	}
	var rows []*row
	_ = p.visitNodes(func(node *kong.Node) error { // which fails only if this does
		if !node.Tag.Has("settings") {
			return nil
		}
		for _, flag := range node.Flags {
			s := p.settings[flag]
			if s == nil || flag.Hidden {
				continue
			}
			i := slices.IndexFunc(rows, func(r *row) bool {
				return r.setting.name == s.name && r.setting.flag.Help == s.flag.Help && r.setting.accepts() == s.accepts()
			})
			if i < 0 {
				i = len(rows)
				rows = append(rows, &row{setting: s})
			}
			rows[i].commands = append(rows[i].commands, node.Name)
			rows[i].defaults = append(rows[i].defaults, flag.Default)
		}
		return nil
	})
	fmt.Fprintf(w, "| setting | of | default | accepts | variables | meaning |\n|-|-|-|-|-|-|\n")
	for _, r := range rows {
		s := r.setting
		fmt.Fprintf(w, "| `%s` | %s | %s | %s | `%s` | %s |\n", s.name, strings.Join(r.commands, ", "),
			cell(defaults(r.commands, r.defaults)), cell(s.accepts()), strings.Join(s.variables, "`, `"), cell(s.flag.Help))
	}
}

// defaults shows the common default, or each command's.
func defaults(commands, values []string) string {
	shown := func(v string) string {
		if v == "" {
			return ""
		}
		return "`" + v + "`"
	}
	if len(slices.Compact(slices.Clone(values))) == 1 {
		return shown(values[0])
	}
	var all []string
	for i, command := range commands {
		all = append(all, command+": "+shown(values[i]))
	}
	return strings.Join(all, ", ")
}

// cell escapes text for a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
