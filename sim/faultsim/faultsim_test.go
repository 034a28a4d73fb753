package faultsim

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

var (
	seeds    = flag.Int("faultsim.seeds", 4, "how many seeds to run")
	seed     = flag.Uint64("faultsim.seed", 1, "the first seed")
	duration = flag.Duration("faultsim.duration", 4*time.Second, "machine time with faults of each seed")
	kills    = flag.Int("faultsim.kills", 30, "how many State Managers to kill with SIGKILL")
	// One candidate takes as long as one run, so this is for a failure at hand.
	shrinkTries = flag.Int("faultsim.shrink", 0, "runs of each smaller plan when a failing plan is shrunk; 0 does not shrink")

	verbose = flag.Bool("faultsim.log", false, "print the product's log")
)

// needsEmbedded skips a test where the environment names other servers.
func needsEmbedded(t *testing.T) {
	if os.Getenv(connect.FirestoreHost) != "" || os.Getenv(connect.PubSubHost) != "" {
		t.Skip("faults are injected into the embedded servers; no other emulator can do that")
	}
}

func logger(t *testing.T) *slog.Logger {
	if !*verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// maxHeap is far more than a run needs and far less than a backlog held in memory
// would take. F-FLOW-01
const maxHeap = 512 << 20

// F-ACK-01, F-DLQ-01, F-TEL-01, F-ORD-04, F-DEC-01, F-DEC-05: whatever fault the
// plan injects, nothing is lost or applied twice, and no good message is
// dead-lettered.
func TestSimulation_SurvivesEveryFaultOfThePlan(t *testing.T) {
	needsEmbedded(t)
	n := longtest.Size(t, "seeds", min(1, *seeds), *seeds)
	for s := *seed; s < *seed+uint64(n); s++ {
		t.Run(fmt.Sprintf("seed %d", s), func(t *testing.T) {
			t.Parallel()
			cfg := Config{Seed: s, Duration: *duration, Depots: 1 + int(s+1)%2, RequireSender: s%4 >= 2, Log: logger(t)} // every second seed has two
			r, err := Run(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("seed %d: orders %v, decisions %d applied, rejected %v, dead letters %v, %d events, %d processes, %d MiB, %d by late evidence, %d handed over, %s, drained in %s, faults %v",
				s, r.Orders, r.Applied, r.Rejected, r.DeadLetters, r.Events, r.Starts, r.MaxHeap>>20, r.Late, r.HandedOver, r.Amendments, r.Drained.Round(time.Millisecond), r.Faults)
			report(t, cfg, r)
			if len(r.Orders) == 0 || r.Events == 0 || len(r.Faults) == 0 {
				t.Error("nothing happened")
			}
			if r.MaxHeap > maxHeap {
				t.Errorf("the heap grew to %d MiB", r.MaxHeap>>20)
			}
		})
	}
}

// report fails the test for everything the product did wrong.
func report(t *testing.T, cfg Config, r Result) {
	t.Helper()
	found := r.findings()
	for i, f := range found {
		if i == 20 {
			t.Errorf("and %d more", len(found)-i)
			break
		}
		t.Error(f)
	}
	if t.Failed() {
		t.Logf("try again with -faultsim.seed %d -faultsim.seeds 1; -faultsim.shrink 3 looks for the faults that matter; the plan was:\n%s", cfg.Seed, tell(cfg.planned()))
	}
	if len(found) > 0 && *shrinkTries > 0 {
		rule, _, _ := strings.Cut(found[0], " ")
		small, err := Shrink(t.Context(), cfg, rule, *shrinkTries)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s is broken by:\n%s", rule, tell(small))
	}
}
