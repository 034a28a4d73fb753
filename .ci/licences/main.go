// Command licences holds docs/licences.md to the bills of materials of the
// binaries: every module that is linked into a binary is in its bill, has a
// licence of the allow list, and is in the document's table.
//
//	licences [-update] DOCUMENT BILL=BINARY ...
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dronefleet/dronefleet/docs/docgen"
)

// allowed are the licences under which anything may be linked: they ask for no
// more than to be passed on with the binary.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

func main() {
	update := flag.Bool("update", false, "write the document's table anew")
	flag.Parse()
	if err := run(*update, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(update bool, args []string) error {
	if len(args) < 2 {
		return errors.New("give a document and pairs of BILL=BINARY")
	}
	linked := modules{}
	var errs []error
	for _, pair := range args[1:] {
		bill, binary, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("%q is not BILL=BINARY", pair)
		}
		errs = append(errs, linked.add(bill, binary))
	}
	errs = append(errs, linked.check())
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := docgen.Hold(args[0], map[string]string{"licences": linked.table()}, update, ".ci/sbom -update and commit"); err != nil {
		return err
	}
	fmt.Printf("%d modules are linked and in the bills, under licences of %v\n", len(linked), allowed)
	return nil
}

// module is one that is linked into some binary.
type module struct {
	licences []string // SPDX
	binaries []string
}

// modules are known by their path; "std" is Go's own library.
type modules map[string]*module

// bill is as much of a CycloneDX document as matters here.
type bill struct {
	Components []struct {
		Name     string
		Evidence struct {
			Licenses []struct{ License struct{ ID string } }
		}
	}
}

// add takes the modules of a bill, which must be those of the binary.
func (m modules) add(billFile, binary string) error {
	text, err := os.ReadFile(billFile)
	if err != nil {
		return err
	}
	var b bill
	if err := json.Unmarshal(text, &b); err != nil {
		return fmt.Errorf("%s: %w", billFile, err)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	in := map[string]bool{"std": false}
	for _, dep := range info.Deps {
		in[dep.Path] = false
	}
	name := filepath.Base(binary)
	var errs []error
	for _, c := range b.Components {
		if _, linked := in[c.Name]; !linked {
			errs = append(errs, fmt.Errorf("%s names %s, which is not in %s", billFile, c.Name, name))
			continue
		}
		in[c.Name] = true
		if m[c.Name] == nil {
			m[c.Name] = &module{}
		}
		m[c.Name].binaries = append(m[c.Name].binaries, name)
		for _, l := range c.Evidence.Licenses {
			m[c.Name].add(l.License.ID)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(in)) {
		if !in[path] {
			errs = append(errs, fmt.Errorf("%s does not name %s, which is in %s", billFile, path, name))
		}
	}
	return errors.Join(errs...)
}

func (m *module) add(licence string) {
	if !slices.Contains(m.licences, licence) {
		m.licences = append(m.licences, licence)
	}
}

// check finds the licences that the bills leave open or get wrong, and refuses
// those that are not allowed.
func (m modules) check() error {
	var errs []error
	for _, path := range slices.Sorted(maps.Keys(m)) {
		if err := m[path].read(path); err != nil {
			errs = append(errs, err)
			continue
		}
		for _, l := range m[path].licences {
			if !slices.Contains(allowed, l) {
				errs = append(errs, fmt.Errorf("%s is under %s, which is not among %v; use something else, or allow it in .ci/licences", path, l, allowed))
			}
		}
		if len(m[path].licences) == 0 {
			errs = append(errs, fmt.Errorf("%s has no licence that could be recognised; read it and teach .ci/licences", path))
		}
	}
	return errors.Join(errs...)
}

// read looks at the licence itself where the tool that writes the bills is
// known to err: it takes Go's BSD-3-Clause, whose third clause names a company,
// for BSD-Source-Code, and it does not look at the standard library's.
func (m *module) read(path string) error {
	doubtful := len(m.licences) == 0 && path == "std" || slices.Equal(m.licences, []string{"BSD-Source-Code"})
	if !doubtful {
		return nil
	}
	dir, err := folder(path)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "LICENSE"))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if isBSD3(string(text)) {
		m.licences = []string{"BSD-3-Clause"}
	}
	return nil
}

// folder is where the sources of a module are.
func folder(path string) (string, error) {
	args := []string{"list", "-m", "-f", "{{.Dir}}", path}
	if path == "std" {
		args = []string{"env", "GOROOT"}
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// isBSD3 reports whether a text is the BSD licence of three clauses: all three
// and the disclaimer, and nothing else that asks for something.
// https://spdx.org/licenses/BSD-3-Clause.html
func isBSD3(text string) bool {
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "* ", "")
	for _, clause := range []string{
		"Redistribution and use in source and binary forms, with or without modification, are permitted provided that the following conditions are met: Redistributions of source code must retain the above copyright notice, this list of conditions and the following disclaimer. Redistributions in binary form must reproduce the above copyright notice, this list of conditions and the following disclaimer in the documentation and/or other materials provided with the distribution. Neither the name of",
		"may be used to endorse or promote products derived from this software without specific prior written permission. THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS",
	} {
		_, rest, found := strings.Cut(text, clause)
		if !found {
			return false
		}
		text = rest
	}
	return strings.HasSuffix(text, "EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.")
}

// table is the document's, in Markdown.
func (m modules) table() string {
	var b strings.Builder
	b.WriteString("| module | licence | linked into |\n|-|-|-|\n")
	for _, path := range slices.Sorted(maps.Keys(m)) {
		name := "`" + path + "`"
		if path == "std" {
			name = "Go's standard library"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, strings.Join(slices.Sorted(slices.Values(m[path].licences)), ", "), strings.Join(m[path].binaries, ", "))
	}
	return b.String()
}
