package syncguard

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

// Need skips a test where SyncGuard is not installed.
func Need(tb testing.TB) {
	tb.Helper()
	if os.Getenv("SYNCGUARD_DIR") == "" {
		tb.Skip("SYNCGUARD_DIR is not set: SyncGuard is not installed")
	}
}

// Process runs bench/peers/syncguard_worker.mjs, which does one thing at a time.
type Process struct {
	mu       sync.Mutex
	commands *json.Encoder
	answers  *bufio.Reader
}

// Answer is SyncGuard's answer to any operation.
type Answer struct {
	OK           bool
	LockID       string
	Fence        string
	ExpiresAtMs  float64
	AcquiredAtMs float64
	Reason       string
	Key          string
	KeyHash      string
	LockIDHash   string
	Took         []float64   // of contend, ms of each acquisition
	Holders      []int       // of contend, the worker of each acquisition
	Failures     []lock.Code // of contend, of the errors that ended an attempt
	Code         lock.Code   // of an error
	Message      string
}

// Err is the error that was answered, if any.
func (a Answer) Err() error {
	if a.Code == "" {
		return nil
	}
	return &lock.Error{Code: a.Code, Err: errors.New(a.Message)}
}

// Start runs a process until the end of the test.
func Start(tb testing.TB, env ...string) *Process {
	tb.Helper()
	worker := filepath.Join(moduleRoot(tb), "bench/peers/syncguard_worker.mjs")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // a process that hangs
	cmd := exec.CommandContext(ctx, "node", worker)
	cmd.Env = append(os.Environ(), env...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		defer cancel()
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			tb.Errorf("SyncGuard's process: %v", err)
		}
		if tb.Failed() {
			tb.Logf("SyncGuard's process said: %s", complaints.String())
		}
	})
	return &Process{commands: json.NewEncoder(in), answers: bufio.NewReader(out)}
}

// moduleRoot is the folder of go.mod, above the one that a test runs in. The paths that the
// compiler knows are cut by -trimpath.
func moduleRoot(tb testing.TB) string {
	tb.Helper()
	at, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			tb.Fatal("no folder above has a go.mod; run the test from the module")
		}
		at = filepath.Dir(at)
	}
}

// Ask sends a command and returns its answer. An error is the process's, not SyncGuard's.
func (p *Process) Ask(command map[string]any) (Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.commands.Encode(command); err != nil {
		return Answer{}, err
	}
	line, err := p.answers.ReadBytes('\n')
	if err != nil {
		return Answer{}, err
	}
	var a Answer
	return a, json.Unmarshal(line, &a)
}

// On is SyncGuard on one store: "project" names a Firestore database, "redis" the address
// of a Redis and "prefix" that of its keys, "postgres" the URL of a database.
func (p *Process) On(tb testing.TB, store map[string]any) Peer { return Peer{p, tb, store} }

// Peer is SyncGuard on a store.
type Peer struct {
	process *Process
	tb      testing.TB
	store   map[string]any
}

// Do makes a command on the store.
func (p Peer) Do(command map[string]any) Answer {
	maps.Copy(command, p.store)
	a, err := p.process.Ask(command)
	if err != nil {
		p.tb.Error(err) // perhaps not on the test's goroutine
		return Answer{Code: lock.CodeInternal, Message: err.Error()}
	}
	return a
}

// Acquire returns the new lock's id and fence, "" if somebody else holds the lock.
func (p Peer) Acquire(_ context.Context, key string, ttl time.Duration) (id, fence string, err error) {
	a := p.Do(map[string]any{"op": "acquire", "key": key, "ttlMs": ttl.Milliseconds()})
	return a.LockID, a.Fence, a.Err()
}

// Release finds the lock by its id.
func (p Peer) Release(_ context.Context, id string) (bool, error) {
	a := p.Do(map[string]any{"op": "release", "lockId": id})
	return a.OK, a.Err()
}

// Extend finds the lock by its id.
func (p Peer) Extend(id string, ttl time.Duration) Answer {
	return p.Do(map[string]any{"op": "extend", "lockId": id, "ttlMs": ttl.Milliseconds()})
}

// IsLocked answers OK if the lock is held.
func (p Peer) IsLocked(key string) Answer {
	return p.Do(map[string]any{"op": "isLocked", "key": key})
}

// Lookup answers OK if the lock is held, and by whom.
func (p Peer) Lookup(q lock.Query) Answer {
	if q.Key != "" {
		return p.Do(map[string]any{"op": "lookup", "key": q.Key})
	}
	return p.Do(map[string]any{"op": "lookup", "lockId": q.LockID})
}
