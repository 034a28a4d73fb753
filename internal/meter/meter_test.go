package meter

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"pgregory.net/rapid"
)

// busy returns a meter on which everything has happened once.
func busy() *Meter {
	m := New()
	m.Settle(Settlement{Kind: "telemetry", Outcome: Applied})
	m.Settle(Settlement{Kind: "telemetry", Outcome: Rejected, Reason: "STALE_TELEMETRY"})
	m.Settle(Settlement{Kind: "telemetry", Outcome: Nacked})
	m.Latency("telemetry").RecordTraced(time.Millisecond, "4bf92f3577b34da6a3ce929d0e0e4736")
	rpcs := entry(m, m.firestore, rpcKey{"telemetry", "Commit"})
	rpcs.calls.Inc()
	rpcs.writes.Add(3)
	m.CommitRetried(WithOperation(context.Background(), "telemetry"))
	m.Backlog("telemetry", func() time.Time { return epoch.Add(time.Minute) }).Hold(epoch)
	m.Lock(LockSweeper).Tried(time.Now(), true)
	m.LockEvents(LockEvent{Type: "acquire", Result: "ok"}).Inc()
	m.Cycles.Took.Record(time.Second)
	m.Cycles.Ended(CycleRun)
	m.Cycles.SetUnserved("D1", map[string]int64{"CRITICAL": 9})
	m.Cycles.SetUnserved("D1", map[string]int64{"CRITICAL": 2})
	m.Cycles.SetUnserved("D2", map[string]int64{"CRITICAL": 1})
	m.SetIdleDepots([]string{"D1"})
	m.SetWebhooksWaiting(map[string]time.Time{"W1": time.Now()})
	m.RampHeld("drones").Inc()
	m.tellWrites([]*firestorepb.Write{{Operation: &firestorepb.Write_Delete{Delete: "projects/p/databases/d/documents/events/E"}}})
	m.HistoryRows("events").Inc()
	m.HistoryBehind.Set(time.Second)
	m.IndexShards.Store(30)
	m.ClockOffset.Set(-5 * time.Millisecond)
	m.Fleet.ExpectDeliveries("CRITICAL")
	m.Fleet.Delivered("CRITICAL", true, 20*time.Minute)
	m.Fleet.Stands(Standing{
		Orders: map[string]int64{"PENDING": 4}, Held: 1, Drones: map[string]int64{"IDLE": 3}, Unregistered: 2, Overdue: map[string]int64{"CRITICAL": 2},
		Waiting: map[string]func() time.Duration{"CRITICAL": func() time.Duration { return time.Minute }},
	}, time.Hour)
	return m
}

var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func gather(t *testing.T, m *Meter) map[string]*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(m); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*dto.MetricFamily{}
	for _, f := range families {
		byName[f.GetName()] = f
	}
	return byName
}

// F-OBS-01: every metric is described, and every described metric exists.
func TestMeter_CollectsExactlyWhatIsDescribed(t *testing.T) {
	families := gather(t, busy())
	if got, want := slices.Sorted(maps.Keys(families)), slices.Sorted(slices.Values(Names())); !slices.Equal(got, want) {
		t.Errorf("collected %v\nwant %v", got, want)
	}
	for _, d := range Descriptions() {
		f := families[d.Name]
		if f == nil {
			continue
		}
		if got := strings.ToLower(f.GetType().String()); got != d.Type {
			t.Errorf("%s is a %s, described as %s", d.Name, got, d.Type)
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		if want := slices.Sorted(slices.Values(d.Labels)); !slices.Equal(labels, want) {
			t.Errorf("%s has labels %v, described as %v", d.Name, labels, want)
		}
		if d.Help == "" || f.GetHelp() != d.Help {
			t.Errorf("%s: help %q", d.Name, f.GetHelp())
		}
	}
}

// F-OBS-01: the help text of a metric begins with its unit. None claims to match
// Firestore's bill, which includes reads that no answer shows.
func TestDescriptions_SayTheirUnit(t *testing.T) {
	for _, d := range Descriptions() {
		unit := ""
		switch {
		case strings.HasSuffix(d.Name, "_seconds"):
			unit = "Seconds "
		case strings.Contains(d.Name, "_reads_"), strings.Contains(d.Name, "_writes_"):
			unit = "Documents "
		}
		if !strings.HasPrefix(d.Help, unit) || strings.Contains(d.Help, "as Firestore bills") {
			t.Errorf("%s: %s", d.Name, d.Help)
		}
	}
}

// F-OBS-01
func TestMeter_ValuesOfGauges(t *testing.T) {
	families := gather(t, busy())
	for name, want := range map[string]float64{
		"dronefleet_backlog_age_seconds":                    60,
		"dronefleet_backlog_messages":                       1,
		"dronefleet_orders_unserved":                        3, // the last cycle's
		"dronefleet_clock_offset_seconds":                   -0.005,
		"dronefleet_lock_held":                              1,
		"dronefleet_firestore_writes_per_thousand_messages": 1500, // 3 for the two that were acked
		"dronefleet_firestore_reads_per_thousand_messages":  0,
	} {
		if got := families[name].GetMetric()[0].GetGauge().GetValue(); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// A rate misses the first event of a series that begins with it.
func TestMeter_ExportsZeroCounts(t *testing.T) {
	m := New()
	entry(m, m.firestore, rpcKey{"orders", "Commit"})
	m.AwaitLockEvents()
	families := gather(t, m)
	for _, name := range []string{"dronefleet_cycles_total", "dronefleet_plans_refused_total", "dronefleet_sweeps_total", "dronefleet_sweeps_skipped_total",
		"dronefleet_commands_published_total", "dronefleet_outbox_overflow_total", "dronefleet_live_reports_total", "dronefleet_live_reports_bytes_total", "dronefleet_parcels_picked_up_again_total", "dronefleet_commit_retries_total", "dronefleet_lock_events_total", "dronefleet_lock_events_dropped_total"} {
		if families[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	if n := len(families["dronefleet_cycles_total"].GetMetric()); n != 4 {
		t.Errorf("%d outcomes of cycles", n)
	}
	if n := len(families["dronefleet_lock_events_total"].GetMetric()); n != 8 {
		t.Errorf("%d kinds of lock events", n)
	}
}

// F-OBS-01: a latency leads to an example trace.
func TestMeter_ExemplarsNameTraces(t *testing.T) {
	m := New()
	h := m.Latency("orders")
	h.Record(3 * time.Millisecond)
	h.RecordTraced(3*time.Millisecond, "trace-3ms")
	h.RecordTraced(200*time.Millisecond, "trace-older")
	h.RecordTraced(220*time.Millisecond, "trace-220ms")
	h.RecordTraced(time.Hour, "trace-1h")
	got := map[string]float64{}
	for _, b := range gather(t, m)["dronefleet_publish_to_commit_seconds"].GetMetric()[0].GetHistogram().GetBucket() {
		if e := b.GetExemplar(); e != nil {
			got[e.GetLabel()[0].GetName()+" "+e.GetLabel()[0].GetValue()] = e.GetValue()
			if e.GetTimestamp() == nil {
				t.Errorf("exemplar %v has no time", e)
			}
		}
	}
	want := map[string]float64{"trace_id trace-3ms": 0.003, "trace_id trace-220ms": 0.22, "trace_id trace-1h": 3600}
	if !maps.Equal(got, want) {
		t.Errorf("exemplars %v, want %v", got, want)
	}
}

// F-OBS-01: the age is that of the oldest message held, whatever the order of Hold and
// Release.
func TestBacklog_AgeIsThatOfTheOldest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := epoch.Add(time.Hour)
		b := New().Backlog("orders", func() time.Time { return now })
		var held []time.Time
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(held) > 0 && rapid.Bool().Draw(t, "release") {
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				b.Release(held[i])
				held = slices.Delete(held, i, i+1)
			} else {
				at := epoch.Add(time.Duration(rapid.Int64Range(0, int64(2*time.Minute)).Draw(t, "at")))
				b.Hold(at)
				held = append(held, at)
			}
			var want time.Duration
			for _, at := range held {
				want = max(want, now.Sub(at))
			}
			if got := b.Age(); got < want || got > want+backlogGrain || len(held) == 0 && got != 0 {
				t.Fatalf("age %s, want %s", got, want)
			}
			if b.Messages() != int64(len(held)) {
				t.Fatalf("%d messages, want %d", b.Messages(), len(held))
			}
		}
	})
}

func TestBacklog_WorksWithoutAllocating(t *testing.T) {
	b := New().Backlog("telemetry", time.Now)
	for i := range 1000 { // some are always held
		b.Hold(epoch.Add(time.Duration(i) * backlogGrain))
	}
	i := 1000
	if n := testing.AllocsPerRun(10_000, func() {
		b.Hold(epoch.Add(time.Duration(i) * backlogGrain))
		b.Release(epoch.Add(time.Duration(i-1000) * backlogGrain))
		i++
	}); n > 0 {
		t.Errorf("%v allocations per message", n)
	}
}

func TestLock_IsHeldWhileAnyGrantIs(t *testing.T) {
	l := New().Lock(LockCycle)
	if l.Held() || !l.LastTried().IsZero() {
		t.Error("held before anything happened")
	}
	l.Tried(time.Now(), true) // of one depot
	l.Tried(time.Now(), true) // of another
	l.Tried(time.Now(), false)
	l.Gave()
	if !l.Held() {
		t.Error("one of two is still held")
	}
	l.Gave()
	if l.Held() || l.LastTried().IsZero() || l.Wait.Count() != 3 {
		t.Errorf("held %v, tried %s, %d waits", l.Held(), l.LastTried(), l.Wait.Count())
	}
}

// F-OBS-01: deliveries are counted on time and late from the start, and their time in
// buckets of minutes; how the fleet stands is not shown once it is old.
func TestFleet_ShowsDeliveriesAndAFreshStanding(t *testing.T) {
	m := busy()
	families := gather(t, m)
	counts := map[string]float64{}
	for _, series := range families["dronefleet_deliveries_total"].GetMetric() {
		counts[series.GetLabel()[0].GetValue()+" "+series.GetLabel()[1].GetValue()] = series.GetCounter().GetValue()
	}
	if want := map[string]float64{"late CRITICAL": 1, "on_time CRITICAL": 0}; !maps.Equal(counts, want) {
		t.Errorf("deliveries %v, want %v", counts, want)
	}
	took := families["dronefleet_delivery_seconds"].GetMetric()[0].GetHistogram()
	buckets := took.GetBucket()
	if n := len(buckets); n != 17 || buckets[0].GetUpperBound() < 30 || buckets[n-1].GetUpperBound() < 8000 {
		t.Fatalf("%d buckets from %v", n, buckets)
	}
	for _, b := range buckets {
		if want := b.GetUpperBound() > (20 * time.Minute).Seconds(); (b.GetCumulativeCount() == 1) != want {
			t.Errorf("%d deliveries took less than %g s", b.GetCumulativeCount(), b.GetUpperBound())
		}
	}
	if age := families["dronefleet_oldest_waiting_order_seconds"].GetMetric()[0].GetGauge().GetValue(); age != 60 {
		t.Errorf("the oldest order has waited %g s, want 60", age)
	}
	if n := families["dronefleet_orders_overdue"].GetMetric()[0].GetGauge().GetValue(); n != 2 {
		t.Errorf("%g orders are overdue, want 2", n)
	}
	m.Fleet.Stands(Standing{Orders: map[string]int64{"PENDING": 4}, Held: 1, Overdue: map[string]int64{"CRITICAL": 2}}, 0)
	families = gather(t, m)
	for _, name := range []string{"dronefleet_orders", "dronefleet_orders_held", "dronefleet_orders_overdue", "dronefleet_drones", "dronefleet_drones_unregistered", "dronefleet_oldest_waiting_order_seconds"} {
		if families[name] != nil {
			t.Errorf("%s is shown though it is old", name)
		}
	}
}
