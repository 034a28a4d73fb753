package main_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/clitest"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

const locktool = clitest.Program("locktool")

// tool prepares a call of locktool without a terminal.
func tool(t *testing.T, hosts connect.Config, args ...string) *exec.Cmd {
	t.Helper()
	cmd := locktool.Command(t, hosts, args...)
	cmd.Env = append(cmd.Env, "LOCK_STORE=firestore://"+hosts.Project, "PATH="+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// toolOn is tool for the store at an address.
func toolOn(t *testing.T, address string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := tool(t, connect.Config{}, args...)
	cmd.Env = append(cmd.Env, "LOCK_STORE="+address)
	return cmd
}

// ends runs a call of locktool, which must end with code, and returns what it printed.
func ends(t *testing.T, code int, cmd *exec.Cmd) (stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("%q: exit code %d, want %d\n%s%s", cmd.Args[1:], got, code, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// running is a locktool whose command has started.
type running struct {
	*exec.Cmd
	t      *testing.T
	lines  *bufio.Scanner // of its standard output
	stderr *strings.Builder
}

// starts runs a shell script under a lock. The script must print a line at its start.
func starts(t *testing.T, hosts connect.Config, script string, flags ...string) (r running, first string) {
	t.Helper()
	return begins(t, tool(t, hosts, underLock(script, flags...)...))
}

// underLock is the command line that runs a shell script under a lock.
func underLock(script string, flags ...string) []string {
	return append(append([]string{"run", "nightly"}, flags...), "--", "sh", "-c", script)
}

// begins starts a call of locktool whose command prints a line at its start.
func begins(t *testing.T, cmd *exec.Cmd) (r running, first string) {
	t.Helper()
	r = running{Cmd: cmd, t: t, stderr: &strings.Builder{}}
	r.Stderr = r.stderr
	out, err := r.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	r.lines = bufio.NewScanner(out)
	return r, r.line()
}

func (r running) line() string {
	r.t.Helper()
	if !r.lines.Scan() {
		_ = r.Wait() // its output says why
		r.t.Fatalf("%q ended: %s", r.Args[1:], r.stderr)
	}
	return r.lines.Text()
}

// exits waits for the end.
func (r running) exits(code int) {
	r.t.Helper()
	for r.lines.Scan() {
	}
	_ = r.Wait() // the exit code is checked below
	if got := r.ProcessState.ExitCode(); got != code {
		r.t.Errorf("%q: exit code %d, want %d\n%s", r.Args[1:], got, code, r.stderr)
	}
}

func sends(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// gone waits until a process has ended; its entry may wait for its parent.
func gone(t *testing.T, pid string) {
	t.Helper()
	emutest.Eventually(t, "the end of process "+pid, func() error {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			return fmt.Errorf("it runs: %s", stat)
		}
		return nil
	})
}

// L-RTY-06, L-FENCE-01: the command runs once, with the key, a rising fence and the
// standard streams, its exit status is passed on, and the lock is free afterwards.
func TestRun_PassesEverythingOn(t *testing.T) {
	hosts := emutest.Hosts(t)
	for i, c := range []struct {
		script string
		code   int
	}{
		{"cat; echo $LOCK_KEY $LOCK_FENCE; echo note >&2", 0},
		{"cat; echo $LOCK_KEY $LOCK_FENCE; echo note >&2; exit 7", 7},
		{"cat; echo $LOCK_KEY $LOCK_FENCE; echo note >&2; kill -s USR1 $$", 128 + int(syscall.SIGUSR1)},
	} {
		cmd := tool(t, hosts, "run", "shop:deploy", "--", "sh", "-c", c.script)
		cmd.Stdin = strings.NewReader("fed\n")
		out, errs := ends(t, c.code, cmd)
		if want := fmt.Sprintf("fed\nshop:deploy %015d\n", i+1); out != want || errs != "note\n" {
			t.Errorf("printed %q and %q, want %q", out, errs, want)
		}
		if out, _ := ends(t, 1, tool(t, hosts, "status", "shop:deploy")); out != "free\n" {
			t.Errorf("afterwards: %s", out)
		}
	}
}

// The tool's own failures have exit statuses of their own, say why in one line, and do
// not show a password.
func TestRun_OwnStatuses(t *testing.T) {
	hosts := emutest.Hosts(t)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(code int, want string, args ...string) {
		t.Helper()
		out, errs := ends(t, code, tool(t, hosts, append([]string{"run"}, args...)...))
		if out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, want) || strings.Contains(errs, "hunter2") {
			t.Errorf("%q printed %s%s, want %q", args, out, errs, want)
		}
	}
	run(127, "not found", "k", "--", "no-such-command")
	run(127, "no such file", "k", "--", "./no-such-command")
	run(126, "permission denied", "k", "--", plain)
	run(125, "unknown flag", "k", "--forever", "--", "true")
	run(125, "or firestore://PROJECT", "k", "--store=mysql://u:hunter2@h/db", "--", "true")
	run(125, "not a Google Cloud project id", "k", "--store=firestore://My Project", "--", "true")
	run(125, "key", "", "--", "true")
	run(125, "whole number of milliseconds", "k", "--ttl=1500us1s", "--", "true")

	holder, _ := starts(t, hosts, "echo ready; exec sleep 1000")
	in := holder.Process.Pid
	run(123, "--wait", "nightly", "--", "true")
	run(123, "not free within", "nightly", "--wait=300ms", "--", "true")
	out, _ := ends(t, 0, tool(t, hosts, "status", "nightly"))
	if !regexp.MustCompile(`^held: fence 0{14}1, since \S+Z, until \S+Z unless extended\n$`).MatchString(out) {
		t.Errorf("printed %s", out)
	}
	out, _ = ends(t, 0, tool(t, hosts, "status", "nightly", "--json"))
	if !strings.HasPrefix(out, `{"locked":true,"lock":{"keyHash":"`) {
		t.Errorf("printed %s", out)
	}
	sends(t, in, syscall.SIGTERM)
	holder.exits(128 + int(syscall.SIGTERM))
	if out, _ := ends(t, 1, tool(t, hosts, "status", "nightly", "--json")); out != "{\"locked\":false}\n" {
		t.Errorf("printed %s", out)
	}
}

// B-07: --wait takes the lock as soon as it is free.
func TestRun_Waits(t *testing.T) {
	hosts := emutest.Hosts(t)
	holder, _ := starts(t, hosts, "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done")
	waiter := tool(t, hosts, "run", "nightly", "--wait=2m", "--", "sh", "-c", "echo $LOCK_FENCE")
	waiter.Stderr = os.Stderr
	stdout, err := waiter.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := waiter.Start(); err != nil {
		t.Fatal(err)
	}
	sends(t, holder.Process.Pid, syscall.SIGTERM)
	holder.exits(0)
	out, _ := io.ReadAll(stdout) // up to the waiter's end
	if err := waiter.Wait(); err != nil || string(out) != "000000000000002\n" {
		t.Errorf("printed %q, %v", out, err)
	}
}

// Who waits for the lock and is interrupted runs nothing.
func TestRun_InterruptedWhileWaiting(t *testing.T) {
	hosts := emutest.Hosts(t)
	holder, _ := starts(t, hosts, "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done")
	waiter := tool(t, hosts, "run", "nightly", "--wait=2m", "--log-level=debug", "--", "echo", "ran")
	errs, err := waiter.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := waiter.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(errs)
	for lines.Scan() && !strings.Contains(lines.Text(), "waiting for the lock") {
	}
	sends(t, waiter.Process.Pid, syscall.SIGTERM)
	told := ""
	for lines.Scan() {
		told = lines.Text()
	}
	_ = waiter.Wait() // the exit code is checked below
	if code := waiter.ProcessState.ExitCode(); code != 130 || told != "locktool: interrupted" {
		t.Errorf("exit code %d: %s", code, told)
	}
	sends(t, holder.Process.Pid, syscall.SIGTERM)
	holder.exits(0)
}

// B-01, L-END-03: when the lock is broken the command gets SIGTERM, and what is left of
// it and of what it started SIGKILL.
func TestRun_LeaseBroken(t *testing.T) {
	hosts := emutest.Hosts(t)
	r, child := starts(t, hosts, "trap 'echo asked' TERM; sleep 1000 & echo $!; echo $$; while :; do wait; done", "--ttl=3s", "--grace=2s")
	shell := r.line()
	out, errs := ends(t, 0, tool(t, hosts, "break", "nightly", "--reason=host lost power"))
	if !strings.HasPrefix(out, "broken: fence 000000000000001, since ") || strings.Count(errs, "\n") != 1 ||
		!strings.Contains(errs, `"message":"breaking a lock","reason":"host lost power","by":"`) || strings.Contains(errs, "nightly") {
		t.Errorf("printed %s and %s", out, errs)
	}
	if got := r.line(); got != "asked" {
		t.Errorf("printed %q", got)
	}
	r.exits(124)
	if !strings.Contains(r.stderr.String(), "ownership lost") {
		t.Errorf("printed %s", r.stderr)
	}
	gone(t, child)
	gone(t, shell)
	if out, _ := ends(t, 1, tool(t, hosts, "break", "nightly", "--reason=again")); out != "free\n" {
		t.Errorf("printed %s", out)
	}
	ends(t, 125, tool(t, hosts, "break", "nightly", "--reason= "))
}

// A lock that was broken unnoticed, shortly before the command ended, is noticed by the
// release.
func TestRun_LeaseBrokenBetweenExtensions(t *testing.T) {
	hosts := emutest.Hosts(t)
	end := filepath.Join(t.TempDir(), "end")
	r, _ := starts(t, hosts, "echo ready; while ! test -e "+end+"; do sleep 0.05; done", "--ttl=30m")
	ends(t, 0, tool(t, hosts, "break", "nightly", "--reason=trial"))
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.exits(124)
}

// B-01: a store that no longer answers ends the command before its lease ends.
func TestRun_StoreGone(t *testing.T) {
	server, err := firestoreemu.Start(firestoreemu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(connect.FirestoreHost, server.Addr())
	hosts := emutest.Hosts(t)
	r, _ := starts(t, hosts, "echo ready; exec sleep 1000", "--ttl=2s")
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	r.exits(124)
	if !strings.Contains(r.stderr.String(), "lease no longer proven") {
		t.Errorf("printed %s", r.stderr)
	}
}

// B-10: --max-hold stops a command that hangs.
func TestRun_MaxHold(t *testing.T) {
	r, _ := starts(t, emutest.Hosts(t), "echo ready; exec sleep 1000", "--ttl=1s", "--max-hold=2s")
	r.exits(124)
}

// Nobody extends the lease when locktool is killed, so the command does not survive it.
func TestRun_KilledWithItsCommand(t *testing.T) {
	r, pid := starts(t, emutest.Hosts(t), "echo $$; exec sleep 1000")
	sends(t, r.Process.Pid, syscall.SIGKILL)
	r.exits(-1)
	gone(t, pid)
}

// What the command itself has started survives kill -9 of locktool, as docs/lock.md says.
func TestRun_KilledWithoutWhatTheCommandStarted(t *testing.T) {
	r, pid := starts(t, emutest.Hosts(t), "sleep 1000 >/dev/null 2>&1 & echo $!; wait")
	started, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	sends(t, r.Process.Pid, syscall.SIGKILL)
	r.exits(-1)
	sends(t, started, syscall.SIGKILL) // fails if it is gone
	gone(t, pid)
}
