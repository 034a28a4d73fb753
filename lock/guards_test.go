package lock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

// sources parses the library's own sources, tests apart.
func sources(t *testing.T, dirs ...string) map[string]*ast.File {
	t.Helper()
	files := make(map[string]*ast.File)
	for _, dir := range dirs {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(paths), err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files[path] = file
		}
	}
	return files
}

// The library can be imported alone: it needs nothing else of this module.
func TestLock_ImportsNothingOfTheModule(t *testing.T) {
	const module = "github.com/dronefleet/dronefleet/"
	for path, file := range sources(t, ".", "firestorelock", "postgreslock", "memlock", "locktest") {
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if own, ok := strings.CutPrefix(name, module); ok && (filepath.Dir(path) == "." || own != "lock" && !strings.HasPrefix(own, "lock/internal/")) {
				t.Errorf("%s imports %s", path, name)
			}
		}
	}
}

// L-FENCE-04: no code deletes a fence counter. L-TIME-01: no code but the
// constant itself spells the tolerance out, and no option changes it.
func TestLock_NeverDeletesACounterNorRepeatsTheTolerance(t *testing.T) {
	for path, file := range sources(t, ".", "firestorelock", "postgreslock", "memlock") {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				text := source(t, path, n)
				isDelete := strings.Contains(text, "Delete(") || strings.HasPrefix(text, "delete(")
				if isDelete && (strings.Contains(text, "counter") || strings.Contains(text, "legacy")) && !strings.Contains(text, "\n") {
					t.Errorf("%s deletes a counter: %s", path, text)
				}
			case *ast.BasicLit:
				if n.Value == "1000" || n.Value == "1_000" {
					t.Errorf("%s spells the tolerance out", path)
				}
			case *ast.FuncDecl:
				if strings.HasPrefix(n.Name.Name, "With") && strings.Contains(n.Name.Name, "Tolerance") {
					t.Errorf("%s makes the tolerance an option", path)
				}
			}
			return true
		})
	}
}

func source(t *testing.T, path string, n ast.Node) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text[n.Pos()-1 : n.End()-1])
}

// A held lock costs at most 1 KiB, in the handle and the backend together.
func TestHandle_CostsLittleMemory(t *testing.T) {
	const n, limit = 5000, 1024
	b := memlock.New()
	handles := make([]*lock.Handle, n)
	acquireAll := func() {
		for i := range handles {
			h, ok, err := lock.TryAcquire(bg, b, "key-"+strconv.Itoa(i))
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			handles[i] = h
		}
	}
	// A first round grows the backend's tables, which is not a cost of a held lock.
	acquireAll()
	for i, h := range handles {
		mustClose(t, h)
		handles[i] = nil
	}
	before := heap()
	acquireAll()
	if each := (heap() - before) / n; each > limit {
		t.Errorf("%d bytes per held lock, want at most %d", each, limit)
	} else {
		t.Logf("%d bytes per held lock", each)
	}
	for _, h := range handles {
		mustClose(t, h)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
