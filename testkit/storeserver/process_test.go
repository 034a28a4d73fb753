package storeserver

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

const (
	addrVariable = "STORESERVER_TEST_ADDR"
	soon         = 200 * time.Millisecond
)

// TestMain is the test, or the server that it starts: one that answers each connection
// with its process id.
func TestMain(m *testing.M) {
	if addr := os.Getenv(addrVariable); addr != "" {
		listener, err := net.Listen("tcp", addr)
		if err != nil {
			panic(err)
		}
		for {
			conn, err := listener.Accept()
			if err != nil {
				panic(err)
			}
			fmt.Fprintln(conn, os.Getpid())
			conn.Close()
		}
	}
	leaktest.Main(m)
}

func ask(ctx context.Context, s *Server, patience time.Duration) (string, error) {
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", s.Addr())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}

func TestServer_EndsAndStartsAgain(t *testing.T) {
	s := Start(t, func(s *Server) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Dir = s.Dir
		cmd.Env = append(os.Environ(), addrVariable+"="+s.Addr())
		return cmd
	}, func(ctx context.Context, s *Server) error {
		_, err := ask(ctx, s, soon)
		return err
	})
	seen := map[string]bool{}
	alive := func() {
		t.Helper()
		id, err := ask(t.Context(), s, 20*time.Second)
		if err != nil || seen[id] {
			t.Errorf("process %q, %v", id, err)
		}
		seen[id] = true
	}
	gone := func() {
		t.Helper()
		if id, err := ask(t.Context(), s, soon); err == nil {
			t.Errorf("process %q still serves", id)
		}
	}
	alive()
	for _, end := range []func(){s.Kill, s.Stop} {
		end()
		gone()
		s.Restart()
		alive()
	}
	s.Pause()
	gone()
	s.Resume()
	if _, err := ask(t.Context(), s, 20*time.Second); err != nil {
		t.Error(err)
	}
}

func TestFind_LooksInFolders(t *testing.T) {
	root := t.TempDir()
	for _, version := range []string{"14", "15"} {
		dir := filepath.Join(root, version, "bin")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "some-server"), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := find(t, "some-server", filepath.Join(root, "*", "bin")), filepath.Join(root, "15", "bin", "some-server"); got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}
