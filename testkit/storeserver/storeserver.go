package storeserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// answerTimeout bounds one question whether a server serves.
const answerTimeout = time.Second

// Redis runs a Redis server with settings, given as redis-server takes them, until the
// end of the test. It keeps what it acknowledged.
func Redis(tb TB, settings ...string) *Server {
	tb.Helper()
	program := find(tb, "redis-server")
	s := Start(tb, func(s *Server) *exec.Cmd {
		cmd := exec.Command(program, append([]string{
			"--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--dir", s.Dir,
			"--save", "", "--appendonly", "yes", "--appendfsync", "always",
		}, settings...)...)
		cmd.Dir = s.Dir
		return cmd
	}, func(ctx context.Context, s *Server) error {
		c := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, DialTimeout: answerTimeout, DisableIdentity: true})
		defer c.Close()
		return c.Ping(ctx).Err()
	})
	s.URL = "redis://" + s.Addr() + "/0"
	return s
}

// HasPostgres reports whether PostgreSQL is installed.
func HasPostgres() bool {
	path, err := look("initdb", postgresFolders)
	return err == nil && path != ""
}

// postgresFolders are where distributions that have several versions install it.
const postgresFolders = "/usr/lib/postgresql/*/bin"

// Postgres runs a PostgreSQL server with settings, such as fsync=off, and an empty
// database until the end of the test.
func Postgres(tb TB, settings ...string) *Server {
	tb.Helper()
	bin := filepath.Dir(find(tb, "initdb", postgresFolders))
	dir, as := postgresFolder(tb)
	command := func(program string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, program), args...)
		cmd.Dir = dir
		if as != nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
		}
		return cmd
	}
	data := filepath.Join(dir, "data")
	if out, err := command("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync").CombinedOutput(); err != nil {
		tb.Fatalf("initdb: %v\n%s", err, out)
	}
	url := func(s *Server) string { return fmt.Sprintf("postgres://postgres@%s/postgres", s.Addr()) }
	s := Start(tb, func(s *Server) *exec.Cmd {
		args := []string{"-D", data, "-p", strconv.Itoa(s.Port), "-h", "127.0.0.1", "-k", dir, "-c", "max_connections=200"}
		for _, setting := range settings {
			args = append(args, "-c", setting)
		}
		return command("postgres", args...)
	}, func(ctx context.Context, s *Server) error {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		conn, err := pgx.Connect(ctx, url(s))
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	s.URL = url(s)
	return s
}

// postgresFolder is a folder that the server may write, and the user that runs it: root
// cannot.
func postgresFolder(tb TB) (string, *syscall.Credential) {
	tb.Helper()
	dir, err := os.MkdirTemp("", "postgres") // the folders above a test's own are closed to others
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	if os.Geteuid() != 0 {
		return dir, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		tb.Fatal(err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		tb.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		tb.Fatal(err)
	}
	return dir, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// Mosquitto runs the MQTT broker with the lines of a configuration file until the end of the
// test. It keeps sessions and messages over a restart.
func Mosquitto(tb TB, lines ...string) *Server {
	tb.Helper()
	program := find(tb, "mosquitto", "/usr/sbin")
	s := Start(tb, func(s *Server) *exec.Cmd {
		file := filepath.Join(s.Dir, "mosquitto.conf")
		own := []string{fmt.Sprintf("listener %d 127.0.0.1", s.Port), "persistence_location " + s.Dir + "/"}
		if os.Geteuid() == 0 {
			own = append(own, "user root") // the folder is the test's
		}
		if err := os.WriteFile(file, []byte(strings.Join(append(own, lines...), "\n")+"\n"), 0o600); err != nil {
			tb.Fatal(err)
		}
		return exec.Command(program, "-c", file)
	}, func(ctx context.Context, s *Server) error {
		conn, err := (&net.Dialer{Timeout: answerTimeout}).DialContext(ctx, "tcp", s.Addr())
		if err != nil {
			return err
		}
		return conn.Close()
	})
	s.URL = "mqtt://" + s.Addr()
	return s
}
