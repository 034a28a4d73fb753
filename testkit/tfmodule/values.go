package tfmodule

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// ReadValues reads a file of variable values (*.tfvars).
func ReadValues(text []byte) (map[string]cty.Value, error) {
	parsed, diags := hclsyntax.ParseConfig(text, "tfvars", hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	attributes, diags := parsed.Body.JustAttributes()
	if diags.HasErrors() {
		return nil, diags
	}
	values := map[string]cty.Value{}
	for name, attr := range attributes {
		v, diags := attr.Expr.Value(nil)
		if diags.HasErrors() {
			return nil, diags
		}
		values[name] = v
	}
	return values, nil
}
