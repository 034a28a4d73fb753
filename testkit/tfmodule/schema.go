package tfmodule

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Schema describes a version of a provider: which attributes and blocks its resources
// have, and which are required.
type Schema struct {
	Provider, Version string
	Resources         map[string]BlockSchema
}

// BlockSchema is the schema of a resource or of a block within one.
type BlockSchema struct {
	Required, Optional []string // attributes
	Blocks             map[string]BlockSchema
	Min                int // minimum number of these blocks
}

// ReadSchema reads a schema from JSON.
func ReadSchema(text []byte) (*Schema, error) {
	var s Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &s, nil
}

// Check lists what the provider would reject in a plan, one line each.
func (s *Schema) Check(p *Plan) []string {
	var problems []string
	for _, i := range p.Instances {
		schema, ok := s.Resources[i.Type]
		if !ok {
			problems = append(problems, fmt.Sprintf("%s: %s %s has no such resource", i.Address(), s.Provider, s.Version))
			continue
		}
		problems = append(problems, schema.check(i.Address(), i.Block)...)
	}
	return problems
}

func (s BlockSchema) check(where string, b Block) []string {
	var problems []string
	for _, name := range s.Required {
		if v, ok := b.Attributes[name]; !ok || v.IsNull() {
			problems = append(problems, fmt.Sprintf("%s: %s is missing", where, name))
		}
	}
	for _, name := range sortedKeys(b.Attributes) {
		if !slices.Contains(s.Required, name) && !slices.Contains(s.Optional, name) {
			problems = append(problems, fmt.Sprintf("%s: there is no argument %s", where, name))
		}
	}
	for _, name := range sortedKeys(s.Blocks) {
		if len(b.Blocks[name]) < s.Blocks[name].Min {
			problems = append(problems, fmt.Sprintf("%s: block %s is missing", where, name))
		}
	}
	for _, name := range sortedKeys(b.Blocks) {
		inner, ok := s.Blocks[name]
		if !ok {
			problems = append(problems, fmt.Sprintf("%s: there is no block %s", where, name))
			continue
		}
		for _, block := range b.Blocks[name] {
			problems = append(problems, inner.check(where+"."+name, block)...)
		}
	}
	return problems
}
