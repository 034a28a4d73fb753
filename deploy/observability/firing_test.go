package observability

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// healthy is what a healthy fleet of a hundred drones exports, in promtool's notation:
// first value, increment every half minute, and number of increments.
var healthy = map[string]string{
	`up{job="dronefleet-statemanager",instance="a"}`: `1x80`,

	`dronefleet_messages_settled_total{instance="a",kind="telemetry",outcome="applied",reason=""}`:                 `0+3000x80`,
	`dronefleet_messages_settled_total{instance="a",kind="telemetry",outcome="rejected",reason="STALE_TELEMETRY"}`: `0+30x80`,
	`dronefleet_messages_settled_total{instance="a",kind="telemetry",outcome="nacked",reason=""}`:                  `0x80`,
	`dronefleet_messages_settled_total{instance="a",kind="decisions",outcome="applied",reason=""}`:                 `0+30x80`,
	`dronefleet_messages_settled_total{instance="a",kind="decisions",outcome="rejected",reason="STALE_FENCE"}`:     `0+3x80`,
	`dronefleet_backlog_age_seconds{instance="a",kind="telemetry"}`:                                                `1x80`,
	`dronefleet_publish_to_commit_seconds_bucket{instance="a",kind="telemetry",le="1.048576"}`:                     `0+3000x80`,
	`dronefleet_publish_to_commit_seconds_bucket{instance="a",kind="telemetry",le="8.388608"}`:                     `0+3000x80`,
	`dronefleet_publish_to_commit_seconds_bucket{instance="a",kind="telemetry",le="+Inf"}`:                         `0+3000x80`,
	`dronefleet_publish_to_commit_seconds_bucket{instance="a",kind="decisions",le="1.048576"}`:                     `0+33x80`,
	`dronefleet_publish_to_commit_seconds_bucket{instance="a",kind="decisions",le="8.388608"}`:                     `0+33x80`,
	`dronefleet_publish_to_commit_seconds_bucket{instance="a",kind="decisions",le="+Inf"}`:                         `0+33x80`,
	`dronefleet_parcels_picked_up_again_total{instance="a"}`:                                                       `0x80`,
	`dronefleet_outbox_overflow_total{instance="a"}`:                                                               `0x80`,
	`dronefleet_link_sessions{instance="g"}`:                                                                       `100x80`,
	`dronefleet_link_sessions_ended_total{instance="g",reason="DISCONNECTED"}`:                                     `0+1x80`,
	`dronefleet_link_ack_seconds_bucket{instance="g",le="0.131072"}`:                                               `0+3000x80`,
	`dronefleet_link_ack_seconds_bucket{instance="g",le="4.194304"}`:                                               `0+3000x80`,
	`dronefleet_link_ack_seconds_bucket{instance="g",le="+Inf"}`:                                                   `0+3000x80`,

	`dronefleet_firestore_rpcs_total{instance="a",operation="telemetry",method="Commit"}`:        `0+300x80`,
	`dronefleet_firestore_rpcs_failed_total{instance="a",operation="telemetry",method="Commit"}`: `0+3x80`,
	`dronefleet_commit_retries_total{instance="a",operation="telemetry"}`:                        `0+3x80`,
	`dronefleet_firestore_reads_per_thousand_messages{instance="a",kind="telemetry"}`:            `30x80`,
	`dronefleet_firestore_writes_per_thousand_messages{instance="a",kind="telemetry"}`:           `1100x80`,

	`dronefleet_cycles_total{instance="o",outcome="run"}`:               `0+3x80`,
	`dronefleet_cycles_total{instance="o",outcome="failed"}`:            `0x80`,
	`dronefleet_cycles_total{instance="a",outcome="run"}`:               `0x80`,
	`dronefleet_cycles_total{instance="o",outcome="clock_wrong"}`:       `0x80`,
	`dronefleet_depot_without_cycles{instance="a",depot="D1"}`:          `1x5 0x75`, // resolved
	`dronefleet_cycle_seconds_bucket{instance="o",le="8.388608"}`:       `0+3x80`,
	`dronefleet_cycle_seconds_bucket{instance="o",le="16.777216"}`:      `0+3x80`,
	`dronefleet_cycle_seconds_bucket{instance="o",le="+Inf"}`:           `0+3x80`,
	`dronefleet_cycle_wait_seconds_bucket{instance="o",le="8.388608"}`:  `0+3x80`,
	`dronefleet_cycle_wait_seconds_bucket{instance="o",le="16.777216"}`: `0+3x80`,
	`dronefleet_cycle_wait_seconds_bucket{instance="o",le="+Inf"}`:      `0+3x80`,
	`dronefleet_plans_refused_total{instance="o"}`:                      `0x80`,
	`dronefleet_orders_unserved{instance="o",priority="CRITICAL"}`:      `0x80`,
	`dronefleet_orders_unserved{instance="o",priority="STANDARD"}`:      `3x80`,
	`dronefleet_orders_unserved{instance="old",priority="CRITICAL"}`:    `7x80`, // of an optimizer that runs no cycles any more

	`dronefleet_oldest_waiting_order_seconds{instance="a",priority="CRITICAL"}`: `40x80`,
	`dronefleet_oldest_waiting_order_seconds{instance="a",priority="STANDARD"}`: `900x80`,

	`dronefleet_sweeps_total{instance="a"}`:                                             `0+6x80`,
	`dronefleet_lock_held{instance="a",lock="sweeper"}`:                                 `1x80`,
	`dronefleet_lock_held{instance="b",lock="sweeper"}`:                                 `0x80`,
	`dronefleet_lock_wait_seconds_bucket{instance="a",lock="sweeper",le="0.065536"}`:    `0+6x80`,
	`dronefleet_lock_wait_seconds_bucket{instance="a",lock="sweeper",le="8.388608"}`:    `0+6x80`,
	`dronefleet_lock_wait_seconds_bucket{instance="a",lock="sweeper",le="+Inf"}`:        `0+6x80`,
	`dronefleet_clock_offset_seconds{instance="a",job="dronefleet-statemanager"}`:       `-0.01x80`,
	`dronefleet_clock_offset_seconds{instance="o",job="dronefleet-optimizer"}`:          `0.02x80`,
	`dronefleet_messages_settled_total{instance="a",kind="orders",outcome="applied"}`:   `0+9x80`,
	`dronefleet_messages_settled_total{instance="b",kind="telemetry",outcome="nacked"}`: `0x80`,
}

// illnesses change a healthy fleet; each must fire exactly these alerts.
var illnesses = []struct {
	name   string
	change map[string]string
	alerts []string
}{
	{"health", nil, nil},
	{"no State Manager", map[string]string{`up{job="dronefleet-statemanager",instance="a"}`: `0x80`}, []string{"StateManagerDown"}},
	{"no reports", map[string]string{
		`dronefleet_messages_settled_total{instance="a",kind="telemetry",outcome="applied",reason=""}`:                 `9x80`,
		`dronefleet_messages_settled_total{instance="a",kind="telemetry",outcome="rejected",reason="STALE_TELEMETRY"}`: `9x80`,
	}, []string{"NoTelemetryApplied"}},
	{"a backlog", map[string]string{`dronefleet_backlog_age_seconds{instance="a",kind="telemetry"}`: `60x80`}, []string{"BacklogOld"}},
	{"a stuck backlog", map[string]string{`dronefleet_backlog_age_seconds{instance="a",kind="telemetry"}`: `0+30x80`}, []string{"BacklogOld", "BacklogStuck"}},
	{"slow reports", map[string]string{`dronefleet_publish_to_commit_seconds_bucket{instance="a",kind="telemetry",le="1.048576"}`: `0+300x80`}, []string{"TelemetrySlow"}},
	{"slow decisions", map[string]string{`dronefleet_publish_to_commit_seconds_bucket{instance="a",kind="decisions",le="1.048576"}`: `0+3x80`}, []string{"DecisionsSlow"}},
	{"nacks", map[string]string{`dronefleet_messages_settled_total{instance="a",kind="telemetry",outcome="nacked",reason=""}`: `0+30x80`}, []string{"MessagesNacked"}},
	{"a first dead letter", map[string]string{
		`dronefleet_messages_settled_total{instance="a",kind="orders",outcome="dead_letter",reason="INVALID"}`: `_x60 1x20`,
	}, []string{"DeadLetters"}},
	{"old dead letters", map[string]string{
		`dronefleet_messages_settled_total{instance="a",kind="orders",outcome="dead_letter",reason="INVALID"}`: `4x80`,
	}, nil},
	{"another dead letter", map[string]string{
		`dronefleet_messages_settled_total{instance="a",kind="orders",outcome="dead_letter",reason="INVALID"}`: `4x60 5x20`,
	}, []string{"DeadLetters"}},
	{"stale reports", map[string]string{
		`dronefleet_messages_settled_total{instance="a",kind="telemetry",outcome="rejected",reason="STALE_TELEMETRY"}`: `0+1500x80`,
	}, []string{"TelemetryStale"}},
	{"a full outbox", map[string]string{`dronefleet_outbox_overflow_total{instance="a"}`: `0+1x80`}, []string{"OutboxOverflow"}},
	{"a receiver of webhooks is down", map[string]string{`dronefleet_webhook_oldest_seconds{instance="a",webhook="W"}`: `0+60x80`}, []string{"WebhookBehind"}},
	{"slow acks", map[string]string{`dronefleet_link_ack_seconds_bucket{instance="g",le="0.131072"}`: `0+300x80`}, []string{"LinkAcksSlow"}},
	{"a network breaks", map[string]string{
		`dronefleet_link_sessions{instance="g"}`:                                   `100x66 3x14`,
		`dronefleet_link_sessions_ended_total{instance="g",reason="DISCONNECTED"}`: `0x66 97x14`,
	}, []string{"LinkSessionsCut"}},
	{"a parcel flies twice", map[string]string{`dronefleet_parcels_picked_up_again_total{instance="a"}`: `0x60 1x20`}, []string{"ParcelPickedUpAgain"}},
	{"Firestore is down", map[string]string{
		`dronefleet_firestore_rpcs_failed_total{instance="a",operation="telemetry",method="Commit"}`: `0+300x80`,
	}, []string{"FirestoreErrors", "FirestoreFailing"}},
	{"Firestore stumbles", map[string]string{
		`dronefleet_firestore_rpcs_failed_total{instance="a",operation="telemetry",method="Commit"}`: `0+30x80`,
	}, []string{"FirestoreErrors"}},
	{"conflicts", map[string]string{`dronefleet_commit_retries_total{instance="a",operation="telemetry"}`: `0+60x80`}, []string{"CommitConflicts"}},
	{"dear writes", map[string]string{`dronefleet_firestore_writes_per_thousand_messages{instance="a",kind="telemetry"}`: `4000x80`}, []string{"FirestoreCostly"}},
	{"dear reads", map[string]string{`dronefleet_firestore_reads_per_thousand_messages{instance="a",kind="telemetry"}`: `1500x80`}, []string{"FirestoreCostly"}},
	// F-HIS-03
	{"a fleet that has grown", map[string]string{
		`dronefleet_collection_writes_total{instance="a",collection="events"}`: `0+15000x80`,
		`dronefleet_collection_writes_total{instance="b",collection="events"}`: `0+15000x80`,
		`dronefleet_index_shards{instance="a"}`:                                `1x80`,
	}, []string{"EventsNearIndexLimit"}},
	{"a large fleet", map[string]string{
		`dronefleet_collection_writes_total{instance="a",collection="events"}`: `0+300000x80`,
		`dronefleet_index_shards{instance="a"}`:                                `30x80`,
	}, nil},
	{"no optimizer", map[string]string{`dronefleet_cycles_total{instance="o",outcome="run"}`: `40x80`}, []string{"NoCycles"}},
	// F-OPT-06: other depots have cycles, so NoCycles does not fire.
	{"a depot without cycles", map[string]string{`dronefleet_depot_without_cycles{instance="a",depot="D2"}`: `0x60 1x20`}, []string{"DepotWithoutCycles"}},
	{"failing cycles", map[string]string{`dronefleet_cycles_total{instance="o",outcome="failed"}`: `0+1x80`}, []string{"CyclesFailing"}},
	{"slow cycles", map[string]string{`dronefleet_cycle_seconds_bucket{instance="o",le="8.388608"}`: `0+1x80`}, []string{"CyclesSlow"}},
	// F-OWN-02
	{"cycles that wait", map[string]string{`dronefleet_cycle_wait_seconds_bucket{instance="o",le="8.388608"}`: `0+1x80`}, []string{"CyclesWait"}},
	{"a refused plan", map[string]string{`dronefleet_plans_refused_total{instance="o"}`: `0x40 1x40`}, []string{"PlansRefused"}},
	{"a CRITICAL order waits", map[string]string{`dronefleet_orders_unserved{instance="o",priority="CRITICAL"}`: `1x80`}, []string{"CriticalOrdersUnserved"}},
	{"an old CRITICAL order", map[string]string{`dronefleet_oldest_waiting_order_seconds{instance="a",priority="CRITICAL"}`: `0+30x80`}, []string{"CriticalOrderWaiting"}},
	// F-CYC-02: the sweeper counts; a is killed, and b takes its place.
	{"an old CRITICAL order while the sweeper changes", map[string]string{
		`dronefleet_oldest_waiting_order_seconds{instance="a",priority="CRITICAL"}`: `0+30x70 stale`,
		`dronefleet_oldest_waiting_order_seconds{instance="b",priority="CRITICAL"}`: `_x72 2160+30x10`,
	}, []string{"CriticalOrderWaiting"}},
	{"many orders wait", map[string]string{`dronefleet_orders_unserved{instance="o",priority="STANDARD"}`: `30x80`}, []string{"OrdersUnserved"}},
	{"refused decisions", map[string]string{
		`dronefleet_messages_settled_total{instance="a",kind="decisions",outcome="rejected",reason="STALE_FENCE"}`: `0+90x80`,
	}, []string{"DecisionsRejected"}},
	{"a forged decision", map[string]string{
		`dronefleet_messages_settled_total{instance="a",kind="decisions",outcome="rejected",reason="FENCE_UNKNOWN"}`: `_x60 1x20`,
	}, []string{"FenceUnknown"}}, // F-DEC-07
	{"no sweeps", map[string]string{`dronefleet_sweeps_total{instance="a"}`: `5x80`}, []string{"SweeperIdle"}},
	{"two sweepers", map[string]string{`dronefleet_lock_held{instance="b",lock="sweeper"}`: `1x80`}, []string{"SweeperHeldTwice"}},
	{"slow locks", map[string]string{`dronefleet_lock_wait_seconds_bucket{instance="a",lock="sweeper",le="0.065536"}`: `0+1x80`}, []string{"LockWaitLong"}},
	{"a clock is off", map[string]string{`dronefleet_clock_offset_seconds{instance="o",job="dronefleet-optimizer"}`: `-0.3x80`}, []string{"ClockSkewed"}},
	{"a clock is wrong", map[string]string{`dronefleet_clock_offset_seconds{instance="o",job="dronefleet-optimizer"}`: `0.7x80`}, []string{"ClockSkewed", "ClockWrong"}},
}

// when is the time at which the alerts are evaluated.
const when = "36m"

// F-OBS-01: promtool evaluates the rules: each illness fires its alerts and no others,
// and a healthy fleet fires none.
func TestAlerts_FireExactlyForTheirIllness(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool, which comes with Prometheus, is not installed")
	}
	tested := map[string]bool{}
	file := map[string]any{"rule_files": []string{absolute(t, "alerts.yaml")}, "evaluation_interval": "30s"}
	var tests []any
	for _, illness := range illnesses {
		series := maps.Clone(healthy)
		maps.Copy(series, illness.change)
		var input, firing []any
		for _, name := range slices.Sorted(maps.Keys(series)) {
			input = append(input, map[string]string{"series": name, "values": series[name]})
		}
		for _, name := range illness.alerts {
			tested[name] = true
			firing = append(firing, map[string]any{"labels": fmt.Sprintf("{alertname=%q}", name), "value": 1})
		}
		tests = append(tests, map[string]any{
			"name": illness.name, "interval": "30s", "input_series": input,
			"promql_expr_test": []any{map[string]any{
				"expr": `group by (alertname) (ALERTS{alertstate="firing"})`, "eval_time": when, "exp_samples": firing,
			}},
		})
	}
	file["tests"] = tests
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "illnesses.yaml")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "test", "rules", name).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, file := range [][]string{{"check", "rules", "alerts.yaml"}, {"check", "config", "scrape.yaml"}} {
		if out, err := exec.Command(promtool, file...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(file, " "), err, out)
		}
	}
	for _, a := range alerts(t) {
		if !tested[a.Alert] {
			t.Errorf("no illness fires alert %s", a.Alert)
		}
	}
}

func absolute(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
