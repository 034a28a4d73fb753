package devrun

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// watch runs a status on a terminal until enough says that it has seen enough of
// what was written, and returns all of it.
func watch(t *testing.T, pace PaceSummary, enough func(written string) bool) string {
	t.Helper()
	out, in := io.Pipe()
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	s := status{
		console: &console{out: in, terminal: true}, meter: meter.New(), store: firestoretx.New(emutest.Clients(t).Firestore, firestoretx.Config{}),
		now: time.Now, began: time.Now(), speed: 1, pace: func() PaceSummary { return pace },
	}
	go func() { s.run(ctx); in.Close() }()
	var written bytes.Buffer
	part := make([]byte, 4096)
	for {
		n, err := out.Read(part)
		written.Write(part[:n])
		if err != nil {
			return written.String()
		}
		if enough(written.String()) {
			end()
		}
	}
}

// F-API-02: somebody who watches a run is warned once that it falls behind.
func TestStatus_WarnsOnceOfFallingBehind(t *testing.T) {
	t.Parallel()
	written := watch(t, PaceSummary{Behind: true, Speed: 150}, func(written string) bool {
		_, after, warned := strings.Cut(written, "does not keep up")
		return warned && strings.Count(after, "TIME") > 3
	})
	if n := strings.Count(written, "does not keep up"); n != 1 {
		t.Errorf("warned %d times", n)
	}
}

// F-API-02: the status is a header and a row that are redrawn in place; a narrow
// terminal cuts them off, because erasing could not remove a wrapped row.
func TestStatus_IsRedrawnInPlaceAndNeverWrapped(t *testing.T) {
	t.Parallel()
	written := watch(t, PaceSummary{}, func(written string) bool { return strings.Count(written, "TIME") > 2 })
	frames := strings.Split(written, "\x1b[?7l")
	for _, frame := range frames[1 : len(frames)-1] {
		shown, rest, on := strings.Cut(frame, "\x1b[?7h")
		rows := strings.Split(shown, "\r\n")
		if !on || len(rows) < 2 || !strings.Contains(rows[0], "P99 ms") {
			t.Errorf("drawn: %q", frame)
		}
		if want := "\r" + strings.Repeat("\x1b[A", len(rows)-1) + "\x1b[J"; !strings.HasPrefix(rest, want) {
			t.Errorf("then written: %q, want first %q", rest, want)
		}
	}
	if last := frames[len(frames)-1]; !strings.HasSuffix(last, "\x1b[J") {
		t.Errorf("at the end %q stays", last)
	}
}

// F-API-02: the latency on show is that of the latest reports, so a slow start does not
// stay on show.
func TestStatus_ShowsTheLatencyOfTheLatestReports(t *testing.T) {
	var h meter.Histogram
	latency, began := latestOf{histogram: &h, over: 30 * time.Second}, time.Now()
	for _, c := range []struct {
		after time.Duration
		took  time.Duration
		want  time.Duration // at least, of the slowest on show
	}{
		{0, time.Second, time.Second},
		{10 * time.Second, 10 * time.Millisecond, time.Second},
		{29 * time.Second, 10 * time.Millisecond, time.Second},
		{31 * time.Second, 10 * time.Millisecond, 10 * time.Millisecond},
		{35 * time.Second, 100 * time.Millisecond, 100 * time.Millisecond},
		{90 * time.Second, 20 * time.Millisecond, 20 * time.Millisecond},
	} {
		h.Record(c.took)
		if got := latency.look(began.Add(c.after)).Quantile(1); got < c.want || got > c.want*9/8 {
			t.Errorf("after %v the slowest report took %v, want about %v", c.after, got, c.want)
		}
	}
}

func countsAt(at time.Time) *storeCounts {
	var c storeCounts
	c.set(map[domain.OrderStatus]int64{domain.OrderPending: 1234567, domain.OrderSolving: 0, domain.OrderAssigned: 12345678, domain.OrderInDelivery: 123456, domain.OrderDelivered: 123456789,
		domain.OrderCancelled: 0},
		map[domain.Outcome]int64{domain.OutcomeApplied: 12345678, domain.OutcomeRejected: 1234567}, at)
	return &c
}

// F-API-02: every column fits a terminal of 80 columns, whatever the numbers.
func TestStatus_LosesNoColumnAt80(t *testing.T) {
	now := time.Now()
	row := statusRow{storeCounts: countsAt(now), elapsed: 99*time.Hour + 59*time.Minute, reportsPerSecond: 123456789, p99: 123456 * time.Millisecond}
	rows := row.table(now)
	if len(rows) != 2 {
		t.Fatalf("%d rows: %q", len(rows), rows)
	}
	header := strings.Fields(strings.ReplaceAll(rows[0], "P99 ms", "P99"))
	if fields := strings.Fields(rows[1]); len(fields) != len(header) {
		t.Errorf("%d values under %d headers:\n%s\n%s", len(fields), len(header), rows[0], rows[1])
	}
	for _, r := range rows {
		if len(r) > 81 { // the elapsed time of four days takes two more
			t.Errorf("%d columns: %s", len(r), r)
		}
	}
	if len(rows[0]) > 79 {
		t.Errorf("%d columns: %s", len(rows[0]), rows[0])
	}
}

// F-API-02: under load the store is counted less often; counts that stand still say
// how old they are.
func TestStatus_MarksOldCounts(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		counts *storeCounts
		want   string
	}{
		{countsAt(now), ""},
		{countsAt(now.Add(-12 * time.Second)), "counts: 12s old"},
		{&storeCounts{}, "counts: not known yet"},
	} {
		row := statusRow{storeCounts: c.counts}
		for _, text := range []string{row.line(now), strings.Join(row.table(now), "\n")} {
			if strings.Contains(text, "counts") != (c.want != "") || !strings.Contains(text, c.want) {
				t.Errorf("printed %q, want %q", text, c.want)
			}
		}
	}
}

// F-API-02: counting a hundred thousand orders takes the embedded server half a
// second; it must not be busy with that all the time.
func TestStatus_PausesAfterCounting(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		2 * time.Millisecond: redrawEvery, 500 * time.Millisecond: 5 * time.Second, 10 * time.Second: 100 * time.Second,
	} {
		if got := countPause(took); got != want {
			t.Errorf("pauses %s after %s, want %s", got, took, want)
		}
	}
}
