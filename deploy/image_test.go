package deploy_test

import (
	"debug/elf"
	"go/version"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const images = "statemanager optimizer gateway dronefleet"

// Every image is one static binary and the certificates, without a shell, run
// by a user without rights.
func TestImages_HoldNoMoreThanABinaryNeeds(t *testing.T) {
	file, err := readDockerfile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(images) {
		s, err := file.stage(name)
		if err != nil {
			t.Fatal(err)
		}
		if s.from != "scratch" {
			t.Errorf("image %s is built on %s", name, s.from)
		}
		if user := s.all("USER"); len(user) != 1 || strings.HasPrefix(user[0], "0") || !strings.Contains(user[0], ":") {
			t.Errorf("image %s runs as %v; give a numeric user and group other than 0", name, user)
		}
		files, err := s.copies()
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"/" + name, "/etc/ssl/certs/ca-certificates.crt"}; !slices.Equal(slices.Sorted(maps.Values(files)), slices.Sorted(slices.Values(want))) {
			t.Errorf("image %s holds %v, want %v", name, files, want)
		}
		if entry, err := s.words("ENTRYPOINT"); err != nil || !slices.Equal(entry, []string{"/" + name}) {
			t.Errorf("image %s starts %v (%v)", name, entry, err)
		}
	}
}

// The build lines make static binaries.
func TestImages_BinariesAreStatic(t *testing.T) {
	dir := imageBinaries(t)
	for _, name := range strings.Fields(images) {
		f, err := elf.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 {
			t.Errorf("%s needs %v (%v)", name, libraries, err)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP {
				t.Errorf("%s needs a loader", name)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	file, err := readDockerfile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range file.builds() {
		if !strings.Contains(line, "CGO_ENABLED=0 ") || !strings.Contains(line, " -trimpath ") {
			t.Errorf("%s: not static, or with paths of the builder", line)
		}
	}
}

var imageDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

var goDirective = regexp.MustCompile(`(?m)^go (\S+)$`)

// The build image has at least the Go version that go.mod requires.
func TestImages_AreBuiltWithOurGo(t *testing.T) {
	text, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	asked := goDirective.FindStringSubmatch(string(text))
	if asked == nil {
		t.Fatal("go.mod asks for no Go")
	}
	file, err := readDockerfile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	s, err := file.stage("build")
	if err != nil {
		t.Fatal(err)
	}
	base, digest, _ := strings.Cut(s.from, "@")
	if !imageDigest.MatchString(digest) {
		t.Errorf("built on %s, which somebody can replace; name its digest", s.from)
	}
	tag, ok := strings.CutPrefix(base, "golang:")
	got, _, _ := strings.Cut(tag, "-")
	if !ok || strings.Count(got, ".") != 2 || version.Compare("go"+got, "go"+asked[1]) < 0 {
		t.Errorf("built on %s; want golang:, all three numbers, and at least the %s of go.mod", s.from, asked[1])
	}
}
