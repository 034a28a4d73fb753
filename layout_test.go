// Package dronefleet_test holds what is true of the project as a whole.
package dronefleet_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/dronefleet/dronefleet/"

// layer is a top-level folder: what it holds, in one line, and the layers that
// its packages may import.
type layer struct {
	folder, holds string
	imports       []string
}

// layers lists every folder with Go code, lowest first. A layer imports only from
// layers listed before it, so that no import points up.
var layers = []layer{
	{"domain", "the fleet's nouns", nil},
	{"lock", "leases with fencing tokens, useful on its own", nil},
	{"solver", "pickup-and-delivery planning, useful on its own", []string{"domain"}},
	{"proto", "the wire format and its generated code", nil},
	{"examples", "programs of other makers, to copy", []string{"proto"}},
	{"api", "the AsyncAPI document and its rules, for other makers", nil},
	{"emulator", "embedded Firestore and Pub/Sub servers for tests", nil},
	{"deploy", "Terraform, manifests, indexes, dashboards, alerts", nil},
	{"policy", "the fleet's rules, pure", []string{"domain"}},
	{"internal", "plumbing: flags, settings, connections, metrics, clocks", []string{"domain", "lock"}},
	{"testkit", "what tests share", []string{"domain", "lock", "emulator", "deploy", "internal"}},
	{"adapters", "Firestore, Pub/Sub and wire forms", []string{"domain", "policy", "lock", "proto", "internal"}},
	{"app", "the use cases", []string{"domain", "policy", "lock", "solver", "internal", "adapters"}},
	{"httpapi", "the HTTP API over the use cases", []string{"domain", "policy", "lock", "internal", "adapters", "app"}},
	{"sim", "simulated fleet, dev run, fault injection, invariant checker", []string{
		"domain", "policy", "lock", "solver", "proto", "api", "emulator", "deploy", "internal", "adapters", "app", "httpapi",
	}},
	{"conformance", "suites that prove the embedded servers and the lock", []string{"lock", "emulator"}},
	{"docs", "documents, and the tests that keep them true", nil},
	{"cmd", "the binaries: flags and wiring", []string{
		"domain", "policy", "lock", "solver", "api", "emulator", "deploy", "internal", "adapters", "app", "httpapi", "sim",
	}},
	{"bench", "measurements and comparisons", []string{
		"domain", "policy", "lock", "solver", "emulator", "deploy", "internal", "adapters", "app", "httpapi", "sim",
	}},
}

// restrictions narrow what a package may import below what its layer allows. With
// a nil list it imports nothing outside itself.
var restrictions = []struct {
	path    string
	imports []string
}{
	{"internal/config", []string{"domain", "internal/input"}},
	{"internal/identity", []string{"domain"}},
	{"internal/input", nil},
	{"internal/meter", nil},
	{"internal/ramp", nil},
	{"internal/restart", nil},
	{"internal/shutdown", nil},
	{"internal/observe", []string{"internal/meter"}},
	{"internal/terminal", nil},
	{"adapters/wire", []string{"domain", "proto", "internal/input"}},
	{"adapters/entity", []string{"domain", "lock"}},
	{"adapters/dronelink", []string{"domain", "proto", "adapters/wire"}},
	{"adapters/firestoretx", []string{"domain", "policy", "lock"}},
	{"adapters/pubsubio", []string{"domain", "policy", "adapters/wire", "adapters/firestoretx", "internal/meter", "internal/ramp", "internal/restart", "internal/shutdown"}},
	{"adapters/mqttlink", []string{"domain", "adapters/dronelink", "adapters/wire", "internal/meter", "internal/restart"}},
	{"app/apikeys", []string{"domain", "adapters/firestoretx"}},
	{"app/gateway", []string{"domain", "policy", "adapters/dronelink", "adapters/pubsubio", "adapters/wire", "app/apikeys", "internal/identity", "internal/meter", "internal/restart"}},
	{"app/history", []string{"domain", "lock", "adapters/firestoretx", "adapters/pubsubio", "adapters/wire", "internal/meter"}},
	{"app/planner", []string{"domain", "policy", "solver", "app/learning"}},
	{"app/learning", []string{"domain", "policy"}},
	{"app/live", []string{"domain", "policy", "lock", "solver", "adapters", "app/learning", "app/planner", "internal/meter", "internal/restart"}},
	{"app/ownership", []string{"domain"}},
	{"app/placefile", []string{"domain", "internal/input"}},
	{"app/webhooks", []string{"domain", "policy", "lock", "adapters/firestoretx", "internal/meter", "internal/restart"}},
	{"app/planview", []string{"solver", "internal/terminal"}},
	{"httpapi/console", nil},
	{"conformance/lock", []string{"lock"}},
	{"conformance/lock/lockspec", nil},
	{"httpapi/ratelimit", nil},
	{"bench/measure", []string{"internal/cli"}},
	{"sim/invariant", []string{"domain"}},
	{"sim/conform", []string{
		"domain", "api", "proto", "deploy", "emulator", "adapters", "app/dispatch", "app/manager", "app/operator", "httpapi", "internal", "solver", "lock", "sim/fleetlink", "sim/fleetsim",
	}},
	{"sim/explore", []string{"domain", "policy", "sim/invariant"}},
	{"sim/fleethistory", []string{"adapters/firestoretx", "adapters/pubsubio", "sim/invariant"}},
	{"sim/fleetlink", []string{"domain", "adapters/pubsubio", "adapters/wire", "app/dispatch", "emulator/pubsub", "sim/fleetsim", "sim/invariant"}},
	{"sim/fleetsim", []string{"domain", "adapters/wire", "proto", "sim/invariant"}},
	{"testkit/docgen", nil},
	{"testkit/identitytest", nil},
	{"testkit/leaktest", nil},
	{"testkit/longtest", nil},
	{"testkit/tfmodule", nil},
}

// goPackage is what "go list" says of a package; imports of tests are left out.
type goPackage struct {
	ImportPath, Dir, Name string
	Imports, GoFiles      []string
}

// path is the package's folder within the project; empty for the root.
func (p goPackage) path() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, strings.TrimSuffix(module, "/")), "/")
}

// ours lists the packages of this project that p imports, by their folders.
func (p goPackage) ours() (paths []string) {
	for _, imported := range p.Imports {
		if path, is := strings.CutPrefix(imported, module); is {
			paths = append(paths, path)
		}
	}
	return paths
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Name,Imports,GoFiles", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

func under(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

func underAny(path string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return under(path, root) })
}

// layoutErrors lists imports that are not allowed and folders that no layer
// describes.
func layoutErrors(list []goPackage) (found []string) {
	guarded := map[string]bool{}
	for _, p := range list {
		path := p.path()
		if path == "" {
			continue
		}
		at := slices.IndexFunc(layers, func(l layer) bool { return under(path, l.folder) })
		if at < 0 {
			found = append(found, path+" is in no layer; add its folder to layers")
			continue
		}
		guarded[layers[at].folder] = true
		for _, imported := range p.ours() {
			if !underAny(imported, append(layers[at].imports, layers[at].folder)...) {
				found = append(found, fmt.Sprintf("%s must not import %s: %s may import %q", path, imported, layers[at].folder, layers[at].imports))
			}
		}
		for _, r := range restrictions {
			if !under(path, r.path) {
				continue
			}
			guarded[r.path] = true
			for _, imported := range p.ours() {
				if !underAny(imported, append(slices.Clone(r.imports), r.path)...) {
					found = append(found, fmt.Sprintf("%s must not import %s: it may import %q", path, imported, r.imports))
				}
			}
		}
	}
	for _, l := range layers {
		if !guarded[l.folder] {
			found = append(found, "no package under "+l.folder+": remove it from layers")
		}
	}
	for _, r := range restrictions {
		if !guarded[r.path] {
			found = append(found, "no package under "+r.path+": remove it from restrictions")
		}
	}
	return found
}

func TestLayout_ImportsPointDown(t *testing.T) {
	for i, l := range layers {
		for _, imported := range l.imports {
			if !slices.ContainsFunc(layers[:i], func(below layer) bool { return below.folder == imported }) {
				t.Errorf("%s may import %s, which is not below it", l.folder, imported)
			}
		}
	}
	list := packages(t)
	for _, e := range layoutErrors(list) {
		t.Error(e)
	}
	for _, broken := range []struct{ from, to string }{
		{"policy", "adapters/wire"}, {"adapters/firestoretx", "app/operator"}, {"app/operator", "httpapi"},
		{"httpapi", "sim/devrun"}, {"internal/meter", "internal/connect"}, {"newfolder", "domain"},
		{"internal/connect", "emulator/firestore"}, {"cmd/statemanager", "testkit/emutest"}, {"sim/devrun", "testkit/longtest"},
	} {
		with := append(slices.Clone(list), goPackage{ImportPath: module + broken.from, Imports: []string{module + broken.to}})
		if len(layoutErrors(with)) == 0 {
			t.Errorf("%s may import %s, and nothing objects", broken.from, broken.to)
		}
	}
}

// Rules of state and the planner import the standard library and each other only, and the
// tables of Unicode's normal forms, which the standard library lacks.
func TestLayout_PurePackagesNeedNoLibrary(t *testing.T) {
	for _, p := range packages(t) {
		if !underAny(p.path(), "domain", "policy", "app/planner") {
			continue
		}
		for _, imported := range p.Imports {
			first, _, _ := strings.Cut(imported, "/")
			if strings.Contains(first, ".") && !strings.HasPrefix(imported, module) && imported != "golang.org/x/text/unicode/norm" {
				t.Errorf("%s imports %s", p.path(), imported)
			}
			if imported == "math/rand" || imported == "math/rand/v2" || imported == "os" {
				t.Errorf("%s imports %s: policies are pure", p.path(), imported)
			}
		}
	}
}

// Every package says in its doc.go what it is for and what it must not import;
// a command says what it is for in main.go.
func TestLayout_EveryPackageIsDocumented(t *testing.T) {
	for _, p := range packages(t) {
		switch {
		case p.path() == "" || len(p.GoFiles) == 0: // the root, and folders with tests only
			continue
		case p.Name == "main":
			checkPackageComment(t, p, "main.go", "// Command ", "")
		default:
			checkPackageComment(t, p, "doc.go", "// Package "+p.Name+" ", "import")
		}
	}
}

func checkPackageComment(t *testing.T, p goPackage, file, begins, contains string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.Dir, file))
	if err != nil {
		t.Errorf("%s has no %s that says what it is for", p.path(), file)
		return
	}
	comment, _, _ := strings.Cut(string(text), "\npackage ")
	if !strings.Contains("\n"+comment, "\n"+begins) {
		t.Errorf("%s/%s has no comment that begins with %q", p.path(), file, begins)
	}
	if !strings.Contains(comment, contains) {
		t.Errorf("%s/%s does not say what the package must not import", p.path(), file)
	}
}

// The README's tree has every top-level folder of code.
func TestREADME_TreeHasEveryFolder(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "The top level:\n\n```\n")
	tree, _, _ := strings.Cut(rest, "```")
	for _, l := range layers {
		if l.folder != "docs" && !strings.Contains(" "+strings.ReplaceAll(tree, "\n", " "), " "+l.folder+"/ ") {
			t.Errorf("README's tree has no %s/ (%s)", l.folder, l.holds)
		}
	}
}
