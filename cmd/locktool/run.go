package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/lock"
)

type runCommand struct {
	oneLock
	Command []string      `arg:"" help:"The command and its arguments, after --."`
	Wait    time.Duration `help:"How long to wait for a lock that is held; 0s to try once." default:"0s" check:"min 0s"`
	TTL     time.Duration `help:"How long a crash of this machine blocks others. The lease is extended while the command runs." default:"30s" name:"ttl" check:"min 1s max 1h"`
	MaxHold time.Duration `help:"Let the lease end after this time, so that a command that hangs is stopped; 0s for no limit." default:"0s" check:"min 0s"`
	Grace   time.Duration `help:"How long the command has between SIGTERM and SIGKILL when the lease is lost. Others may have the lock one second after SIGTERM, or at once if it was broken." default:"1s" check:"min 0s max 1h"`
}

// Check implements config.Checker.
func (c *runCommand) Check(r *config.Refuser) {
	c.oneLock.Check(r)
	if c.TTL%time.Millisecond != 0 {
		r.Refuse("ttl", "must be a whole number of milliseconds, such as 30s")
	}
}

// Help gives examples for --help.
func (*runCommand) Help() string {
	return `The command finds the key in LOCK_KEY and the fence in LOCK_FENCE: 15 digits that compare as
strings and rise with every holder. Pass the fence with each write and let the resource refuse
a lower one; only that stops a command that was paused past the end of its lease.

The exit status is the command's own (128 and the signal's number if a signal ended it), or:

    123  somebody else held the lock for as long as --wait
    124  the lease was lost, and the command was stopped
    125  locktool failed; the command did not run
    126  the command cannot be executed
    127  the command was not found

Examples:

    locktool run --store firestore://my-project billing:nightly -- ./bill.sh --month 11
    locktool run --wait 10m deploy:shop -- make deploy
    locktool run --max-hold 1h import -- sh -c 'psql -v fence="$LOCK_FENCE" -f import.sql'`
}

// Run holds the lock while the command runs.
func (c *runCommand) Run(ctx context.Context) error {
	path, err := exec.LookPath(c.Command[0])
	if err != nil {
		return unstarted(err)
	}
	return c.with(ctx, func(locks lock.Store, log *slog.Logger) error {
		h, err := c.acquire(ctx, locks, log)
		if err != nil {
			return err
		}
		err = c.runUnder(ctx, h, path)
		if lost := release(ctx, h, log); lost != nil {
			return &cli.Exit{Status: statusLost, Err: fmt.Errorf("the command ran without the lock and may have been stopped: %w", lost)}
		}
		return err
	})
}

// release gives the lock up. Its error says that the lease was lost before.
func release(ctx context.Context, h *lock.Handle, log *slog.Logger) error {
	if lost := context.Cause(h.Context()); lost != nil {
		return lost
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	released, err := h.Release(ctx)
	switch {
	case err != nil:
		log.WarnContext(ctx, "the lock was not released; it will expire", slog.Any("err", err))
	case !released: // the lease ended unnoticed
		return lock.ErrOwnershipLost
	}
	return nil
}

// acquire waits for the lock as long as --wait says.
func (c *runCommand) acquire(ctx context.Context, locks lock.Store, log *slog.Logger) (*lock.Handle, error) {
	options := []lock.Option{lock.WithTTL(c.TTL), lock.WithAutoExtend(), lock.WithMaxHold(c.MaxHold), lock.WithLogger(log)}
	if c.Wait == 0 {
		h, free, err := lock.TryAcquire(ctx, locks, c.Key, append(options, lock.WithTimeout(answerTimeout))...)
		if err == nil && !free {
			return nil, &cli.Exit{Status: statusNotAcquired, Err: errors.New("the lock is held; use --wait to wait for it")}
		}
		return h, err
	}
	log.DebugContext(ctx, "waiting for the lock", slog.Duration("at_most", c.Wait))
	h, err := lock.Acquire(ctx, locks, c.Key, append(options, lock.WithTimeout(c.Wait), lock.WithMaxRetries(math.MaxInt), lock.WithRetryTransient())...)
	if errors.Is(err, lock.ErrAcquisitionTimeout) {
		return nil, &cli.Exit{Status: statusNotAcquired, Err: fmt.Errorf("the lock was not free within --wait=%s: %w", c.Wait, err)}
	}
	return h, err
}

// runUnder runs the command to its end and forwards signals to it. The error is its exit
// status.
func (c *runCommand) runUnder(ctx context.Context, h *lock.Handle, path string) error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, slices.DeleteFunc(slices.Clone(forwarded), signal.Ignored)...)
	defer signal.Stop(signals)
	if ctx.Err() != nil { // interrupted while the lock was granted
		return ctx.Err()
	}
	cmd := exec.Command(path, c.Command[1:]...)
	cmd.Args[0] = c.Command[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "LOCK_KEY="+c.Key, "LOCK_FENCE="+string(h.Fence()))
	p := process{cmd: cmd}
	runtime.LockOSThread() // the command is killed when the thread that started it ends
	if err := p.start(); err != nil {
		return unstarted(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	lost, kill := h.Context().Done(), (<-chan time.Time)(nil)
	for {
		select {
		case s := <-signals:
			p.signal(s)
		case <-lost:
			p.signal(syscall.SIGTERM)
			lost, kill = nil, time.After(c.Grace)
		case <-kill:
			p.signal(syscall.SIGKILL)
			kill = nil
		case <-ended:
			return exitOf(cmd.ProcessState)
		}
	}
}

// unstarted is the exit of a command that cannot be started.
func unstarted(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &cli.Exit{Status: statusNotFound, Err: err}
	}
	return &cli.Exit{Status: statusCannotExecute, Err: err}
}

// exitOf passes on how a command ended.
func exitOf(state *os.ProcessState) error {
	status := state.ExitCode()
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		status = statusSignalled + int(w.Signal())
	}
	if status == 0 {
		return nil
	}
	return &cli.Exit{Status: status}
}
