package firestoreemu

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"

	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// With these variables set, the test binary runs a durable server, prints its address
// and waits to be killed.
const (
	childDirEnv  = "FIRESTOREEMU_TEST_CHILD_DIR"
	childSyncEnv = "FIRESTOREEMU_TEST_CHILD_SYNC"
	// childCrashEnv makes the child kill itself "before" or "after" its second save.
	childCrashEnv = "FIRESTOREEMU_TEST_CHILD_CRASH"
)

func serveAsChild(dir string) {
	var sync SyncMode
	if err := sync.UnmarshalText([]byte(os.Getenv(childSyncEnv))); err != nil {
		panic(err)
	}
	faults := fault.New(1)
	kill := fault.Crash(func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // does not return
		select {}
	})
	switch os.Getenv(childCrashEnv) {
	case "before":
		faults.Add(fault.Rule{Nth: 2, At: fault.BeforeSave, Do: kill})
	case "after":
		faults.Add(fault.Rule{Nth: 2, At: fault.AfterSave, Do: kill})
	}
	s, err := Start(Options{DataDir: dir, Sync: sync, Faults: faults})
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Addr())
	_, _ = bufio.NewReader(os.Stdin).ReadString(0) // until killed or the parent has gone
}

// child starts a durable server in a process of its own.
func child(t *testing.T, dir string, sync SyncMode) (addr string, kill func()) {
	t.Helper()
	return childCrashing(t, dir, sync, "")
}

func childCrashing(t *testing.T, dir string, sync SyncMode, crash string) (addr string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDirEnv+"="+dir, childSyncEnv+"="+sync.String(), childCrashEnv+"="+crash)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var once atomic.Bool
	kill = func() {
		if once.CompareAndSwap(false, true) {
			_ = cmd.Process.Kill() // SIGKILL
			_ = cmd.Wait()         // reports the kill
			_ = stdin.Close()
		}
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the child did not start: %v", err)
	}
	return strings.TrimSpace(line), kill
}

// pair is what a writer of the crash test knows about its two documents.
type pair struct {
	acknowledged int64 // newest value whose commit was acknowledged
	tried        int64 // newest value sent
	time         int64 // its commit time
}

// After kill -9 under load, repeatedly, no acknowledged write is lost, no commit is
// torn, and commit times do not go back (E-DU-01, E-DU-04).
func TestDurability_KillUnderLoad(t *testing.T) {
	for _, sync := range []SyncMode{SyncOS, SyncFull} {
		t.Run(sync.String(), func(t *testing.T) {
			dir := t.TempDir()
			pairs := make([]pair, 8)
			rounds := longtest.Size(t, "rounds", 2, 6)
			for round := range rounds {
				addr, kill := child(t, dir, sync)
				newest := checkPairs(t, addr, pairs, round)
				loadUntilKilled(t, addr, pairs, newest, kill)
			}
			addr, _ := child(t, dir, sync)
			checkPairs(t, addr, pairs, rounds)
		})
	}
}

// loadUntilKilled writes all pairs as fast as possible and kills the server after some
// acknowledged commits, which must all be later than newest.
func loadUntilKilled(t *testing.T, addr string, pairs []pair, newest int64, kill func()) {
	t.Helper()
	const commits = 150
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	rpc := pb.NewFirestoreClient(dial(t, addr))
	var done atomic.Int64
	var group sync.WaitGroup
	for i := range pairs {
		group.Go(func() {
			p := &pairs[i]
			for n := p.tried + 1; ; n++ {
				p.tried = n
				answer, err := rpc.Commit(ctx, &pb.CommitRequest{Database: testDatabase, Writes: []*pb.Write{
					set(fmt.Sprintf("left%d", i), n), set(fmt.Sprintf("right%d", i), n),
				}})
				if err != nil {
					return // killed
				}
				p.acknowledged, p.time = n, store.Micros(answer.GetCommitTime())
				if p.time <= newest {
					t.Errorf("commit time %d is not after %d, from before the kill", p.time, newest)
				}
				if done.Add(1) == commits {
					go func() {
						kill()
						cancel() // for writers that now wait for a connection
					}()
				}
			}
		})
	}
	group.Wait()
	kill()
}

// checkPairs compares the documents of a restarted server with the acknowledged
// commits and returns the newest acknowledged commit time.
func checkPairs(t *testing.T, addr string, pairs []pair, round int) (newest int64) {
	t.Helper()
	r := &raw{t: t, ctx: testContext(t), rpc: pb.NewFirestoreClient(dial(t, addr))}
	for i := range pairs {
		p := &pairs[i]
		values, err := r.tryGet(nil, fmt.Sprintf("left%d", i), fmt.Sprintf("right%d", i))
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		left, right := max(0, values[fmt.Sprintf("left%d", i)]), max(0, values[fmt.Sprintf("right%d", i)])
		if left != right {
			t.Errorf("round %d: torn commit: left%d = %d, right%d = %d", round, i, left, i, right)
		}
		if left < p.acknowledged || left > p.tried {
			t.Errorf("round %d: pair %d = %d, want between the acknowledged %d and the tried %d",
				round, i, left, p.acknowledged, p.tried)
		}
		newest = max(newest, p.time)
	}
	return newest
}

func TestDurability_RefusesDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	StartT(t, Options{DataDir: dir})
	_, err := Start(Options{DataDir: dir})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("second server on one directory: %v", err)
	}
}
