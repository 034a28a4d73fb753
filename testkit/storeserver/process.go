package storeserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startTimeout = time.Minute      // until a server serves: test machines are busy
	stopTimeout  = 20 * time.Second // until one that does not end is killed
)

// Server is a running server. Its methods are for the goroutine of the test.
type Server struct {
	Dir  string // its folder, removed with the test
	Port int    // on 127.0.0.1
	URL  string // of a store, without a password

	tb      TB
	command func(*Server) *exec.Cmd
	ready   func(context.Context, *Server) error
	cmd     *exec.Cmd
	log     *output
	exited  chan struct{}
}

// Addr is where the server listens.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// Start runs a server until the end of the test. command builds its command line, for each
// restart too; ready returns nil once it serves.
func Start(tb TB, command func(*Server) *exec.Cmd, ready func(context.Context, *Server) error) *Server {
	tb.Helper()
	s := &Server{Dir: tb.TempDir(), Port: freePort(tb), tb: tb, command: command, ready: ready, log: &output{}}
	s.Restart()
	tb.Cleanup(func() {
		s.end(syscall.SIGTERM)
		if tb.Failed() {
			tb.Logf("server at %s:\n%s", s.Addr(), s.log)
		}
	})
	return s
}

// find returns the path of a program, see look. A test whose program is missing is skipped.
func find(tb TB, program string, folders ...string) string {
	tb.Helper()
	path, err := look(program, folders...)
	switch {
	case err != nil:
		tb.Fatal(err)
	case path == "":
		tb.Skipf("%s is not installed", program)
	}
	return path
}

// look returns the path of a program, or "" if it is not installed. A variable such as
// REDIS_SERVER names the program to use instead of redis-server; otherwise PATH and the
// folders, which may be patterns, are searched.
func look(program string, folders ...string) (string, error) {
	variable := strings.ToUpper(strings.ReplaceAll(program, "-", "_"))
	if named := os.Getenv(variable); named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("%s names no program: %w", variable, err)
		}
		return path, nil
	}
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, folder := range folders {
		if found, _ := filepath.Glob(filepath.Join(folder, program)); len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", nil
}

// freePort is a port on which nobody listens now.
func freePort(tb TB) int {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// Kill ends the server at once; it saves nothing.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop ends the server in good order.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Pause suspends the server; Resume lets it run on.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig os.Signal) {
	s.tb.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.tb.Fatal(err)
	}
}

// Restart starts an ended server again, on the same port and folder.
func (s *Server) Restart() {
	s.tb.Helper()
	s.cmd = s.command(s)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		s.tb.Fatal(err)
	}
	exited := make(chan struct{})
	s.exited = exited
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait() // its log says why
		close(exited)
	}(s.cmd)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		err := s.ready(ctx, s)
		if err == nil {
			return
		}
		select {
		case <-exited:
			s.tb.Fatalf("%s ended: %v\n%s", s.cmd.Path, err, s.log)
		case <-ctx.Done():
			s.tb.Fatalf("%s does not serve: %v\n%s", s.cmd.Path, err, s.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// end signals the server and waits for its end.
func (s *Server) end(sig os.Signal) {
	select {
	case <-s.exited:
		return
	default:
	}
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.tb.Error(err)
	}
	select {
	case <-s.exited:
	case <-time.After(stopTimeout):
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
}

// output is what a server printed.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
