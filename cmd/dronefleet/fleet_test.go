package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/clitest"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

const optimizer = clitest.Program("optimizer")

// F-API-07: a fleet joins real projects only when told that they are for tests.
func TestFleet_RefusesProjectsThatAreNotForTests(t *testing.T) {
	project := connect.Config{Project: "my-project"}
	for args, parts := range map[string][]string{
		"":                     {"test-project (flag --test-project)", "for tests only"},
		"--test-project=other": {`is "other" and the project "my-project"`},
	} {
		if args == "" {
			parts[0] = "test-project"
		}
		dronefleet.Refuses(t, project, 2, parts, append([]string{"fleet"}, strings.Fields(args)...)...)
	}
	dronefleet.Refuses(t, connect.Config{}, 2, []string{"--project"}, "fleet")
	emulators := connect.Config{FirestoreHost: "127.0.0.1:1", PubSubHost: "127.0.0.1:1"}
	dronefleet.Refuses(t, emulators, 2, []string{"name (flag --name)", "subscription"}, "fleet", "--name=a.b")
	dronefleet.Refuses(t, emulators, 2, []string{"high-percent (flag --high-percent)", "together"}, "fleet", "--high-percent=95")
	dronefleet.Refuses(t, emulators, 1, []string{"--places"}, "fleet", "--places=/does/not/exist")
}

// The command that a fleet without a depot is told to run works as it is printed.
func TestFleet_NamesACommandThatCreatesADepot(t *testing.T) {
	t.Parallel()
	hosts := emutest.Hosts(t)
	_, said := dronefleet.Run(t, hosts, 1, "fleet")
	_, rest, _ := strings.Cut(said, `"statemanager `)
	command, _, found := strings.Cut(rest, `"`)
	if !found {
		t.Fatalf("no command in %q", said)
	}
	cmd := statemanager.Command(t, hosts, strings.Fields(command)...)
	cmd.Dir = "../.." // where examples are
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "1 changed, 0 unchanged") {
		t.Errorf("%s: %v: %s", command, err, out)
	}
}

// F-API-07: fleets share the State Manager and the optimizer of others; one leaves and
// comes back, one is killed, and neither disturbs the other.
func TestFleet_JoinsLeavesAndComesBack(t *testing.T) {
	t.Parallel()
	hosts := emutest.Hosts(t)
	dronefleet.Refuses(t, hosts, 1, []string{"no depot yet", "statemanager depots apply -f examples/paris.yaml --reason setup"}, "fleet")
	file := filepath.Join(t.TempDir(), "report.json")
	start := func(name string, more ...string) *clitest.Process {
		p := dronefleet.Start(t, hosts, append([]string{"fleet", "--name=" + name, "--drones=4", "--orders-per-minute=60"}, more...)...)
		p.Find(p.Stdout, "Joined ")
		return p
	}
	first := start("A", "--places=../../examples/paris.yaml", "--leave-within=5s", "--report="+file)
	serve := statemanager.Start(t, hosts, "serve", "--http-addr=off", "--log-level=error")
	plan := optimizer.Start(t, hosts, "run", "--interval=1s", "--solve-limit=100ms", "--log-level=error")
	second := start("B", "--message-loss=0.02", "--duplicate=0.1", "--reorder=0.1", "--crashes-per-hour=10", "--clock-skew=100ms")
	clients := emutest.Connect(t, hosts)
	store := firestoretx.New(clients.Firestore, firestoretx.Config{})
	awaitMission := func(name string) {
		emutest.Eventually(t, "a drone of "+name+" knows its mission", func() error {
			drones, err := store.Drones(t.Context(), "", firestoretx.Page{})
			for _, d := range drones {
				if strings.HasPrefix(string(d.ID), name+"-") && d.MissionAcked && d.Bound() {
					return nil
				}
			}
			return errors.Join(err, fmt.Errorf("none of %d", len(drones)))
		})
	}
	awaitMission("A")
	awaitMission("B")
	dronefleet.Refuses(t, hosts, 1, []string{"a fleet named A is running", "--name"}, "fleet", "--name=A")

	if err := second.Cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = second.Cmd.Wait() // killed
	first.Interrupt()
	var summary struct {
		Orders     struct{ Created int }
		Invariants struct {
			Checked    int
			Violations []string
		}
	}
	if text, err := os.ReadFile(file); err != nil || json.Unmarshal(text, &summary) != nil {
		t.Fatalf("the file holds %s, %v", text, err)
	}
	if summary.Orders.Created == 0 || summary.Invariants.Checked == 0 || len(summary.Invariants.Violations) > 0 {
		t.Errorf("summary %+v", summary)
	}
	left, err := store.DronesOf(t.Context(), []domain.DroneID{"A-001", "A-002", "A-003", "A-004"})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range left {
		if !d.Grounded {
			t.Errorf("drone %s is not grounded", d.ID)
		}
		if d.RegisteredAt.IsZero() || !strings.HasPrefix(d.RegisteredBy, "dronefleet fleet A") { // F-REG-09
			t.Errorf("drone %s is not registered by its fleet: %q", d.ID, d.RegisteredBy)
		}
	}
	if err := subscription(t, clients, "missions-fleet-A"); status.Code(err) != codes.NotFound {
		t.Errorf("its subscription is left behind: %v", err)
	}
	if err := subscription(t, clients, "missions-fleet-B"); err != nil {
		t.Errorf("the subscription of the other fleet: %v", err)
	}
	if first = start("A"); !strings.HasPrefix(first.Find(first.Stdout, "4 of the drones"), "were here before") {
		t.Error("it did not take up its drones")
	}
	for _, d := range left {
		if now, err := store.Drone(t.Context(), d.ID); err != nil || now.Grounded {
			t.Errorf("drone %s is still grounded (%v)", d.ID, err)
		}
	}
	// The first signal leaves, the second one at once.
	awaitMission("A")
	for _, line := range []string{"Leaving: ", "Left at once: "} {
		if err := first.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		first.Find(first.Stdout, line)
	}
	_ = first.Cmd.Wait() // its exit status is that of a command that was stopped
	if err := subscription(t, clients, "missions-fleet-A"); status.Code(err) != codes.NotFound {
		t.Errorf("its subscription is left behind: %v", err)
	}
	plan.Interrupt()
	serve.Interrupt()
}

func subscription(t *testing.T, clients *connect.Clients, name string) error {
	_, err := clients.PubSub.SubscriptionAdminClient.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{
		Subscription: fmt.Sprintf("projects/%s/subscriptions/%s", clients.Config.Project, name),
	})
	return err
}
