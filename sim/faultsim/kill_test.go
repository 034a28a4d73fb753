package faultsim

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/leaktest"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// These variables hold the servers' addresses and turn the test binary into a
// State Manager.
const (
	childFirestore = "FAULTSIM_CHILD_FIRESTORE"
	childPubSub    = "FAULTSIM_CHILD_PUBSUB"
)

func TestMain(m *testing.M) {
	if os.Getenv(childFirestore) == "" {
		leaktest.Main(m)
	}
	if err := child(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child runs a State Manager until it is killed or its parent ends.
func child() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // returns when the parent is gone
		cancel()
	}()
	hosts := connect.Config{
		Project: connect.EmulatorProject, FirestoreHost: os.Getenv(childFirestore), PubSubHost: os.Getenv(childPubSub),
	}
	c, err := dial(ctx, hosts, productOwner)
	if err != nil {
		return err
	}
	clock, err := c.Clock(ctx)
	if err != nil {
		return err
	}
	m, err := manager.New(c.Clients, clock, manager.Config{PlanUnregistered: true, Worker: workerConfig()}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return m.Run(ctx)
}

// How long a child lives once it is ready, at the first pace: on average long enough to connect, to
// work off what its predecessors left, and to be in the middle of something. A
// transaction that it dies in keeps its locks for a minute of simulated time, as
// in Firestore; with shorter lives hardly anything could be decided.
const shortestLife, longestLife = 30 * time.Millisecond, 2500 * time.Millisecond

// killPaces are slow enough that a process that lives a fraction of a second sees a
// fleet that is up to date.
var killPaces = []pace{8, 4, 2}

// F-ACK-01, F-DEC-01, F-DEC-04, F-DOC-01: State Managers that are killed with
// SIGKILL at random moments, three at a time, lose nothing and apply nothing twice.
func TestSimulation_SurvivesSIGKILL(t *testing.T) {
	needsEmbedded(t)
	longtest.Only(t, "tens of processes")
	t.Parallel()
	for _, pace := range killPaces {
		r := runUnderKills(t, pace)
		for _, f := range r.findings() {
			t.Error(f)
		}
		// F-AMD-01, F-AMD-06
		if t.Failed() || r.Events > 0 && r.Applied > 0 && r.Amendments.Decided > 0 && r.Amendments.Standby > 0 {
			return
		}
	}
	t.Errorf("in none of %d runs did the State Managers apply a decision, amend a mission and have a drone stand by before they died", len(killPaces))
}

// runUnderKills simulates a fleet that is large enough to have decisions to apply when a
// State Manager dies.
func runUnderKills(t *testing.T, pace pace) Result {
	t.Helper()
	var killed atomic.Int64
	began := time.Now()
	const managers = 3
	during := func(ctx context.Context, hosts connect.Config) error {
		g, ctx := errgroup.WithContext(ctx)
		for manager := range managers {
			random := rand.New(rand.NewPCG(*seed, uint64(manager)))
			g.Go(func() error {
				for range *kills / managers {
					life := shortestLife + time.Duration(random.Int64N(int64(longestLife-shortestLife)))
					if err := liveAndDie(ctx, hosts, time.Duration(float64(life)*float64(killPaces[0]/pace))); err != nil {
						return err
					}
					killed.Add(1)
				}
				return nil
			})
		}
		return g.Wait()
	}
	r, err := Run(t.Context(), Config{Seed: *seed, Speed: float64(pace), Drones: 60, Managers: -1, Optimizers: 1, During: during, Log: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("x%g: %d kills in %s: orders %v, decisions %d applied, rejected %v, dead letters %v, %d events, %s, %d facts checked, drained in %s",
		pace, killed.Load(), time.Since(began).Round(time.Second), r.Orders, r.Applied, r.Rejected, r.DeadLetters, r.Events, r.Amendments, r.Verdict.Checked, r.Drained.Round(time.Millisecond))
	return r
}

// liveAndDie starts a State Manager and kills it some time after it is ready.
func liveAndDie(ctx context.Context, hosts connect.Config, life time.Duration) error {
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childFirestore+"="+hosts.FirestoreHost, childPubSub+"="+hosts.PubSubHost)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		_ = cmd.Wait() // why it died is on its stderr
		return fmt.Errorf("the child did not get ready: %w", err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(life):
	}
	if err := cmd.Process.Kill(); err != nil {
		return err
	}
	_ = cmd.Wait() // reports that the process was killed
	return nil
}
