package postgreslock

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/dronefleet/dronefleet/lock"
)

var bg = context.Background()

const (
	ttl = 30 * time.Second
	// skew is how far the server's clock may seem to be off this machine's.
	skew = 5 * time.Millisecond
)

// cluster is a Postgres server of the tests' own. Methods panic: it serves TestMain too.
type cluster struct {
	bin, dir string
	port     int
	as       *syscall.Credential // root cannot run Postgres
	cmd      *exec.Cmd
	exited   chan struct{}
	log      bytes.Buffer
}

// shared is the server of all tests that do not stop it; nil where none is installed.
var shared *cluster

func TestMain(m *testing.M) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		os.Exit(m.Run())
	}
	shared = newCluster(filepath.Dir(found[len(found)-1]), "fsync=off")
	code := m.Run()
	shared.remove()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func newCluster(bin string, options ...string) *cluster {
	dir, err := os.MkdirTemp("", "postgreslock")
	must(err)
	c := &cluster{bin: bin, dir: dir}
	if os.Geteuid() == 0 {
		u, err := user.Lookup("postgres")
		must(err)
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		must(err)
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		must(err)
		c.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		must(os.Chown(dir, int(uid), int(gid)))
	}
	initdb := c.command("initdb", "-D", filepath.Join(dir, "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("initdb: %v\n%s", err, out))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	c.port = listener.Addr().(*net.TCPAddr).Port
	must(listener.Close())
	c.start(options...)
	return c
}

func (c *cluster) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, program), args...)
	cmd.Dir = c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.as}
	return cmd
}

// start runs the server and waits until it serves.
func (c *cluster) start(options ...string) {
	args := []string{"-D", filepath.Join(c.dir, "data"), "-p", strconv.Itoa(c.port), "-k", c.dir,
		"-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"}
	for _, option := range options {
		args = append(args, "-c", option)
	}
	c.cmd = c.command("postgres", args...)
	c.cmd.Stderr = &c.log
	must(c.cmd.Start())
	exited := make(chan struct{})
	c.exited = exited
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait()
		close(exited)
	}(c.cmd)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := pgx.Connect(bg, c.dsn("postgres"))
		if err == nil {
			must(conn.Close(bg))
			return
		}
		if time.Now().After(end) {
			panic(fmt.Sprintf("postgres does not serve: %v\n%s", err, c.log.String()))
		}
	}
}

// stop ends the server: SIGINT in good order, SIGKILL as a crash.
func (c *cluster) stop(sig syscall.Signal) {
	must(c.cmd.Process.Signal(sig))
	<-c.exited
}

func (c *cluster) remove() {
	c.stop(syscall.SIGINT)
	must(os.RemoveAll(c.dir))
}

func (c *cluster) dsn(database string) string {
	return fmt.Sprintf("host=%s port=%d user=postgres dbname=%s", c.dir, c.port, database)
}

var databases atomic.Int64

// database makes one of the test's own and returns how to connect to it.
func (c *cluster) database(tb testing.TB) string {
	tb.Helper()
	conn, err := pgx.Connect(bg, c.dsn("postgres"))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(bg) }()
	name := fmt.Sprintf("test%d", databases.Add(1))
	if _, err := conn.Exec(bg, "CREATE DATABASE "+name); err != nil {
		tb.Fatal(err)
	}
	return c.dsn(name)
}

func needPostgres(tb testing.TB) {
	tb.Helper()
	if shared == nil {
		tb.Skip("postgres is not installed")
	}
}

// newPool opens a pool, closed with the test.
func newPool(tb testing.TB, dsn string) *pgxpool.Pool {
	tb.Helper()
	pool, err := pgxpool.New(bg, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

// newBackend makes a backend on a pool, closed with the test.
func newBackend(tb testing.TB, pool *pgxpool.Pool, cfg Config) *Backend {
	tb.Helper()
	b, err := New(pool, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(bg); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// fresh makes a backend on a migrated database of the test's own.
func fresh(tb testing.TB) (*Backend, *pgxpool.Pool) {
	tb.Helper()
	needPostgres(tb)
	pool := newPool(tb, shared.database(tb))
	if err := Migrate(bg, pool, Config{}); err != nil {
		tb.Fatal(err)
	}
	return newBackend(tb, pool, Config{}), pool
}

func mustAcquire(tb testing.TB, b lock.Backend, key string) lock.AcquireResult {
	tb.Helper()
	res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
	if err != nil || !res.OK {
		tb.Fatalf("acquire: %+v, %v", res, err)
	}
	return res
}

func mustRelease(tb testing.TB, b lock.Backend, ref lock.Ref) {
	tb.Helper()
	if res, err := b.Release(bg, ref); err != nil || !res.OK {
		tb.Fatalf("release: %+v, %v", res, err)
	}
}
