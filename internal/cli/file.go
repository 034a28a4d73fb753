package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// File is a file that a command writes. What was there before stays until all
// that takes its place is written: what fails midway costs nobody the former file.
type File struct {
	file   *os.File // nil for standard output and for nowhere
	name   string   // as it was given; empty for nowhere
	path   string   // the file's final path
	former *os.File // what it takes the place of; nil if there is nothing to keep
	new    bool     // file is there only since Create
	fresh  bool     // nothing is written yet
	closed bool
	err    error // the first failure to write
}

// Create opens a file to write, "-" for standard output; without a name, what is
// written goes nowhere. Close puts it in its place.
func Create(name string) (*File, error) {
	f := &File{name: name, path: name, fresh: true}
	if name == "" || name == "-" {
		return f, nil
	}
	if !descriptor(name) {
		f.path = followed(name)
	}
	var err error
	if f.file, err = os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err == nil {
		f.new = true
		return f, nil
	}
	if f.file, err = os.OpenFile(f.path, os.O_WRONLY, 0); err != nil {
		return nil, err
	}
	if info, err := f.file.Stat(); err == nil && info.Mode().IsRegular() && !descriptor(f.path) {
		if beside := createBeside(f.path, info); beside != nil {
			f.file, f.former, f.new = beside, f.file, true
		}
	}
	return f, nil
}

// createBeside makes a file that can take the place of another: in its folder,
// with its owner and mode. It is nil where that is not allowed: then the former
// one is written where it is.
func createBeside(path string, former os.FileInfo) *os.File {
	name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".dronefleet-%016x", rand.Uint64()))
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil
	}
	if err := errors.Join(takeOwner(f, former), f.Chmod(former.Mode().Perm())); err != nil {
		f.Close()
		os.Remove(name)
		return nil
	}
	return f
}

// Write implements io.Writer.
func (f *File) Write(data []byte) (n int, err error) {
	switch {
	case f.name == "":
		return len(data), nil
	case f.file == nil:
		return Stdout.Write(data)
	}
	if f.fresh && !f.new {
		err = truncate(f.file)
	}
	f.fresh = false
	if err == nil {
		n, err = f.file.Write(data)
	}
	f.err = cmp.Or(f.err, f.told(err))
	return n, f.told(err)
}

// truncate takes what a file holds away; terminals and pipes hold nothing.
func truncate(f *os.File) error {
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return err
	}
	return f.Truncate(0)
}

// Close puts what was written in its place, unless it was not written in full, or
// nothing was. It may be called again, and then has nothing to do.
func (f *File) Close() error {
	if f.file == nil || f.closed {
		return nil
	}
	f.closed = true
	// Some file systems take what they have no room for, and say so only now.
	if f.new && !f.fresh && f.err == nil {
		f.err = f.told(f.file.Sync())
	}
	whole := !f.fresh && f.err == nil
	if f.former != nil {
		if whole {
			f.err = f.told(replace(f.file, f.former, f.path))
		}
		f.former.Close()
	}
	f.err = cmp.Or(f.err, f.told(f.file.Close()))
	if f.new && (f.former != nil || !whole) {
		os.Remove(f.file.Name()) // is in its place already, or must not stay
	}
	return f.err
}

// replace puts a file in the place of a former one. What cannot be renamed, such
// as over a file mounted on its own, is copied.
func replace(file, former *os.File, path string) error {
	if os.Rename(file.Name(), path) == nil {
		return nil
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := former.Truncate(0); err != nil {
		return err
	}
	_, err := io.Copy(former, file)
	return cmp.Or(err, former.Sync())
}

// told is an error that names the file as its user does.
func (f *File) told(err error) error {
	if wrong, ok := errors.AsType[*os.PathError](err); ok {
		return &os.PathError{Op: wrong.Op, Path: f.path, Err: wrong.Err}
	}
	return err
}

// WriteFile writes a file as Create and Close do.
func WriteFile(name string, data []byte) error {
	f, err := Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return cmp.Or(err, f.Close())
}

// followed is the file that a name leads to through links, there or not.
func followed(name string) string {
	for range 40 { // as many as Linux follows
		target, err := os.Readlink(name)
		if err != nil || descriptor(name) {
			break
		}
		if folder, _ := filepath.Split(name); !filepath.IsAbs(target) {
			target = folder + target
		}
		name = target
	}
	return name
}

// descriptor reports whether a name is that of an open file, as /dev/stdout leads
// to one: whoever opened it writes to it, too, so that it cannot be replaced.
func descriptor(name string) bool {
	folder, err := filepath.EvalSymlinks(filepath.Dir(name))
	return err == nil && (folder == "/dev/fd" || strings.HasPrefix(folder, "/proc/") && filepath.Base(folder) == "fd")
}
