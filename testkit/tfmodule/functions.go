package tfmodule

import (
	"encoding/json"
	"fmt"
	"path"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"go.yaml.in/yaml/v3"
)

// scope returns the functions and variables that every expression may use.
func (m *Module) scope() *hcl.EvalContext {
	return &hcl.EvalContext{
		Variables: map[string]cty.Value{"path": cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal(m.dir)})},
		Functions: map[string]function.Function{
			"abs": stdlib.AbsoluteFunc, "can": tryfunc.CanFunc, "ceil": stdlib.CeilFunc, "coalesce": stdlib.CoalesceFunc,
			"concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc, "distinct": stdlib.DistinctFunc,
			"flatten": stdlib.FlattenFunc, "floor": stdlib.FloorFunc, "format": stdlib.FormatFunc,
			"join": stdlib.JoinFunc, "jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc,
			"keys": stdlib.KeysFunc, "length": stdlib.LengthFunc, "lookup": stdlib.LookupFunc, "lower": stdlib.LowerFunc,
			"max": stdlib.MaxFunc, "merge": stdlib.MergeFunc, "min": stdlib.MinFunc, "range": stdlib.RangeFunc,
			"regex": stdlib.RegexFunc, "replace": replace, "setproduct": stdlib.SetProductFunc,
			"setunion": stdlib.SetUnionFunc, "slice": stdlib.SliceFunc, "split": stdlib.SplitFunc, "try": tryfunc.TryFunc, "upper": stdlib.UpperFunc,
			"values": stdlib.ValuesFunc,

			"alltrue": allTrue, "endswith": affix(func(text, end string) bool {
				return len(text) >= len(end) && text[len(text)-len(end):] == end
			}),
			"startswith": affix(func(text, start string) bool { return len(text) >= len(start) && text[:len(start)] == start }),
			"tonumber":   to(cty.Number), "tostring": to(cty.String), "toset": toSet,
			"file": m.file(), "yamldecode": yamlDecode,
		},
	}
}

// file reads one of the module's files.
func (m *Module) file() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}}, Type: function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name := path.Clean(args[0].AsString())
			content, ok := m.files[name]
			if !ok {
				return cty.NilVal, fmt.Errorf("there is no file %s", name)
			}
			return cty.StringVal(string(content)), nil
		},
	})
}

// yamlDecode decodes YAML that has an equivalent in JSON.
var yamlDecode = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "text", Type: cty.String}},
	Type: func(args []cty.Value) (cty.Type, error) {
		text, err := yamlToJSON(args[0].AsString())
		if err != nil {
			return cty.NilType, err
		}
		return ctyjson.ImpliedType(text)
	},
	Impl: func(args []cty.Value, want cty.Type) (cty.Value, error) {
		text, err := yamlToJSON(args[0].AsString())
		if err != nil {
			return cty.NilVal, err
		}
		return ctyjson.Unmarshal(text, want)
	},
})

func yamlToJSON(text string) ([]byte, error) {
	var content any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		return nil, err
	}
	return json.Marshal(content)
}

var allTrue = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}}, Type: function.StaticReturnType(cty.Bool),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		for _, v := range args[0].AsValueSlice() {
			if v.False() {
				return cty.False, nil
			}
		}
		return cty.True, nil
	},
})

func affix(has func(text, part string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: "part", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(has(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

// replace treats text between slashes as a regular expression, else as plain text.
var replace = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: "old", Type: cty.String}, {Name: "new", Type: cty.String}},
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if old := args[1].AsString(); len(old) > 1 && old[0] == '/' && old[len(old)-1] == '/' {
			return stdlib.RegexReplace(args[0], cty.StringVal(old[1:len(old)-1]), args[2])
		}
		return stdlib.Replace(args[0], args[1], args[2])
	},
})

func to(want cty.Type) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType}}, Type: function.StaticReturnType(want),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return convert.Convert(args[0], want) },
	})
}

// toSet converts a list or tuple to a set, as Terraform does: to the one type that all
// elements can be converted to.
var toSet = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
	Type: func(args []cty.Value) (cty.Type, error) {
		v, err := convert.Convert(args[0], cty.Set(cty.DynamicPseudoType))
		if err != nil {
			return cty.NilType, err
		}
		return v.Type(), nil
	},
	Impl: func(args []cty.Value, want cty.Type) (cty.Value, error) { return convert.Convert(args[0], want) },
})
