package main_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

// onEachStore runs a test with the locks in Redis and in PostgreSQL, at the same time.
func onEachStore(t *testing.T, test func(*testing.T, *storeserver.Server)) {
	for name, start := range map[string]func(*testing.T) *storeserver.Server{
		"redis":    func(t *testing.T) *storeserver.Server { return storeserver.Redis(t) },
		"postgres": func(t *testing.T) *storeserver.Server { return storeserver.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

// L-FENCE-01, L-RTY-06, L-END-03, B-01: on Redis and PostgreSQL, as on Firestore, locktool runs
// a command with a rising fence, keeps others out, shows and breaks the lock, and stops a
// command whose lock was broken or whose store is gone.
func TestStores_RunStatusBreakMigrate(t *testing.T) {
	onEachStore(t, func(t *testing.T, server *storeserver.Server) {
		postgres := strings.HasPrefix(server.URL, "postgres")
		call := func(code int, args ...string) (stdout, stderr string) {
			t.Helper()
			return ends(t, code, toolOn(t, server.URL, args...))
		}
		says := func(want string, code int, args ...string) {
			t.Helper()
			if out, _ := call(code, args...); !regexp.MustCompile(want).MatchString(out) {
				t.Errorf("%q printed %q, want %s", args, out, want)
			}
		}
		if postgres {
			if out, errs := call(125, "run", "nightly", "--", "echo", "ran"); out != "" || !strings.Contains(errs, "SQLSTATE 42883: the lock's tables or functions are missing; run locktool migrate") {
				t.Errorf("without tables it printed %s%s", out, errs)
			}
			says("^postgres://127.0.0.1:.* has the tables of the locks\n$", 0, "migrate")
			says(" has the tables of the locks\n$", 0, "migrate") // again
		} else {
			says("^redis://127.0.0.1:.*/0 needs no tables\n$", 0, "migrate")
		}

		says("^nightly 000000000000001\n$", 0, underLock("echo $LOCK_KEY $LOCK_FENCE")...)
		says("^nightly 000000000000002\n$", 7, underLock("echo $LOCK_KEY $LOCK_FENCE; exit 7")...)
		says("^free\n$", 1, "status", "nightly")

		held, _ := begins(t, toolOn(t, server.URL, underLock("trap 'echo asked; exit' TERM; echo ready; while :; do sleep 0.05; done", "--ttl=3s")...))
		if out, errs := call(123, "run", "nightly", "--", "echo", "ran"); out != "" || !strings.Contains(errs, "the lock is held") {
			t.Errorf("a second one printed %s%s", out, errs)
		}
		says(`^held: fence 000000000000003, since \S+Z, until \S+Z unless extended\n$`, 0, "status", "nightly")
		says("^broken: fence 000000000000003, since ", 0, "break", "nightly", "--reason=trial")
		if got := held.line(); got != "asked" {
			t.Errorf("the command printed %q", got)
		}
		held.exits(124)
		if !strings.Contains(held.stderr.String(), "ownership lost") {
			t.Errorf("printed %s", held.stderr)
		}
		says("^free\n$", 1, "break", "nightly", "--reason=again")

		orphan, _ := begins(t, toolOn(t, server.URL, underLock("echo ready; exec sleep 1000", "--ttl=2s")...))
		server.Kill()
		orphan.exits(124)
		if !strings.Contains(orphan.stderr.String(), "lease no longer proven") {
			t.Errorf("printed %s", orphan.stderr)
		}
		if out, errs := call(125, "status", "nightly"); out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "ServiceUnavailable") {
			t.Errorf("without its store it printed %s%s", out, errs)
		}
	})
}

// A wrong password is refused in one line that does not show it.
func TestStores_PasswordStaysSecret(t *testing.T) {
	server := storeserver.Redis(t)
	for _, user := range []string{"app@", "app:hunter2@"} {
		address := strings.Replace(server.URL, "redis://", "redis://"+user, 1)
		cmd := toolOn(t, address, "run", "nightly", "--log-level=debug", "--", "echo", "ran")
		cmd.Env = append(cmd.Env, connect.LockPassword+"=hunter2")
		out, errs := ends(t, 125, cmd)
		if last := lastLine(errs); out != "" || !strings.Contains(last, "AuthFailed") || strings.Contains(errs, "hunter2") {
			t.Errorf("printed %s%s", out, errs)
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
