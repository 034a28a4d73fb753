package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// reference is a name in a file, as architecture.md and README.md give it:
// `folder/file.go` `Name` or `folder/file.go` `Type.Method`.
var reference = regexp.MustCompile("`([a-z0-9/_.-]+\\.go)` `([A-Za-z0-9_.]+)`")

// declared holds the functions, methods (Type.Method), types, constants and
// variables that a file declares.
func declared(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			names[name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, name := range s.Names {
						names[name.Name] = true
					}
				}
			}
		}
	}
	return names
}

func receiver(of ast.Expr) string {
	switch e := of.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// Whoever follows a page to a name in a file finds it there.
func TestArchitecture_NamesWhatIsThere(t *testing.T) {
	for page, least := range map[string]int{"architecture.md": 15, "../README.md": 5} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		references := reference.FindAllStringSubmatch(string(text), -1)
		if len(references) < least {
			t.Errorf("%s: found %d references, want at least %d", page, len(references), least)
		}
		for _, m := range references {
			path := filepath.Join("..", m[1])
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s names %s: %v", page, m[1], err)
				continue
			}
			if !declared(t, path)[m[2]] {
				t.Errorf("%s says that %s declares %s, and it does not", page, m[1], m[2])
			}
		}
	}
}

// Every decision that is on record is listed, and every listed one is there:
// links_test.go finds what is listed and missing.
func TestDecisions_AreListed(t *testing.T) {
	list, err := os.ReadFile("decisions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("decisions/[0-9]*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(list), "]("+filepath.Base(page)+")") {
			t.Errorf("decisions/README.md does not list %s", page)
		}
		for _, section := range []string{"## Context\n", "## Decision\n", "## What it costs\n"} {
			if !strings.Contains(string(text), section) {
				t.Errorf("%s has no section %q", page, strings.TrimSpace(section))
			}
		}
	}
}

// The page names every package of app and of adapters.
func TestArchitecture_NamesEveryPackage(t *testing.T) {
	text, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, parent := range []string{"../app", "../adapters"} {
		folders, err := os.ReadDir(parent)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range folders {
			if f.IsDir() && !strings.Contains(string(text), "`"+f.Name()+"`") {
				t.Errorf("docs/architecture.md does not name %s/%s", strings.TrimPrefix(parent, "../"), f.Name())
			}
		}
	}
}
