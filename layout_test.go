// Package dronefleet_test holds what is true of the project as a whole.
package dronefleet_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/dronefleet/dronefleet/"

// imports lists the direct imports of every package, tests left out.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	list := map[string][]string{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list[strings.TrimPrefix(p.ImportPath, module)] = p.Imports
	}
}

// Imports point inward: what decides knows nothing of what stores or sends, and
// what others import on its own knows nothing of us.
func TestImportsPointInward(t *testing.T) {
	rules := []struct {
		what    string // packages under this path
		allowed []string
	}{
		{"domain", nil},
		{"policy", []string{"domain"}},
		{"solver", []string{"solver"}},
		{"lock", []string{"lock"}},
		{"sim/invariant", []string{"domain"}},
		{"internal/config", []string{"domain"}},
		{"internal/meter", nil},
		{"internal/observe", []string{"internal/meter"}},
		{"httpapi/identity", []string{"httpapi/identity"}},
		{"deploy", []string{"deploy"}},
		{"emulator/internal/boltfile", nil},
		{"emulator/firestore", []string{"emulator/internal/boltfile"}},
		{"emulator/pubsub", []string{"emulator/internal/boltfile"}},
		{"sim/fleetsim", []string{"domain", "adapters/wire", "proto", "sim/invariant"}},
		{"adapters/wire", []string{"domain", "proto"}},
		{"adapters/firestoretx", []string{"domain", "policy"}},
		{"adapters/pubsubio", []string{"domain", "policy", "adapters/wire", "adapters/firestoretx", "internal/meter"}},
	}
	under := func(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }
	seen := map[string]bool{}
	for pkg, list := range imports(t) {
		for _, rule := range rules {
			if !under(pkg, rule.what) {
				continue
			}
			seen[rule.what] = true
			for _, imported := range list {
				ours, is := strings.CutPrefix(imported, module)
				if !is {
					continue
				}
				ok := under(ours, rule.what)
				for _, a := range rule.allowed {
					ok = ok || under(ours, a)
				}
				if !ok {
					t.Errorf("%s must not import %s", pkg, ours)
				}
			}
		}
	}
	for _, rule := range rules {
		if !seen[rule.what] {
			t.Errorf("no package under %s: the rule guards nothing", rule.what)
		}
	}
}

// Rules of state import the standard library only.
func TestDomainAndPolicyNeedNoLibrary(t *testing.T) {
	for pkg, list := range imports(t) {
		if pkg != "domain" && pkg != "policy" {
			continue
		}
		for _, imported := range list {
			first, _, _ := strings.Cut(imported, "/")
			if strings.Contains(first, ".") && !strings.HasPrefix(imported, module) {
				t.Errorf("%s imports %s", pkg, imported)
			}
			if imported == "math/rand" || imported == "math/rand/v2" || imported == "os" {
				t.Errorf("%s imports %s: policies are pure", pkg, imported)
			}
		}
	}
}
