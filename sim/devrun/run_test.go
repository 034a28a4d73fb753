package devrun_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/sim/devrun"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

func config(t *testing.T) devrun.Config {
	if os.Getenv(connect.FirestoreHost) != "" || os.Getenv(connect.PubSubHost) != "" {
		t.Skip("the run starts the embedded servers by design; there is nothing to compare on others")
	}
	return devrun.Config{
		Duration: 10 * time.Second, Drones: 40, Hz: 1, OrdersPerMinute: 12, Speed: 20, Seed: 1,
		SolveLimit: 200 * time.Millisecond, Out: &bytes.Buffer{}, Log: emutest.Log(t),
	}
}

// patience bounds a test against a run that hangs.
const patience = 2 * time.Minute

// F-API-02: a run delivers orders, keeps every invariant, and reports both. The test
// ends the run at the first delivery, however long a busy machine takes for it, and
// has few drones, so that any machine keeps up.
func TestRun_DeliversAndKeepsTheInvariants(t *testing.T) {
	cfg := config(t)
	cfg.Drones = 10
	summary, out, err := runWhile(t, cfg, func(ctx context.Context, host string) { awaitDelivery(ctx, t, host) })
	if err != nil {
		t.Fatal(err)
	}
	if summary.Orders.Delivered == 0 || summary.Telemetry.Applied == 0 || summary.Cycles.Run == 0 || summary.Firestore.RPCs == 0 {
		t.Errorf("nothing happened: %+v", summary)
	}
	if len(summary.Invariants.Violations) > 0 || summary.Invariants.Checked == 0 {
		t.Errorf("invariants: %+v", summary.Invariants)
	}
	for _, want := range []string{connect.FirestoreHost + "=127.0.0.1:", connect.PubSubHost + "=127.0.0.1:"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	text, err := json.Marshal(summary)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"orders":{"created":`, `"onTime":`, `"decisions":{"applied":`, `"rejected":{`, `"telemetry":{"applied":`, `"cycles":{"run":`, `"firestore":{"rpcs":`, `"latencyMs":{"p50":`, `"invariants":{"checked":`, `"violations":[]`, `"pace":{"behind":`} {
		if !strings.Contains(string(text), key) {
			t.Errorf("summary lacks %s:\n%s", key, text)
		}
	}
}

// runWhile runs a fleet until act, which gets the address of its Firestore, returns.
// It returns what was reported and printed.
func runWhile(t *testing.T, cfg devrun.Config, act func(ctx context.Context, host string)) (summary devrun.Summary, out string, err error) {
	ctx, end := context.WithTimeout(t.Context(), patience)
	defer end()
	printed, said := io.Pipe()
	cfg.Duration, cfg.Out = 0, said
	var run sync.WaitGroup
	run.Go(func() {
		summary, err = devrun.Run(ctx, cfg)
		said.Close()
	})
	var all bytes.Buffer
	lines := bufio.NewScanner(io.TeeReader(printed, &all))
	for lines.Scan() {
		if _, host, ok := strings.Cut(lines.Text(), connect.FirestoreHost+"="); ok {
			run.Go(func() { defer end(); act(ctx, host) })
		}
	}
	run.Wait()
	return summary, all.String(), err
}

// awaitDelivery returns when an order is delivered, or ctx ends.
func awaitDelivery(ctx context.Context, t *testing.T, host string) {
	clients, err := connect.Open(ctx, connect.Config{FirestoreHost: host, PubSubHost: host}, meter.New())
	if err != nil {
		t.Error(err)
		return
	}
	defer clients.Close()
	orders := firestoretx.New(clients.Firestore, firestoretx.Config{})
	for ctx.Err() == nil {
		delivered, err := orders.Orders(ctx, domain.OrderDelivered, firestoretx.Page{Limit: 1})
		if len(delivered) > 0 {
			d, err := orders.Drone(ctx, delivered[0].AssignedDroneID)
			if err != nil || d.RegisteredBy != "dronefleet dev" || d.ColdBox == nil { // F-REG-09
				t.Errorf("delivered by %+v, %v, which nobody registered", d, err)
			}
			return
		}
		if err != nil && ctx.Err() == nil {
			t.Error(err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// F-AMD-06 F-OPT-01: the optimizer sends an idle drone to where CRITICAL orders are expected,
// and then gives it an order: one mission of one drone, without any landing in between.
func TestRun_AWaitingDroneIsGivenAnOrder(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Drones, cfg.OrdersPerMinute, cfg.Iterations, cfg.Speed, cfg.Hz = 16, 3, 30, 10, 0.5
	summary, out, err := runWhile(t, cfg, func(ctx context.Context, host string) { awaitOrderForWaiting(ctx, t, host) })
	if err != nil {
		t.Fatal(err)
	}
	if summary.Decisions.Standby == 0 || len(summary.Invariants.Violations) > 0 {
		t.Errorf("%+v, invariants %+v\n%s", summary.Decisions, summary.Invariants, out)
	}
}

// awaitOrderForWaiting returns when a mission that a decision without orders began has an
// order.
func awaitOrderForWaiting(ctx context.Context, t *testing.T, host string) {
	clients, err := connect.Open(ctx, connect.Config{FirestoreHost: host, PubSubHost: host}, meter.New())
	if err != nil {
		t.Error(err)
		return
	}
	defer clients.Close()
	store := firestoretx.New(clients.Firestore, firestoretx.Config{})
	for {
		listing, err := store.ListLedger(ctx, firestoretx.LedgerFilter{Outcome: domain.OutcomeApplied}, firestoretx.Page{Limit: 1000})
		if err != nil {
			t.Errorf("no drone waited and was given an order: %v", err)
			return
		}
		waits := map[domain.MissionID]bool{}
		for _, e := range listing.Items {
			waits[e.MissionID] = waits[e.MissionID] || e.AmendsMissionID == "" && len(e.OrderIDs) == 0
		}
		if slices.ContainsFunc(listing.Items, func(e domain.LedgerEntry) bool { return waits[e.AmendsMissionID] && len(e.OrderIDs) > 0 }) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func TestRun_NamesEveryBadSetting(t *testing.T) {
	cfg := config(t)
	cfg.Drones, cfg.Hz, cfg.Speed = -1, -1, 0
	_, err := devrun.Run(t.Context(), cfg)
	for _, flag := range []string{"--drones", "--hz", "--speed"} {
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("error %v does not name %s", err, flag)
		}
	}
}

func TestRun_BusyPortIsOneClearError(t *testing.T) {
	cfg := config(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	cfg.PubSubAddr = busy.Addr().String()
	_, err = devrun.Run(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), busy.Addr().String()) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error is %v", err)
	}
}

// F-API-02: a run without one of its parts ends and names it, instead of going on as
// if nothing had happened.
func TestRun_EndsWhenAPartFails(t *testing.T) {
	for _, name := range []string{pubsubio.Subscription(pubsubio.TopicOrders), "missions-simulated-fleet"} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t)
			cfg.Duration = 0
			out, said := io.Pipe()
			cfg.Out = said
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := devrun.Run(ctx, cfg)
				done <- errors.Join(err, ctx.Err())
				said.Close()
			}()
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				_, host, ok := strings.Cut(lines.Text(), connect.PubSubHost+"=")
				if !ok {
					continue
				}
				conn, err := grpc.NewClient(host, grpc.WithTransportCredentials(insecure.NewCredentials()))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_, err = pubsubpb.NewSubscriberClient(conn).DeleteSubscription(t.Context(), &pubsubpb.DeleteSubscriptionRequest{
					Subscription: "projects/" + connect.EmulatorProject + "/subscriptions/" + name,
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			err := <-done
			if err == nil || !strings.Contains(err.Error(), name) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// E-DU-01: a run resumes the fleet in its data directory, and says so.
func TestRun_ResumesFromItsDataDirectory(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Duration, cfg.DataDir = 4*time.Second, t.TempDir()
	first, err := devrun.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cfg.Out = &out
	second, err := devrun.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(strings.Fields(out.String()), " ")
	if want := fmt.Sprintf("Resumes the fleet in %s: 40 drones, ", cfg.DataDir); !strings.Contains(said, want) {
		t.Errorf("the second run does not say %q:\n%s", want, said)
	}
	if earlier := second.Orders.Created - second.Orders.InThisRun; earlier != first.Orders.Created || first.Orders.InThisRun != first.Orders.Created {
		t.Errorf("%d orders of an earlier run, which created %d: %+v %+v", earlier, first.Orders.Created, first.Orders, second.Orders)
	}
	if second.Orders.Created < first.Orders.Created || second.Orders.Delivered < first.Orders.Delivered || second.Decisions.Applied < first.Decisions.Applied {
		t.Errorf("something was forgotten:\n%+v\n%+v", first.Orders, second.Orders)
	}
	if second.Telemetry.Applied == 0 {
		t.Errorf("after the restart no report was newer than those before: %+v", second.Telemetry)
	}
	// A drone that has forgotten its mission reports IDLE. (On a machine too busy for
	// the speed a mission can fail for other reasons.)
	if second.MissionsFailed[domain.FailureAbortedByDrone] > 0 {
		t.Errorf("missions failed over the restart: %v; drones forgot them", second.MissionsFailed)
	}
	for _, r := range []devrun.Summary{first, second} {
		if len(r.Invariants.Violations) > 0 {
			t.Errorf("invariants: %q", r.Invariants.Violations)
		}
	}
}

// F-API-02: a run that gives up on its backlog reports and fails, and does not take
// waiting messages for lost ones.
func TestRun_ReportsAndFailsWhenMessagesAreLeft(t *testing.T) {
	cfg := config(t)
	cfg.Duration, cfg.DrainTimeout = 0, 100*time.Millisecond
	ctx, end := context.WithCancel(t.Context())
	defer end()
	out, said := io.Pipe()
	cfg.Out = said
	type ended struct {
		summary devrun.Summary
		err     error
	}
	done := make(chan ended, 1)
	go func() {
		summary, err := devrun.Run(ctx, cfg)
		done <- ended{summary, err}
		said.Close()
	}()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, host, ok := strings.Cut(lines.Text(), connect.PubSubHost+"="); ok {
			go func() { holdAnOrder(ctx, t, host); end() }()
		}
	}
	got := <-done
	if got.err == nil || !strings.Contains(got.err.Error(), "unsettled at the end") {
		t.Errorf("error is %v", got.err)
	}
	if got.summary.Unsettled == 0 || got.summary.Invariants.Checked == 0 || len(got.summary.Invariants.Violations) > 0 {
		t.Errorf("summary is %+v", got.summary)
	}
	var printed bytes.Buffer
	if err := got.summary.Print(&printed); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(printed.String(), "was not checked") || !strings.Contains(printed.String(), "I1-I8 hold") {
		t.Errorf("printed:\n%s", printed.String())
	}
}

// holdAnOrder leases an order, so that no State Manager gets it in this run.
func holdAnOrder(ctx context.Context, t *testing.T, host string) {
	conn, err := grpc.NewClient(host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	client := pubsubpb.NewSubscriberClient(conn)
	name := "projects/" + connect.EmulatorProject + "/subscriptions/" + pubsubio.Subscription(pubsubio.TopicOrders)
	for {
		got, err := client.Pull(ctx, &pubsubpb.PullRequest{Subscription: name, MaxMessages: 1})
		if err != nil {
			t.Error(err)
			return
		}
		if len(got.GetReceivedMessages()) == 0 {
			continue
		}
		_, err = client.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{
			Subscription: name, AckIds: []string{got.GetReceivedMessages()[0].GetAckId()}, AckDeadlineSeconds: 600,
		})
		if err != nil {
			t.Error(err)
		}
		return
	}
}

// F-API-02: an interrupt while a run starts is reported as such, not as a failed
// call.
func TestRun_NamesTheInterruptWhileItStarts(t *testing.T) {
	cfg := config(t)
	ctx, end := context.WithCancel(t.Context())
	cfg.Watch = func(context.Context, *meter.Meter) (trace.TracerProvider, error) {
		end()
		return noop.NewTracerProvider(), nil
	}
	_, err := devrun.Run(ctx, cfg)
	if err == nil || err.Error() != "interrupted before the fleet ran" {
		t.Errorf("error is %v", err)
	}
}

// F-API-02: a summary stays readable, however often an invariant is broken.
func TestSummary_ShowsSomeOfManyViolations(t *testing.T) {
	r := devrun.Summary{Invariants: devrun.InvariantSummary{Checked: 200_000, Violations: slices.Repeat([]string{"I3 order O1: is lost"}, 100_000)}}
	var out bytes.Buffer
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "is lost"); n != 50 || !strings.Contains(out.String(), "BROKEN, 100000 of 200000") || !strings.Contains(out.String(), "and 99950 more") {
		t.Errorf("%d violations in %d bytes", n, out.Len())
	}
}

// F-API-02: a violation quotes what others have sent; a terminal must not obey it.
func TestSummary_EscapesViolations(t *testing.T) {
	var out strings.Builder
	r := devrun.Summary{Invariants: devrun.InvariantSummary{Checked: 1, Violations: []string{"I3 order O\x1b[2J\n: is lost"}}}
	if err := r.Print(&out); err != nil || !strings.Contains(out.String(), `  I3 order O\u001b[2J\u000a: is lost`+"\n") {
		t.Errorf("printed %q, %v", &out, err)
	}
}

// F-API-02: a run whose history cannot be read is not checked, so it has no summary.
func TestRun_ReportsNothingWithoutAReadableHistory(t *testing.T) {
	summary, _, err := runWhile(t, config(t), func(ctx context.Context, host string) {
		clients, err := connect.Open(ctx, connect.Config{FirestoreHost: host, PubSubHost: host}, meter.New())
		if err != nil {
			t.Error(err)
			return
		}
		defer clients.Close()
		if _, err := clients.Firestore.Doc("orders/O-BAD").Set(ctx, map[string]any{"status": 7}); err != nil {
			t.Error(err)
		}
	})
	if err == nil || !strings.Contains(err.Error(), "O-BAD") || summary.ElapsedSeconds != 0 {
		t.Errorf("error is %v, summary is %+v", err, summary)
	}
}

// A run too short for telemetry has no latency, rather than one of 0 ms.
func TestSummary_ShowsNoLatencyWithoutTelemetry(t *testing.T) {
	for want, r := range map[string]devrun.Summary{
		"latency     no telemetry was applied\n":                                                            {},
		"latency     publish to commit of telemetry: p50 0.0 ms, p99 0.0 ms, of changes of status 0.0 ms\n": {Telemetry: devrun.TelemetrySummary{Applied: 1}},
		"p50 0.0 ms, p99 0.0 ms, of changes of status 0.0 ms; first telemetry applied after 62 ms\n":        {Telemetry: devrun.TelemetrySummary{Applied: 1}, FirstTelemetryMs: 62},
	} {
		var printed strings.Builder
		err := r.Print(&printed)
		text := strings.ReplaceAll(printed.String(), "\n              ", " ") // as before it was wrapped
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%v: printed %s, want %s", err, text, want)
		}
		if text, err := json.Marshal(r); err != nil || strings.Contains(string(text), "firstTelemetryMs") != (r.FirstTelemetryMs > 0) {
			t.Errorf("%v: %s", err, text)
		}
	}
}
