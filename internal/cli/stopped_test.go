package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// An error counts as an interrupt only if nothing else went wrong.
func TestCancelled_RequiresThatNothingElseFailed(t *testing.T) {
	other := errors.New("disk full")
	for _, row := range []struct {
		err  error
		want bool
	}{
		{context.Canceled, true},
		{fmt.Errorf("read: %w", context.Canceled), true},
		{status.Error(codes.Canceled, "the call was cancelled"), true},
		{errors.Join(context.Canceled, status.Error(codes.Canceled, "too")), true},
		{errors.Join(context.Canceled, other), false},
		{errors.Join(other, context.Canceled), false},
		{context.DeadlineExceeded, false},
		{status.Error(codes.Unavailable, "away"), false},
		{other, false},
	} {
		if got := cancelled(row.err); got != row.want {
			t.Errorf("%v: %t", row.err, got)
		}
	}
}

// stubborn is a program whose commands ignore an interrupt, fail with a cancelled
// context although nobody interrupted them, or ignore errors of printing.
type stubborn struct {
	Hang    hang   `cmd:""`
	Cancel  cancel `cmd:""`
	Mumble  mumble `cmd:""`
	Version kong.VersionFlag
}

type hang struct{}

func (hang) Run(ctx context.Context) error {
	fmt.Println("began")
	<-ctx.Done()
	fmt.Println("told")
	select {}
}

type cancel struct{}

func (cancel) Run(context.Context) error { return context.Canceled }

type mumble struct{}

func (mumble) Run(context.Context) error {
	fmt.Fprintln(Stdout, "No orders yet.")
	return nil
}

// single is a program without commands.
type single struct{}

func (single) Run(ctx context.Context) error {
	fmt.Println("began")
	<-ctx.Done()
	return ctx.Err()
}

// asProgram is the variable that makes the test binary run as single, or as a command
// of stubborn.
const asProgram = "DRONEFLEET_TEST_COMMAND"

func TestMain(m *testing.M) {
	switch command := os.Getenv(asProgram); command {
	case "":
		os.Exit(m.Run())
	case "single":
		os.Args = []string{"single"}
		Main(&single{}, "A program without commands.")
	default:
		os.Args = append([]string{"stubborn"}, strings.Fields(command)...)
		Main(&stubborn{}, "A program that does not end.")
	}
}

func program(t *testing.T, command string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = []string{asProgram + "=" + command}
	return cmd
}

// The second interrupt kills a process that ignored the first.
func TestMain_SecondInterruptEndsTheProcess(t *testing.T) {
	cmd := program(t, "hang")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	interrupt := func() { _ = cmd.Process.Signal(os.Interrupt) } // fails once it has ended
	await := func(line string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != line {
			t.Fatalf("printed %q, want %q", lines.Text(), line)
		}
	}
	await("began")
	interrupt()
	await("told")
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }() // the state is checked below
	again := time.NewTicker(10 * time.Millisecond)     // the first may still be being handled
	defer again.Stop()
	giveUp := time.After(time.Minute)
	for over := false; !over; {
		interrupt()
		select {
		case <-ended:
			over = true
		case <-again.C:
		case <-giveUp:
			t.Fatal("it goes on")
		}
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGINT {
		t.Errorf("ended with %s", cmd.ProcessState)
	}
}

// An interrupted program without commands exits like an interrupted command.
func TestMain_ExitCodeAfterAnInterruptWithoutCommands(t *testing.T) {
	cmd := program(t, "single")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	cmd.Stderr = &told
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	bufio.NewScanner(out).Scan() // it began
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code is checked below
	if code := cmd.ProcessState.ExitCode(); code != interrupted || told.String() != "single: interrupted\n" {
		t.Errorf("exit code %d, printed %s", code, told.String())
	}
}

// A context cancelled without an interrupt is a failure. A wrong command line has a
// code of its own and names the help to read.
func TestMain_ExitCodeAfterAFailure(t *testing.T) {
	for _, row := range []struct {
		command string
		code    int
		told    string
	}{
		{"cancel", 1, "stubborn: context canceled\n"},
		{"fly", 2, "stubborn: unexpected argument fly; see \"stubborn --help\"\n"},
	} {
		cmd := program(t, row.command)
		out, _ := cmd.CombinedOutput() // the exit code is checked below
		if got := cmd.ProcessState.ExitCode(); got != row.code || !strings.HasSuffix(string(out), row.told) {
			t.Errorf("%s: exit code %d, printed %s", row.command, got, out)
		}
	}
}

// A command fails if its output cannot be written.
func TestMain_FailsWithoutItsOutput(t *testing.T) {
	unwritable, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer unwritable.Close()
	for _, command := range []string{"mumble", "--version", "--help", "mumble --help", "--print-settings", "mumble --print-config"} {
		cmd := program(t, command)
		var told strings.Builder
		cmd.Stdout, cmd.Stderr = unwritable, &told
		_ = cmd.Run() // the exit code is checked below
		if code := cmd.ProcessState.ExitCode(); code != 1 || strings.Count(told.String(), "\n") != 1 || !strings.Contains(told.String(), "write /dev/stdout: ") {
			t.Errorf("%s: exit code %d, printed %s", command, code, told.String())
		}
	}
}
