package tfmodule_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/dronefleet/dronefleet/testkit/tfmodule"
)

// unknownID computes an id, which only a provider knows.
func unknownID(string, map[string]cty.Value) map[string]cty.Value {
	return map[string]cty.Value{"id": cty.UnknownVal(cty.String)}
}

func evaluate(t *testing.T, text string, values map[string]cty.Value) (*tfmodule.Plan, error) {
	t.Helper()
	m, err := tfmodule.Parse(tfmodule.Files{"m/main.tf": []byte(text), "m/list.yaml": []byte("names: [a, b]\n"), "other/x.tf": []byte("nonsense {")}, "m")
	if err != nil {
		return nil, err
	}
	return m.Evaluate(values, unknownID)
}

// The instances are those that Terraform would plan, whatever the order of the
// declarations.
func TestEvaluate_PlansInstances(t *testing.T) {
	p, err := evaluate(t, `
		output "second" { value = thing.each["b"].id }
		resource "thing" "each" {
			for_each = local.names
			name     = "${each.key}-${var.suffix}"
			part { of = thing.counted[1].name }
			dynamic "extra" {
				for_each = each.key == "a" ? [1, 2] : []
				content { n = extra.value }
			}
			depends_on = [thing.counted]
		}
		resource "thing" "counted" {
			count = 2
			name  = "c${count.index}"
		}
		resource "thing" "none" { count = 0 }
		locals { names = toset(yamldecode(file("${path.module}/list.yaml")).names) }
		variable "suffix" {
			description = "Ends names."
			type        = string
			default     = "x"
		}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range p.Of("thing") {
		names = append(names, i.Address()+"="+i.Text("name"))
	}
	slices.Sort(names)
	if want := []string{`thing.counted["0"]=c0`, `thing.counted["1"]=c1`, `thing.each["a"]=a-x`, `thing.each["b"]=b-x`}; !slices.Equal(names, want) {
		t.Errorf("planned %v, want %v", names, want)
	}
	for _, i := range p.Of("thing") {
		if part, ok := i.Only("part"); i.Name == "each" && (!ok || part.Text("of") != "c1") {
			t.Errorf("%s has part %+v", i.Address(), part)
		}
		if n := len(i.Blocks["extra"]); i.Key == "a" && n != 2 || i.Key != "a" && n != 0 {
			t.Errorf("%s has %d extras", i.Address(), n)
		}
	}
	if p.Outputs["second"].IsKnown() {
		t.Error("an output that only a provider knows is known")
	}
}

func TestEvaluate_RejectsWhatTerraformRejects(t *testing.T) {
	const variable = `
		variable "n" {
			description = "A number."
			type        = number
			validation {
				condition     = var.n > 1
				error_message = "n is too small"
			}
		}`
	number := func(n int64) map[string]cty.Value { return map[string]cty.Value{"n": cty.NumberIntVal(n)} }
	for _, c := range []struct {
		text, says string
		values     map[string]cty.Value
	}{
		{variable, "neither value nor default", nil},
		{variable, "n is too small", number(1)},
		{variable, "no variable m", map[string]cty.Value{"m": cty.True}},
		{variable, "variable n", map[string]cty.Value{"n": cty.StringVal("many")}},
		{variable + variable, "twice", number(2)},
		{`variable "v" { type = string }`, "a type and a description", map[string]cty.Value{"v": cty.True}},
		{`module "m" {}`, "not understood", nil},
		{`data "thing" "t" {}`, "not understood", nil},
		{`locals { a = local.b }
		  locals { b = local.a }`, "circle", nil},
		{`locals { a = 1 }
		  locals { a = 2 }`, "twice", nil},
		{`locals { a = local.nothing }`, "local", nil},
		{`locals { a = nothing("x") }`, "nothing", nil},
		{`locals { a = file("gone") }`, "no file gone", nil},
		{`resource "thing" "a" { name = thing.b.id }`, "thing", nil},
		{`resource "thing" "a" { depends_on = [thing.b] }`, "does not exist", nil},
		{`resource "thing" "a" { for_each = ["x"] }`, "for_each is tuple", nil},
		{`resource "thing" {}`, "a type and a name", nil},
		{`resource "thing" "a" {
			dynamic "b" { for_each = [1] }
		}`, "dynamic block", nil},
		{`resource "thing" "a" {`, "Unclosed", nil},
	} {
		if _, err := evaluate(t, c.text, c.values); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s\nerror %v, want %q", c.text, err, c.says)
		}
	}
}

func TestSchema_CheckListsWhatTheProviderRejects(t *testing.T) {
	s, err := tfmodule.ReadSchema([]byte(`{"provider": "p", "version": "1", "resources": {"thing": {
		"required": ["name"], "optional": ["size"], "blocks": {"part": {"min": 1, "required": ["of"]}, "extra": {}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		`resource "thing" "a" {
			name = "x"
			part { of = 1 }
			extra {}
		}`: nil,
		`resource "thing" "a" {
			name = null
			part {}
		}`: {"thing.a: name is missing", "thing.a.part: of is missing"},
		`resource "thing" "a" {
			name  = "x"
			weigh = 1
			other {}
		}`: {"thing.a: there is no argument weigh", "thing.a: block part is missing", "thing.a: there is no block other"},
		`resource "thin" "a" {}`: {"thin.a: p 1 has no such resource"},
	} {
		p, err := evaluate(t, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Check(p); !slices.Equal(got, want) {
			t.Errorf("%s\nproblems %q, want %q", text, got, want)
		}
	}
}
