package input

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML returns the top node of a document whose mappings give each key once; nil if there
// is none. If a key is given twice, it returns both the node and the problems.
func YAML(data []byte) (*yaml.Node, error) {
	text, err := Text(data)
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, whole("is not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, whole("holds more than one YAML document; keep one")
	}
	top := document.Content[0]
	if deeper(top, MaxDepth) {
		return nil, whole("is nested deeper than %d levels", MaxDepth)
	}
	return top, repeatedKeys(top).err()
}

// deeper reports whether a node has more than most levels.
func deeper(n *yaml.Node, most int) bool {
	if most == 0 && (n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode) {
		return true
	}
	for _, inner := range n.Content {
		if deeper(inner, most-1) {
			return true
		}
	}
	return false
}

func repeatedKeys(n *yaml.Node) (problems Problems) {
	var keys []name
	for i, inner := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && inner.Kind == yaml.ScalarNode {
			keys = append(keys, newName(inner.Value, inner.Line))
		}
		problems = append(problems, repeatedKeys(inner)...)
	}
	repeated(keys, func(key name, text string) {
		problems = append(problems, Problem{Line: key.where, Text: text})
	})
	return problems
}
