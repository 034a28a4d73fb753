package tfmodule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Block is an evaluated block: a resource instance, or a block within one.
type Block struct {
	Attributes map[string]cty.Value
	Blocks     map[string][]Block
}

// Text returns a string attribute; "" if it is absent, null or unknown.
func (b Block) Text(name string) string {
	v, ok := b.Attributes[name]
	if !ok || v.IsNull() || !v.IsKnown() || v.Type() != cty.String {
		return ""
	}
	return v.AsString()
}

// Only returns the one block of a type; its second result is false unless there is
// exactly one.
func (b Block) Only(name string) (Block, bool) {
	if len(b.Blocks[name]) != 1 {
		return Block{}, false
	}
	return b.Blocks[name][0], true
}

// Instance is one resource that the module would create.
type Instance struct {
	Type, Name string
	Key        string // of for_each, or the number of count; "" without either
	Block
}

// Address names an instance as Terraform does.
func (i Instance) Address() string {
	if i.Key == "" {
		return i.Type + "." + i.Name
	}
	return fmt.Sprintf("%s.%s[%q]", i.Type, i.Name, i.Key)
}

// Plan is everything the module would create.
type Plan struct {
	Instances []Instance
	Outputs   map[string]cty.Value
}

// Of lists the instances of a resource type.
func (p *Plan) Of(kind string) []Instance {
	var list []Instance
	for _, i := range p.Instances {
		if i.Type == kind {
			list = append(list, i)
		}
	}
	return list
}

// Computed returns the attributes that a provider adds to a resource's configuration.
// Their values may be unknown.
type Computed func(kind string, config map[string]cty.Value) map[string]cty.Value

// Evaluate plans the module for given variables. Resources refer to each other's
// configuration and to what computed adds.
func (m *Module) Evaluate(given map[string]cty.Value, computed Computed) (*Plan, error) {
	inputs, err := m.inputs(given)
	if err != nil {
		return nil, err
	}
	e := &evaluation{module: m, computed: computed, scope: m.scope(), locals: map[string]cty.Value{}, resources: map[string]map[string]cty.Value{}}
	e.scope.Variables["var"] = inputs
	if err := e.all(); err != nil {
		return nil, err
	}
	e.plan.Outputs = map[string]cty.Value{}
	for name, b := range m.outputs {
		v, err := e.value(b.Body.Attributes["value"].Expr)
		if err != nil {
			return nil, err
		}
		e.plan.Outputs[name] = v
	}
	return &e.plan, nil
}

// evaluation is one run over a module.
type evaluation struct {
	module    *Module
	computed  Computed
	scope     *hcl.EvalContext
	locals    map[string]cty.Value
	resources map[string]map[string]cty.Value // by type, then name
	plan      Plan
}

// all evaluates locals and resources, each after what it refers to.
func (e *evaluation) all() error {
	var waiting []string
	for name := range e.module.locals {
		waiting = append(waiting, "local."+name)
	}
	for name := range e.module.resources {
		waiting = append(waiting, name)
	}
	slices.Sort(waiting)
	for len(waiting) > 0 {
		var later []string
		for _, name := range waiting {
			needs := e.needs(name)
			if slices.ContainsFunc(needs, func(n string) bool { return slices.Contains(waiting, n) && n != name }) {
				later = append(later, name)
				continue
			}
			if err := e.one(name); err != nil {
				return err
			}
		}
		if len(later) == len(waiting) {
			return fmt.Errorf("these refer to each other in a circle: %s", strings.Join(later, ", "))
		}
		// The names left over may have waited for those evaluated in this round.
		waiting = later
	}
	return nil
}

// needs lists the locals and resources that a name's expressions refer to.
func (e *evaluation) needs(name string) []string {
	var traversals []hcl.Traversal
	if local, ok := strings.CutPrefix(name, "local."); ok {
		traversals = e.module.locals[local].Variables()
	} else {
		traversals = references(e.module.resources[name].Body)
	}
	var list []string
	for _, t := range traversals {
		if len(t) < 2 {
			continue
		}
		if step, ok := t[1].(hcl.TraverseAttr); ok {
			list = append(list, t.RootName()+"."+step.Name)
		}
	}
	return list
}

// references lists what the expressions of a body and of its blocks refer to.
func references(body *hclsyntax.Body) []hcl.Traversal {
	var list []hcl.Traversal
	for _, attr := range body.Attributes {
		list = append(list, attr.Expr.Variables()...)
	}
	for _, b := range body.Blocks {
		list = append(list, references(b.Body)...)
	}
	return list
}

func (e *evaluation) one(name string) error {
	if local, ok := strings.CutPrefix(name, "local."); ok {
		v, err := e.value(e.module.locals[local])
		if err != nil {
			return err
		}
		e.locals[local] = v
		e.scope.Variables["local"] = cty.ObjectVal(e.locals)
		return nil
	}
	b := e.module.resources[name]
	if len(b.Labels) != 2 {
		return fmt.Errorf("%s: a resource has a type and a name", b.TypeRange)
	}
	v, err := e.resource(b)
	if err != nil {
		return err
	}
	kind := b.Labels[0]
	if e.resources[kind] == nil {
		e.resources[kind] = map[string]cty.Value{}
	}
	e.resources[kind][b.Labels[1]] = v
	e.scope.Variables[kind] = cty.ObjectVal(e.resources[kind])
	return nil
}

// value evaluates an expression in the module's own scope.
func (e *evaluation) value(expr hclsyntax.Expression) (cty.Value, error) {
	v, diags := expr.Value(e.scope)
	if diags.HasErrors() {
		return cty.NilVal, diags
	}
	return v, nil
}

// resource evaluates all instances of a resource and returns how others see it.
func (e *evaluation) resource(b *hclsyntax.Block) (cty.Value, error) {
	repeat, count := b.Body.Attributes["for_each"], b.Body.Attributes["count"]
	switch {
	case repeat != nil:
		over, err := e.value(repeat.Expr)
		if err != nil {
			return cty.NilVal, err
		}
		if t := over.Type(); !t.IsMapType() && !t.IsObjectType() && !t.IsSetType() {
			return cty.NilVal, fmt.Errorf("%s: for_each is %s; it takes a map or a set of strings", repeat.SrcRange, t.FriendlyName())
		}
		seen := map[string]cty.Value{}
		for it := over.ElementIterator(); it.Next(); {
			key, value := it.Element()
			if key.Type() != cty.String {
				return cty.NilVal, fmt.Errorf("%s: for_each has the key %#v; keys are strings", repeat.SrcRange, key)
			}
			scope := e.scope.NewChild()
			scope.Variables = map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": key, "value": value})}
			v, err := e.instance(b, key.AsString(), scope)
			if err != nil {
				return cty.NilVal, err
			}
			seen[key.AsString()] = v
		}
		return cty.ObjectVal(seen), nil
	case count != nil:
		number, err := e.value(count.Expr)
		if err != nil {
			return cty.NilVal, err
		}
		n, _ := number.AsBigFloat().Int64()
		var seen []cty.Value
		for i := range n {
			scope := e.scope.NewChild()
			scope.Variables = map[string]cty.Value{"count": cty.ObjectVal(map[string]cty.Value{"index": cty.NumberIntVal(i)})}
			v, err := e.instance(b, fmt.Sprint(i), scope)
			if err != nil {
				return cty.NilVal, err
			}
			seen = append(seen, v)
		}
		return cty.TupleVal(seen), nil
	}
	return e.instance(b, "", e.scope)
}

// metaArguments are Terraform's own, not the resource's.
var metaArguments = []string{"for_each", "count", "depends_on", "provider"}

func (e *evaluation) instance(b *hclsyntax.Block, key string, scope *hcl.EvalContext) (cty.Value, error) {
	body := *b.Body
	body.Attributes = maps.Clone(body.Attributes)
	for _, name := range metaArguments {
		attr := body.Attributes[name]
		delete(body.Attributes, name)
		if name != "depends_on" || attr == nil {
			continue
		}
		for _, t := range attr.Expr.Variables() {
			if target := t.RootName() + "." + t[1].(hcl.TraverseAttr).Name; e.module.resources[target] == nil {
				return cty.NilVal, fmt.Errorf("%s: depends_on names %s, which does not exist", attr.SrcRange, target)
			}
		}
	}
	evaluated, err := evaluateBody(&body, scope)
	if err != nil {
		return cty.NilVal, err
	}
	delete(evaluated.Blocks, "lifecycle")
	e.plan.Instances = append(e.plan.Instances, Instance{Type: b.Labels[0], Name: b.Labels[1], Key: key, Block: evaluated})
	seen := maps.Clone(evaluated.Attributes)
	maps.Copy(seen, e.computed(b.Labels[0], evaluated.Attributes))
	return cty.ObjectVal(seen), nil
}

func evaluateBody(body *hclsyntax.Body, scope *hcl.EvalContext) (Block, error) {
	out := Block{Attributes: map[string]cty.Value{}, Blocks: map[string][]Block{}}
	for name, attr := range body.Attributes {
		v, diags := attr.Expr.Value(scope)
		if diags.HasErrors() {
			return Block{}, diags
		}
		out.Attributes[name] = v
	}
	for _, b := range body.Blocks {
		if b.Type == "dynamic" {
			if err := expand(b, scope, &out); err != nil {
				return Block{}, err
			}
			continue
		}
		inner, err := evaluateBody(b.Body, scope)
		if err != nil {
			return Block{}, err
		}
		out.Blocks[b.Type] = append(out.Blocks[b.Type], inner)
	}
	return out, nil
}

// expand evaluates a dynamic block into the blocks that it generates.
func expand(b *hclsyntax.Block, scope *hcl.EvalContext, out *Block) error {
	repeat := b.Body.Attributes["for_each"]
	if len(b.Labels) != 1 || repeat == nil || len(b.Body.Blocks) != 1 || b.Body.Blocks[0].Type != "content" {
		return fmt.Errorf("%s: a dynamic block has one label, for_each and content", b.TypeRange)
	}
	kind := b.Labels[0]
	over, diags := repeat.Expr.Value(scope)
	if diags.HasErrors() {
		return diags
	}
	if !over.CanIterateElements() {
		return fmt.Errorf("%s: for_each of %s cannot be iterated", repeat.SrcRange, kind)
	}
	for it := over.ElementIterator(); it.Next(); {
		key, value := it.Element()
		inner := scope.NewChild()
		inner.Variables = map[string]cty.Value{kind: cty.ObjectVal(map[string]cty.Value{"key": key, "value": value})}
		content, err := evaluateBody(b.Body.Blocks[0].Body, inner)
		if err != nil {
			return err
		}
		out.Blocks[kind] = append(out.Blocks[kind], content)
	}
	return nil
}
