package postgreslock

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

// peer is a process with SyncGuard, which does one thing at a time.
type peer struct {
	mu       sync.Mutex
	commands *json.Encoder
	answers  *bufio.Reader
}

// answer of SyncGuard to any operation.
type peerAnswer struct {
	OK                  bool
	LockID, Fence, Code string
	Message             string
}

func startPeer(t *testing.T, database string) *peer {
	t.Helper()
	if os.Getenv("SYNCGUARD_DIR") == "" {
		t.Skip("SYNCGUARD_DIR is not set: SyncGuard is not installed")
	}
	cmd := exec.Command("node", "../../bench/peers/syncguard_postgres.mjs")
	cmd.Env = append(os.Environ(), fmt.Sprintf("POSTGRES_URL=postgres://postgres@127.0.0.1:%d/%s", shared.port, database))
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("SyncGuard's process: %v: %s", err, complaints.String())
		}
	})
	return &peer{commands: json.NewEncoder(in), answers: bufio.NewReader(out)}
}

func (p *peer) ask(command map[string]any) (a peerAnswer, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.commands.Encode(command); err != nil {
		return a, err
	}
	line, err := p.answers.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err == nil && a.Code != "" {
		err = errors.New(a.Code + ": " + a.Message)
	}
	return a, err
}

// B-04: workers of both kinds contend for one key. No two hold it at a time, and the fences
// are one sequence without gaps, in the order of the holders. SYNCGUARD_TIME=60s runs longer.
func TestSyncGuard_ContendsWithoutOverlap(t *testing.T) {
	ours, pool := fresh(t)
	runTime := 3 * time.Second
	if text := os.Getenv("SYNCGUARD_TIME"); text != "" {
		var err error
		if runTime, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	const perKind = 3
	var inside atomic.Int32
	var last atomic.Int64
	var had [2]atomic.Int64
	section := func(who, fence string) {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%s is inside together with %d others", who, n-1)
		}
		now, err := strconv.ParseInt(fence, 10, 64)
		if before := last.Swap(now); err != nil || now != before+1 {
			t.Errorf("%s has fence %s after %d", who, fence, before)
		}
		time.Sleep(time.Millisecond)
		inside.Add(-1)
	}
	var peers []*peer
	for range perKind {
		peers = append(peers, startPeer(t, pool.Config().ConnConfig.Database))
	}
	for _, p := range peers { // each has connected
		if _, err := p.ask(map[string]any{"op": "isLocked", "key": "k"}); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(runTime)
	var all sync.WaitGroup
	for _, p := range peers {
		all.Go(func() {
			for time.Now().Before(end) && !t.Failed() {
				res, err := ours.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: ttl})
				if err != nil {
					t.Error(err)
				}
				if !res.OK {
					time.Sleep(time.Millisecond)
					continue
				}
				section("ours", string(res.Fence))
				releaseNow(t, ours, lock.Ref{Key: "k", LockID: res.LockID})
				had[0].Add(1)
				time.Sleep(2 * time.Millisecond)
			}
		})
		all.Go(func() {
			for time.Now().Before(end) && !t.Failed() {
				a, err := p.ask(map[string]any{"op": "acquire", "key": "k", "ttlMs": ttl.Milliseconds()})
				if err != nil {
					t.Error(err)
				}
				if !a.OK {
					continue
				}
				section("SyncGuard", a.Fence)
				if a, err := p.ask(map[string]any{"op": "release", "lockId": a.LockID}); err != nil || !a.OK {
					t.Errorf("SyncGuard's release: %+v, %v", a, err)
				}
				had[1].Add(1)
			}
		})
	}
	all.Wait()
	t.Logf("sections: %d of ours, %d of SyncGuard's; the last fence is %d", had[0].Load(), had[1].Load(), last.Load())
	if had[0].Load() == 0 || had[1].Load() == 0 || last.Load() != had[0].Load()+had[1].Load() {
		t.Error("want sections of both, and a fence for each")
	}
}

func releaseNow(t *testing.T, b lock.Backend, ref lock.Ref) {
	if res, err := b.Release(bg, ref); err != nil || !res.OK {
		t.Errorf("release: %+v, %v", res, err)
	}
}

// B-04: each side finds and ends the locks of the other, in a schema that either made first.
func TestSyncGuard_ReadsAndIsRead(t *testing.T) {
	ours, pool := fresh(t)
	theirs := startPeer(t, pool.Config().ConnConfig.Database)
	if _, err := theirs.ask(map[string]any{"op": "setup"}); err != nil {
		t.Fatal(err)
	}
	res := mustAcquire(t, ours, "caf\u00e9")
	if a, err := theirs.ask(map[string]any{"op": "acquire", "key": "cafe\u0301", "ttlMs": 30000}); a.OK || err != nil {
		t.Fatalf("SyncGuard took a lock of ours: %+v, %v", a, err)
	}
	if a, err := theirs.ask(map[string]any{"op": "extend", "lockId": res.LockID, "ttlMs": 30000}); !a.OK || err != nil {
		t.Errorf("SyncGuard's extend: %+v, %v", a, err)
	}
	if a, err := theirs.ask(map[string]any{"op": "release", "lockId": res.LockID}); !a.OK || err != nil {
		t.Errorf("SyncGuard's release: %+v, %v", a, err)
	}
	a, err := theirs.ask(map[string]any{"op": "acquire", "key": "caf\u00e9", "ttlMs": 30000})
	if err != nil || a.Fence != strings.Repeat("0", 14)+"2" {
		t.Fatalf("%+v, %v", a, err)
	}
	if res, err := ours.Acquire(bg, lock.AcquireRequest{Key: "cafe\u0301", TTL: ttl}); res.OK || err != nil {
		t.Errorf("we took a lock of SyncGuard's: %+v, %v", res, err)
	}
	if info, err := ours.Lookup(bg, lock.Query{LockID: a.LockID}); info == nil || string(info.Fence) != a.Fence || err != nil {
		t.Errorf("%+v, %v", info, err)
	}
	if res, err := ours.Extend(bg, lock.Ref{LockID: a.LockID}, ttl); !res.OK || err != nil {
		t.Errorf("%+v, %v", res, err)
	}
	mustRelease(t, ours, lock.Ref{LockID: a.LockID})
}
