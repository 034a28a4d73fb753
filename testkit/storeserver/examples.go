package storeserver

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// RunExamples runs the examples of a file and compares what each prints with its comment
// "Prints:"; one with "Output:" would fail where the server is not installed. It replaces
// os.Stdout, so no other test of the package may run meanwhile.
func RunExamples(t *testing.T, file string, examples map[string]func()) {
	t.Helper()
	wants := promises(t, file)
	for name, want := range wants {
		example, found := examples[name]
		if !found {
			t.Errorf("%s is not run", name)
			continue
		}
		if got := printed(t, example); got != want {
			t.Errorf("%s printed:\n%s\nwant:\n%s", name, got, want)
		}
	}
	if len(examples) != len(wants) {
		t.Errorf("%d examples of %d in %s say what they print", len(wants), len(examples), file)
	}
}

// promises reads the "Prints:" comments of a file's examples.
func promises(t *testing.T, file string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	wants := map[string]string{}
	for _, declared := range parsed.Decls {
		f, is := declared.(*ast.FuncDecl)
		if !is || !strings.HasPrefix(f.Name.Name, "Example") {
			continue
		}
		for _, comment := range parsed.Comments {
			if want, is := strings.CutPrefix(comment.Text(), "Prints:\n"); is && f.Pos() < comment.Pos() && comment.Pos() < f.End() {
				wants[f.Name.Name] = want
			}
		}
	}
	return wants
}

// printed is what an example prints.
func printed(t *testing.T, example func()) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	screen := os.Stdout
	os.Stdout = out
	func() {
		defer func() { os.Stdout = screen }()
		example()
	}()
	if err := out.Close(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
