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

// File is a file that a command writes. An existing file of that name stays until the new
// one is complete, so a write that fails midway does not destroy it.
type File struct {
	file   *os.File // nil for standard output and for an empty name
	name   string   // as given; empty to discard what is written
	path   string   // the file's final path
	former *os.File // the file to replace; nil if there is none to keep
	new    bool     // Create made file
	fresh  bool     // nothing has been written yet
	closed bool
	err    error // the first failure to write
}

// Create opens a file for writing. The name "-" stands for standard output; with an
// empty name, what is written is discarded. Close moves the file into its place.
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

// createBeside creates a file that can replace another: in the same folder, with its
// owner and mode. It returns nil where that is not permitted; the former file is then
// overwritten in place.
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

// truncate empties a regular file. Terminals and pipes have nothing to truncate.
func truncate(f *os.File) error {
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return err
	}
	return f.Truncate(0)
}

// Close moves the file into its place if something was written and every write
// succeeded. Further calls do nothing.
func (f *File) Close() error {
	if f.file == nil || f.closed {
		return nil
	}
	f.closed = true
	// Some file systems report a full disk only on sync or close.
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

// replace renames a file to the path of a former one, or copies it where a rename
// fails, as it does over a bind-mounted file.
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

// told returns err with the file's final path in place of a temporary one.
func (f *File) told(err error) error {
	if wrong, ok := errors.AsType[*os.PathError](err); ok {
		return &os.PathError{Op: wrong.Op, Path: f.path, Err: wrong.Err}
	}
	return err
}

// WriteFile writes a whole file by Create, Write and Close.
func WriteFile(name string, data []byte) error {
	f, err := Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return cmp.Or(err, f.Close())
}

// followed resolves symbolic links, even to a file that does not exist yet.
func followed(name string) string {
	for range 40 { // Linux's limit
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

// descriptor reports whether a name leads to an open file descriptor, as /dev/stdout
// does. Such a file must not be replaced: whoever opened it would keep the old one.
func descriptor(name string) bool {
	folder, err := filepath.EvalSymlinks(filepath.Dir(name))
	return err == nil && (folder == "/dev/fd" || strings.HasPrefix(folder, "/proc/") && filepath.Base(folder) == "fd")
}
