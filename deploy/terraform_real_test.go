package deploy_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/dronefleet/dronefleet/testkit/longtest"
	"github.com/dronefleet/dronefleet/testkit/tfmodule"
)

// runTerraform runs Terraform in dir, with no configuration of this machine.
func runTerraform(t *testing.T, dir string, args ...string) string {
	t.Helper()
	binary, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("terraform is not installed")
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "TF_") }),
		"CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_DATA_DIR="+filepath.Join(t.TempDir(), "terraform"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("terraform %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Terraform itself, where it is installed, agrees on form.
func TestTerraform_IsFormatted(t *testing.T) {
	runTerraform(t, terraform, "fmt", "-check", "-diff", "-recursive", ".")
}

var planned = regexp.MustCompile(`Plan: (\d+) to add, 0 to change, 0 to destroy`)

// Terraform itself plans every way to deploy, with a built-in resource in place of each of
// Google's, whose provider needs a network. It accepts every expression, also while computed
// values are unknown, and creates as many resources as these tests expect.
func TestTerraform_PlansWithoutAProvider(t *testing.T) {
	longtest.Only(t, "runs terraform several times")
	files := deployFiles(t)
	dir := t.TempDir()
	for name, text := range files {
		if strings.HasPrefix(name, terraform+"/") {
			continue // the stand-in takes the module's place
		}
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	module := filepath.Join(dir, terraform)
	if err := os.MkdirAll(module, 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := standIn(files)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(module, "main.tf"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	runTerraform(t, module, "init", "-no-color", "-backend=false")
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			values, err := ctyjson.Marshal(cty.ObjectVal(way), cty.ObjectVal(way).Type())
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "values.tfvars.json")
			if err := os.WriteFile(file, values, 0o600); err != nil {
				t.Fatal(err)
			}
			out := runTerraform(t, module, "plan", "-no-color", "-refresh=false", "-state="+filepath.Join(t.TempDir(), "none"), "-var-file="+file)
			p, err := plan(files, way)
			if err != nil {
				t.Fatal(err)
			}
			if m := planned.FindStringSubmatch(out); m == nil || m[1] != strconv.Itoa(len(p.Instances)) {
				t.Errorf("terraform plans %v resources, these tests %d", m, len(p.Instances))
			}
		})
	}
}

var (
	googleReference = regexp.MustCompile(`\bgoogle_(\w+)\.(\w+)`)
	// An attribute of such a reference, or of one that a for expression names.
	googleAttribute = regexp.MustCompile(`(terraform_data\.google_\w+(?:\[(?:"[^"]*"|[^\]"]*(?:\[[^\]]*\])?)\])?|\baccount|\btopic)\.(?:id|name|member|email|secret_id|version|uri|repository_id)\b`)
)

// standIn is the module with terraform_data, which is built into Terraform, for
// each of Google's resources. It takes every expression of the resource as its
// input, but for what dynamic blocks hold; whatever Google makes up is its id.
func standIn(files tfmodule.Files) ([]byte, error) {
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if filepath.Dir(name) != terraform || filepath.Ext(name) != ".tf" {
			continue
		}
		parsed, diags := hclsyntax.ParseConfig(files[name], name, hcl.InitialPos)
		if diags.HasErrors() {
			return nil, diags
		}
		text := func(r hcl.Range) string {
			s := googleReference.ReplaceAllString(string(files[name][r.Start.Byte:r.End.Byte]), "terraform_data.google_${1}__$2")
			return googleAttribute.ReplaceAllString(s, "$1.id")
		}
		for _, b := range parsed.Body.(*hclsyntax.Body).Blocks {
			switch b.Type {
			case "terraform", "provider": // ask for Google's provider
			case "resource":
				fmt.Fprintf(&out, "resource \"terraform_data\" \"%s__%s\" {\n", b.Labels[0], b.Labels[1])
				for _, meta := range []string{"for_each", "count", "depends_on"} {
					if attr := b.Body.Attributes[meta]; attr != nil {
						fmt.Fprintf(&out, "  %s = %s\n", meta, text(attr.Expr.Range()))
						delete(b.Body.Attributes, meta)
					}
				}
				out.WriteString("  input = [\n")
				for _, r := range expressions(b.Body) {
					fmt.Fprintf(&out, "    %s,\n", text(r))
				}
				out.WriteString("  ]\n}\n")
			default:
				fmt.Fprintln(&out, text(b.Range()))
			}
		}
	}
	return out.Bytes(), nil
}

// expressions are where a body's expressions are, without what depends on the
// iterator of a dynamic block.
func expressions(body *hclsyntax.Body) []hcl.Range {
	var list []hcl.Range
	for _, attr := range body.Attributes {
		list = append(list, attr.Expr.Range())
	}
	for _, b := range body.Blocks {
		if b.Type == "dynamic" {
			list = append(list, b.Body.Attributes["for_each"].Expr.Range())
			continue
		}
		list = append(list, expressions(b.Body)...)
	}
	return list
}
