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

// An interrupt is told in a word only where nothing else went wrong.
func TestCancelled_IsNothingButThat(t *testing.T) {
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

// stubborn is a program whose commands do not end when told to, have their calls
// cancelled though nobody told them anything, or do not care whether they are heard.
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

// single is a program that has but one thing to do, and so no commands.
type single struct{}

func (single) Run(ctx context.Context) error {
	fmt.Println("began")
	<-ctx.Done()
	return ctx.Err()
}

// asProgram is the variable that makes the test binary one of them: the single
// one, or a command of the stubborn one.
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

// The second interrupt ends what the first one did not.
func TestMain_TheSecondInterruptEndsTheProcess(t *testing.T) {
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
	go func() { defer close(ended); _ = cmd.Wait() }() // its state tells
	again := time.NewTicker(10 * time.Millisecond)     // the first may still be being noted
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

// A program without commands that is told to stop has no result either.
func TestMain_ExitCodeOfTheInterruptedWithoutCommands(t *testing.T) {
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
	_ = cmd.Wait() // its exit code tells
	if code := cmd.ProcessState.ExitCode(); code != interrupted || told.String() != "single: interrupted\n" {
		t.Errorf("exit code %d, printed %s", code, told.String())
	}
}

// What was cancelled for another reason is a failure, and no interrupt; a wrong
// command line is neither, and is told where to look.
func TestMain_ExitCodeOfTheFailed(t *testing.T) {
	for _, row := range []struct {
		command string
		code    int
		told    string
	}{
		{"cancel", 1, "stubborn: context canceled\n"},
		{"fly", 2, "stubborn: unexpected argument fly; see \"stubborn --help\"\n"},
	} {
		cmd := program(t, row.command)
		out, _ := cmd.CombinedOutput() // its exit code tells
		if got := cmd.ProcessState.ExitCode(); got != row.code || !strings.HasSuffix(string(out), row.told) {
			t.Errorf("%s: exit code %d, printed %s", row.command, got, out)
		}
	}
}

// What could not be printed was not told, whatever it was.
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
		_ = cmd.Run() // its exit code tells
		if code := cmd.ProcessState.ExitCode(); code != 1 || strings.Count(told.String(), "\n") != 1 || !strings.Contains(told.String(), "write /dev/stdout: ") {
			t.Errorf("%s: exit code %d, printed %s", command, code, told.String())
		}
	}
}
