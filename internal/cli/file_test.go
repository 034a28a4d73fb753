package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// former creates a file to be replaced. holds checks its content and mode.
func former(t *testing.T) (path string, holds func(want string)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(path, []byte("the plan before, which is longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	return path, func(want string) {
		t.Helper()
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("the file holds %q, %v, want %q", text, err, want)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != 0o640 {
			t.Errorf("the file is %v, %v", info.Mode(), err)
		}
	}
}

func create(t *testing.T, name string) *File {
	t.Helper()
	f, err := Create(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func write(t *testing.T, f *File, text string) {
	t.Helper()
	if _, err := io.WriteString(f, text); err != nil {
		t.Fatal(err)
	}
}

func alone(t *testing.T, path string) {
	t.Helper()
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("the folder holds %v, %v", files, err)
	}
}

// F-OPT-05: a file is replaced once the new one is complete, and keeps its mode.
func TestFile_ReplacesTheFormerOneWhenComplete(t *testing.T) {
	path, holds := former(t)
	f := create(t, path)
	write(t, f, "the")
	holds("the plan before, which is longer")
	write(t, f, " plan")
	holds("the plan before, which is longer")
	for range 2 {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	holds("the plan")
	alone(t, path)
}

// F-OPT-05: a failed write leaves the former file as it was and no other file.
func TestFile_KeepsTheFormerOneWhenAWriteFails(t *testing.T) {
	path, holds := former(t)
	f := create(t, path)
	write(t, f, "half a plan")
	f.file.Close() // the next write fails, as on a full disk
	if _, err := io.WriteString(f, "and the rest"); err == nil {
		t.Error("wrote to a closed file")
	}
	want := fmt.Sprintf("write %s: file already closed", path)
	if err := f.Close(); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	holds("the plan before, which is longer")
	alone(t, path)
}

// F-OPT-05: a file that nothing was written to changes nothing.
func TestFile_ChangesNothingWithoutAWrite(t *testing.T) {
	path, holds := former(t)
	if err := create(t, path).Close(); err != nil {
		t.Error(err)
	}
	holds("the plan before, which is longer")
	if err := create(t, filepath.Join(filepath.Dir(path), "new.json")).Close(); err != nil {
		t.Error(err)
	}
	alone(t, path)
}

// F-OPT-05: a new file has the mode that the umask gives.
func TestFile_NewOneHasTheUsualMode(t *testing.T) {
	folder := t.TempDir()
	ours, other := filepath.Join(folder, "ours"), filepath.Join(folder, "other")
	if err := WriteFile(ours, []byte("plan")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, []byte("plan"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{ours, other} {
		if text, err := os.ReadFile(name); err != nil || string(text) != "plan" {
			t.Errorf("%s holds %q, %v", name, text, err)
		}
	}
	a, errA := os.Stat(ours)
	b, errB := os.Stat(other)
	if errA != nil || errB != nil || a.Mode() != b.Mode() {
		t.Errorf("modes %v and %v, %v, %v", a.Mode(), b.Mode(), errA, errB)
	}
}

// F-OPT-05: a link stays a link, whether or not its target exists yet.
func TestFile_FollowsLinks(t *testing.T) {
	path, holds := former(t)
	folder := filepath.Dir(path)
	target := filepath.Join(folder, "far", "new.json")
	if err := os.Mkdir(filepath.Dir(target), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"there": "plan.json", "chain": "there", "far/back": "../chain", "nowhere": "far/new.json"} {
		if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range []string{"there", "chain", "far/back", "nowhere"} {
		link = filepath.Join(folder, link)
		if err := WriteFile(link, []byte(link)); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
			t.Errorf("%s is %v, %v", link, info.Mode(), err)
		}
		if filepath.Base(link) == "nowhere" {
			if text, err := os.ReadFile(target); err != nil || string(text) != link {
				t.Errorf("the new file holds %q, %v", text, err)
			}
			continue
		}
		holds(link)
	}
	if err := WriteFile(filepath.Join(folder, "far", "no", "such"), nil); err == nil {
		t.Error("wrote to a folder that is not there")
	}
}

// F-OPT-05: devices, pipes and open files are written in place.
func TestFile_WritesDevicesPipesAndOpenFilesInPlace(t *testing.T) {
	if err := WriteFile(os.DevNull, []byte("plan")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s is %v, %v", os.DevNull, info.Mode(), err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer in.Close()
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("this system has no /dev/fd")
	}
	f := create(t, fmt.Sprintf("/dev/fd/%d", in.Fd()))
	write(t, f, "row") // readable at once
	got := make([]byte, 3)
	if _, err := io.ReadFull(out, got); err != nil || string(got) != "row" {
		t.Errorf("the pipe has %q, %v", got, err)
	}

	path, holds := former(t)
	open, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if err := WriteFile(fmt.Sprintf("/dev/fd/%d", open.Fd()), []byte("plan")); err != nil {
		t.Error(err)
	}
	if _, err := open.WriteString(", and more"); err != nil {
		t.Error(err)
	}
	holds("plan, and more")
	alone(t, path)
}

// F-OPT-05: a file that cannot be replaced by a rename is overwritten.
func TestFile_CopiesWhatCannotBeRenamed(t *testing.T) {
	path, holds := former(t)
	f := create(t, path)
	write(t, f, "plan")
	// A rename over a folder fails, as over a file mounted on its own.
	f.path = filepath.Join(filepath.Dir(filepath.Dir(path)))
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	holds("plan")
	alone(t, path)
}

// An empty name discards, and "-" is standard output.
func TestFile_EmptyNameAndStandardOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := WriteFile("", []byte("plan")); err != nil {
		t.Error(err)
	}
	out, err := os.Create("printed")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	os.Stdout = out
	if err := WriteFile("-", []byte("plan")); err != nil {
		t.Error(err)
	}
	fmt.Print(" and more") // it is still open
	if text, err := os.ReadFile("printed"); err != nil || string(text) != "plan and more" {
		t.Errorf("printed %q, %v", text, err)
	}
	alone(t, "printed")
}
