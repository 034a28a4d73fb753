package tfmodule

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Files are a module's files and those it reads, by slash-separated path from a
// common root.
type Files map[string][]byte

// Module is a parsed module.
type Module struct {
	dir       string
	files     Files
	terraform []*hclsyntax.Block // settings: versions, backend
	variables map[string]*hclsyntax.Block
	locals    map[string]hclsyntax.Expression
	resources map[string]*hclsyntax.Block // by TYPE.NAME
	outputs   map[string]*hclsyntax.Block
}

// Parse reads the *.tf files directly in dir.
func Parse(files Files, dir string) (*Module, error) {
	m := &Module{
		dir: dir, files: files, variables: map[string]*hclsyntax.Block{}, locals: map[string]hclsyntax.Expression{},
		resources: map[string]*hclsyntax.Block{}, outputs: map[string]*hclsyntax.Block{},
	}
	for _, name := range sortedKeys(files) {
		if path.Dir(name) != dir || path.Ext(name) != ".tf" {
			continue
		}
		parsed, diags := hclsyntax.ParseConfig(files[name], name, hcl.InitialPos)
		if diags.HasErrors() {
			return nil, diags
		}
		for _, b := range parsed.Body.(*hclsyntax.Body).Blocks {
			if err := m.add(b); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

func (m *Module) add(b *hclsyntax.Block) error {
	into := map[string]map[string]*hclsyntax.Block{"variable": m.variables, "resource": m.resources, "output": m.outputs}[b.Type]
	switch b.Type {
	case "terraform", "provider":
		m.terraform = append(m.terraform, b)
		return nil
	case "locals":
		for name, attr := range b.Body.Attributes {
			if m.locals[name] != nil {
				return fmt.Errorf("%s: local.%s is there twice", attr.SrcRange, name)
			}
			m.locals[name] = attr.Expr
		}
		return nil
	case "variable", "resource", "output":
		name := strings.Join(b.Labels, ".")
		if into[name] != nil {
			return fmt.Errorf("%s: %s %s is there twice", b.TypeRange, b.Type, name)
		}
		into[name] = b
		return nil
	}
	return fmt.Errorf("%s: blocks of type %s are not understood", b.TypeRange, b.Type)
}

// Variables names the module's variables.
func (m *Module) Variables() []string { return sortedKeys(m.variables) }

// ProviderVersions returns the version constraint of each required provider, as
// written.
func (m *Module) ProviderVersions() map[string]string {
	versions := map[string]string{}
	for _, settings := range m.terraform {
		for _, b := range settings.Body.Blocks {
			if b.Type != "required_providers" {
				continue
			}
			for name, attr := range b.Body.Attributes {
				v, diags := attr.Expr.Value(nil)
				if !diags.HasErrors() {
					versions[name] = v.GetAttr("version").AsString()
				}
			}
		}
	}
	return versions
}

// inputs converts the given values to the variables' types, fills in defaults
// and checks every validation.
func (m *Module) inputs(given map[string]cty.Value) (cty.Value, error) {
	for name := range given {
		if m.variables[name] == nil {
			return cty.NilVal, fmt.Errorf("there is no variable %s", name)
		}
	}
	values := map[string]cty.Value{}
	var errs []error
	for _, name := range sortedKeys(m.variables) {
		body := m.variables[name].Body
		value, ok := given[name]
		if !ok {
			attr := body.Attributes["default"]
			if attr == nil {
				errs = append(errs, fmt.Errorf("variable %s has neither value nor default", name))
				continue
			}
			v, diags := attr.Expr.Value(nil)
			if diags.HasErrors() {
				return cty.NilVal, diags
			}
			value = v
		}
		kind := body.Attributes["type"]
		if kind == nil || body.Attributes["description"] == nil {
			return cty.NilVal, fmt.Errorf("variable %s needs a type and a description", name)
		}
		want, defaults, diags := typeexpr.TypeConstraintWithDefaults(kind.Expr)
		if diags.HasErrors() {
			return cty.NilVal, diags
		}
		if defaults != nil && !value.IsNull() {
			value = defaults.Apply(value)
		}
		converted, err := convert.Convert(value, want)
		if err != nil {
			errs = append(errs, fmt.Errorf("variable %s: %w", name, err))
			continue
		}
		values[name] = converted
	}
	if len(errs) > 0 {
		return cty.NilVal, errors.Join(errs...)
	}
	all := cty.ObjectVal(values)
	scope := m.scope()
	scope.Variables["var"] = all
	for _, name := range sortedKeys(m.variables) {
		for _, b := range m.variables[name].Body.Blocks {
			if err := validate(b, scope); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return all, errors.Join(errs...)
}

// validate checks one validation block.
func validate(b *hclsyntax.Block, scope *hcl.EvalContext) error {
	condition, message := b.Body.Attributes["condition"], b.Body.Attributes["error_message"]
	if b.Type != "validation" || condition == nil || message == nil {
		return fmt.Errorf("%s: not a validation with condition and error_message", b.TypeRange)
	}
	holds, diags := condition.Expr.Value(scope)
	if diags.HasErrors() {
		return diags
	}
	text, diags := message.Expr.Value(scope)
	if diags.HasErrors() {
		return diags
	}
	if holds.False() {
		return errors.New(text.AsString())
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
