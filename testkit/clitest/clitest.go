package clitest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/internal/connect"
)

// Patience bounds a test against a command that hangs.
const Patience = 2 * time.Minute

// Program is a command under cmd/, by name. It is built when a test first
// needs it.
type Program string

// built holds what Path has found in this process.
var built struct {
	mu    sync.Mutex
	paths map[Program]string
}

// Path returns where the program's binary is. "go run" links it and keeps it in the build
// cache, so that all packages and later runs share it until a source file changes.
func (p Program) Path(t testing.TB) string {
	t.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if path, known := built.paths[p]; known {
		return path
	}
	path := ""
	for range 2 { // the run that links prints a temporary file, the next one the cached copy
		cmd := exec.Command("go", "run", "-exec=echo", "github.com/dronefleet/dronefleet/cmd/"+string(p))
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("build %s: %v\n%s", p, err, errs.String())
		}
		path = strings.TrimSpace(string(out))
		if _, err := os.Stat(path); err == nil {
			break
		}
	}
	if built.paths == nil {
		built.paths = map[Program]string{}
	}
	built.paths[p] = path
	return path
}

// Command prepares a call of the program against hosts. Its environment names
// the hosts and nothing else.
func (p Program) Command(t testing.TB, hosts connect.Config, args ...string) *exec.Cmd {
	t.Helper()
	path := p.Path(t) // a build takes its own time
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "GOOGLE_CLOUD_PROJECT=" + hosts.Project}
	if hosts.FirestoreHost != "" {
		cmd.Env = append(cmd.Env, connect.FirestoreHost+"="+hosts.FirestoreHost, connect.PubSubHost+"="+hosts.PubSubHost)
	}
	return cmd
}

// Run runs the program to its end, fails the test unless it ends with code, and
// returns what it printed.
func (p Program) Run(t testing.TB, hosts connect.Config, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	cmd := p.Command(t, hosts, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && !failed {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("%v: exit code %d, want %d (%v)\n%s%s", args, got, code, exit, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// Refuses runs the program, which must end with code and print nothing but one
// line that holds every part. A wrong command line (code 2) may print its usage
// before that line.
func (p Program) Refuses(t testing.TB, hosts connect.Config, code int, parts []string, args ...string) {
	t.Helper()
	out, errs := p.Run(t, hosts, code, args...)
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(errs), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "waiting for ") // printed on a slow machine
	})
	last := lines[len(lines)-1]
	if code == 1 && (len(lines) != 1 || out != "") {
		t.Errorf("%v: printed more than one line:\n%s%s", args, out, errs)
	}
	for _, part := range parts {
		if !strings.Contains(last, part) {
			t.Errorf("%v: %q lacks %q", args, last, part)
		}
	}
}

// Process is a program that runs until it is told to stop.
type Process struct {
	Cmd            *exec.Cmd
	Stdout, Stderr *bufio.Reader
	Keep           io.Writer // gets what Interrupt reads from Stderr, if set

	t testing.TB
}

// Start starts the program.
func (p Program) Start(t testing.TB, hosts connect.Config, args ...string) *Process {
	t.Helper()
	s := &Process{t: t, Cmd: p.Command(t, hosts, args...)}
	stdout, err := s.Cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := s.Cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.Stdout, s.Stderr = bufio.NewReader(stdout), bufio.NewReader(stderr)
	if err := s.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// Find reads lines from r up to one that holds prefix, and returns the rest of
// that line.
func (s *Process) Find(r *bufio.Reader, prefix string) string {
	s.t.Helper()
	for {
		text, err := r.ReadString('\n')
		if _, rest, ok := strings.Cut(text, prefix); ok {
			return strings.TrimSpace(rest)
		}
		if err != nil {
			s.t.Fatalf("%v ended without %q: %v", s.Cmd.Args, prefix, err)
		}
	}
}

// Hosts reads the addresses of the embedded servers from the lines that dev and
// emulators print for a shell.
func (s *Process) Hosts() connect.Config {
	s.t.Helper()
	return connect.Config{
		FirestoreHost: s.Find(s.Stdout, "export "+connect.FirestoreHost+"="),
		PubSubHost:    s.Find(s.Stdout, "export "+connect.PubSubHost+"="),
	}
}

// Interrupt sends SIGINT, as Ctrl-C does, and expects success.
func (s *Process) Interrupt() {
	s.t.Helper()
	if err := s.Cmd.Process.Signal(syscall.SIGINT); err != nil {
		s.t.Fatal(err)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, s.Stdout) // until the process ends
	}()
	errs, _ := io.ReadAll(s.Stderr) // likewise
	<-drained
	if s.Keep != nil {
		_, _ = s.Keep.Write(errs) // to a builder, which cannot fail
	}
	if err := s.Cmd.Wait(); err != nil {
		s.t.Errorf("%v: %v\n%s", s.Cmd.Args, err, errs)
	}
}
