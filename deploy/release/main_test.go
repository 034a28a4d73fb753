package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// F-REL-02: two checkouts of one commit, in two folders, give the same bytes; the checksums are right;
// the program says its commit; and a changed checkout is refused.
func TestRelease_IsReproducible(t *testing.T) {
	longtest.Only(t, "builds a program and its bill of materials twice")
	platform := runtime.GOOS + "/" + runtime.GOARCH
	var folders []string
	checkout := ""
	for _, name := range []string{"one", "another"} {
		checkout = filepath.Join(t.TempDir(), name)
		root, err := filepath.Abs("../..")
		if err != nil {
			t.Fatal(err)
		}
		command(t, ".", "git", "clone", "--quiet", "--depth=1", "file://"+root, checkout)
		out := filepath.Join(t.TempDir(), "out")
		if err := run(release{root: checkout, out: out, platforms: []string{platform}, programs: []string{"locktool"}}); err != nil {
			t.Fatal(err)
		}
		folders = append(folders, out)
	}
	files, err := os.ReadDir(folders[0])
	if err != nil || len(files) != 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	archive := ""
	for _, file := range files {
		first, err := os.ReadFile(filepath.Join(folders[0], file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		second, err := os.ReadFile(filepath.Join(folders[1], file.Name()))
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s differs, %v", file.Name(), err)
		}
		if name, is := strings.CutSuffix(file.Name(), ".tar.gz"); is {
			archive = name
		}
	}
	command(t, folders[0], "sha256sum", "--check", "--quiet", "SHA256SUMS")
	command(t, folders[0], "tar", "-xzf", archive+".tar.gz")
	commit := strings.TrimSpace(command(t, checkout, "git", "rev-parse", "HEAD"))
	if version := command(t, folders[0], "./"+archive+"/locktool", "--version"); !strings.Contains(version, commit) {
		t.Errorf("version %q lacks the commit %s", version, commit)
	}
	if licences, err := filepath.Glob(filepath.Join(folders[0], archive, "licences", "*", "*", "*", "LICENSE")); err != nil || len(licences) < 3 {
		t.Errorf("licences %v, %v", licences, err)
	}

	if err := os.WriteFile(filepath.Join(checkout, "README.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(release{root: checkout, out: filepath.Join(t.TempDir(), "out")}); err == nil || !strings.Contains(err.Error(), "commit them") {
		t.Errorf("a changed checkout: %v", err)
	}
}

func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return string(out)
}
