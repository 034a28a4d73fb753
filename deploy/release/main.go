// Command release builds what is published of a version: for each platform an archive of the
// programs with the licences of what they link, and a bill of materials of each program; and the
// checksums of all. The same commit gives the same bytes, on any machine with the Go of go.mod.
//
//	tools/release -out FOLDER
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// release is what to build, from where, and to where.
type release struct {
	root, out string
	platforms []string // GOOS/GOARCH
	programs  []string
	version   string
	at        time.Time // of the commit
	bills     string    // path of cyclonedx-gomod
}

func main() {
	out := flag.String("out", "", "folder for the files, from the root; it must not exist")
	flag.Parse()
	if !filepath.IsAbs(*out) || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	err := run(release{
		root: ".", out: *out, platforms: []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"},
		programs: []string{"statemanager", "optimizer", "gateway", "locktool", "dronefleet"},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(r release) (err error) {
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	changed, err := r.output(nil, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return errors.New("the working tree has changes; commit them, so that the version says what was built")
	}
	if r.version, err = r.output(nil, "git", "describe", "--tags", "--always"); err != nil {
		return err
	}
	stamp, err := r.output(nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return err
	}
	r.at = time.Unix(seconds, 0).UTC()
	if err := os.Mkdir(r.out, 0o755); err != nil {
		return err
	}
	tools, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tools)
	if _, err := r.output(nil, "go", "build", "-modfile=tools/go.mod", "-o", tools+"/", "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod"); err != nil {
		return err
	}
	r.bills = filepath.Join(tools, "cyclonedx-gomod")
	for _, platform := range r.platforms {
		if err := r.build(platform); err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
	}
	return r.sum()
}

// output runs a command in the root of the project and returns what it prints.
func (r release) output(env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, errs.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// build writes the archive and the bills of one platform.
func (r release) build(platform string) error {
	system, processor, _ := strings.Cut(platform, "/")
	env := []string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + processor, "GOFLAGS=-mod=readonly -trimpath -buildvcs=true", "GOAMD64=v1", "GOARM64=v8.0"}
	name := fmt.Sprintf("dronefleet_%s_%s_%s", r.version, system, processor)
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	packages := make([]string, len(r.programs))
	for i, program := range r.programs {
		packages[i] = "./cmd/" + program
	}
	if _, err := r.output(env, "go", append([]string{"build", "-ldflags=-s -w", "-o", dir + "/"}, packages...)...); err != nil {
		return err
	}
	for _, program := range r.programs {
		bill, err := r.output(env, r.bills, "app", "-licenses", "-std", "-json", "-main", "cmd/"+program, ".")
		if err != nil {
			return err
		}
		if err := r.writeBill(name+"_"+program+".cdx.json", bill); err != nil {
			return err
		}
	}
	if err := r.licences(env, packages, filepath.Join(dir, "licences")); err != nil {
		return err
	}
	for _, file := range []string{"README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(r.root, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return r.archive(dir, name)
}

// licences copies the licences and notices of all linked libraries and of Go: for each package those
// of its folder or of the nearest one above. .ci/sbom checks that they allow this.
func (r release) licences(env, packages []string, to string) error {
	list, err := r.output(env, "go", append([]string{"list", "-deps", "-f", `{{with .Module}}{{if not .Main}}{{$.Dir}}	{{.Dir}}	{{.Path}}{{end}}{{end}}`}, packages...)...)
	if err != nil {
		return err
	}
	goroot, err := r.output(nil, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	copied := map[string]bool{}
	for line := range strings.Lines(goroot + "\t" + goroot + "\tgo\n" + list) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 {
			continue
		}
		dir, module, path := fields[0], fields[1], fields[2]
		found := licencesIn(dir)
		for ; len(found) == 0 && dir != module; found = licencesIn(dir) {
			dir = filepath.Dir(dir)
		}
		if len(found) == 0 {
			return fmt.Errorf("no licence in %s of %s", fields[0], path)
		}
		if copied[dir] {
			continue
		}
		copied[dir] = true
		within, err := filepath.Rel(module, dir)
		if err != nil {
			return err
		}
		folder := filepath.Join(to, filepath.FromSlash(path), within)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		for _, file := range found {
			text, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(filepath.Join(folder, filepath.Base(file)), text, 0o644)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// licencesIn are the licences and notices in a folder.
func licencesIn(dir string) (files []string) {
	for _, pattern := range []string{"LICEN[SC]E*", "COPYING*", "NOTICE*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are right
		files = append(files, slices.DeleteFunc(found, func(file string) bool { return filepath.Ext(file) == ".go" })...)
	}
	return files
}

// writeBill writes a bill of materials without what differs from one run to the next.
func (r release) writeBill(name, text string) error {
	var bill map[string]any
	if err := json.Unmarshal([]byte(text), &bill); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	delete(bill, "serialNumber")
	metadata, is := bill["metadata"].(map[string]any)
	if !is {
		return fmt.Errorf("%s has no metadata", name)
	}
	metadata["timestamp"] = r.at.Format(time.RFC3339)
	out, err := json.MarshalIndent(bill, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, name), append(out, '\n'), 0o644)
}

// archive packs a folder, with the commit's time and nobody's name on each file.
func (r release) archive(dir, name string) error {
	var packed bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	files := tar.NewWriter(zipped)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error { // in the order of names
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		within, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if slices.Contains(r.programs, within) {
			mode = 0o755
		}
		header := tar.Header{Name: name + "/" + filepath.ToSlash(within), Mode: mode, Size: int64(len(content)), ModTime: r.at, Format: tar.FormatUSTAR}
		if err := files.WriteHeader(&header); err != nil {
			return err
		}
		_, err = files.Write(content)
		return err
	})
	if err := errors.Join(err, files.Close(), zipped.Close()); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, name+".tar.gz"), packed.Bytes(), 0o644)
}

// sum writes the checksums of all files, as sha256sum does.
func (r release) sum() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(r.out, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
