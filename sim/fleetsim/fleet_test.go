package fleetsim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// network is a Publisher that may lose messages or leave them unanswered.
type network struct {
	mu       sync.Mutex
	lost     func(n int) bool // by number; nil loses none
	mute     bool
	messages []sentMessage
	arrived  chan struct{} // one token per message
}

type sentMessage struct {
	topic, key string
	data       []byte
	attrs      map[string]string
}

func newNetwork() *network { return &network{arrived: make(chan struct{}, 1<<16)} }

func (n *network) Publish(_ context.Context, topic string, data []byte, attrs map[string]string, key string) Result {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.messages = append(n.messages, sentMessage{topic, key, data, attrs})
	number := len(n.messages)
	n.arrived <- struct{}{}
	if n.mute {
		return unanswered{}
	}
	return answer{number, n.lost != nil && n.lost(number)}
}

func (n *network) sent() []sentMessage {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.messages)
}

type answer struct {
	number int
	lost   bool
}

func (a answer) Wait(context.Context) (string, error) {
	if a.lost {
		return "", errors.New("lost")
	}
	return fmt.Sprint(a.number), nil
}

type unanswered struct{}

func (unanswered) Wait(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func newWorld(t testing.TB, drones int) *World {
	t.Helper()
	w, err := NewWorld(WorldConfig{Drones: drones, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// rig is a running fleet on a fake clock.
type rig struct {
	fleet         *Fleet
	clock         *clockwork.FakeClock
	network       *network
	confirmations *Confirmations
	stop          func()
}

func run(t *testing.T, w *World, cfg FleetConfig, n *network) rig {
	t.Helper()
	r := rig{clock: clockwork.NewFakeClockAt(noon), network: n, confirmations: NewConfirmations()}
	var err error
	if r.fleet, err = NewFleet(w, cfg, r.clock, n, r.confirmations); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.fleet.Run(ctx) }()
	if err := r.clock.BlockUntilContext(ctx, 1); err != nil {
		t.Fatal(err)
	}
	r.stop = func() { cancel(); <-done }
	t.Cleanup(r.stop)
	return r
}

// advance moves the clock and waits for the messages that are due by then.
func (r rig) advance(t *testing.T, dt time.Duration, messages int) {
	t.Helper()
	r.clock.Advance(dt)
	for range messages {
		select {
		case <-r.network.arrived:
		case <-t.Context().Done():
			t.Fatal("the fleet sent too little")
		}
	}
}

func TestFleet_SpreadsReportsEvenlyOverThePeriod(t *testing.T) {
	r := run(t, newWorld(t, 50), FleetConfig{Hz: 1}, newNetwork())
	for range 10 {
		r.advance(t, 100*time.Millisecond, 5) // a tenth of the fleet in a tenth of the period
	}
	r.stop()
	heard := map[string]int{}
	for _, m := range r.network.sent() {
		report, err := wire.DecodeTelemetry(m.data, m.attrs)
		if err != nil {
			t.Fatal(err)
		}
		if m.topic != "telemetry" || m.key != string(report.DroneID) {
			t.Errorf("topic %q and ordering key %q for %s", m.topic, m.key, report.DroneID)
		}
		heard[m.key]++
	}
	if len(heard) != 50 {
		t.Errorf("%d drones reported, want each of 50 once: %v", len(heard), heard)
	}
}

func TestFleet_ReportsOncePerDroneAfterAStandstill(t *testing.T) {
	r := run(t, newWorld(t, 10), FleetConfig{Hz: 2}, newNetwork())
	r.advance(t, time.Minute, 10) // 1200 reports were due
	r.stop()
	if n := len(r.network.sent()); n != 10 {
		t.Errorf("%d reports after a minute's standstill, want one of each of 10 drones", n)
	}
}

func TestFleet_DeliversCommandsAndReportsTheMission(t *testing.T) {
	r := run(t, newWorld(t, 1), FleetConfig{Format: wire.JSON}, newNetwork())
	stop := hospital("HOSP-TROUSSEAU").Position
	m := errand("M", stop, stop)
	m.DroneID = "DRONE-001"
	if !r.fleet.Deliver(command(m)) {
		t.Fatal("the drone ignored its command")
	}
	m.DroneID = "DRONE-999"
	if r.fleet.Deliver(command(m)) {
		t.Fatal("a drone that does not exist obeyed")
	}
	m.DroneID, m.ID = "DRONE-001", ""
	if r.fleet.Deliver(command(m)) {
		t.Fatal("the drone obeyed a command without a mission")
	}
	r.advance(t, time.Second, 1)
	r.stop()
	report, err := wire.DecodeTelemetry(r.network.sent()[0].data, nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.MissionID != "M" || report.Status != domain.DroneMoving {
		t.Errorf("it reports %s on %q, want MOVING on M", report.Status, report.MissionID)
	}
	if s := r.fleet.Stats(); s.CommandsObeyed != 1 || s.CommandsIgnored != 1 {
		t.Errorf("stats are %+v", s)
	}
}

// I9: the checker judges exactly the messages that were confirmed.
func TestFleet_ConfirmsExactlyWhatTheServerAnswered(t *testing.T) {
	n := newNetwork()
	n.lost = func(number int) bool { return number%3 == 0 }
	r := run(t, newWorld(t, 9), FleetConfig{}, n)
	r.advance(t, time.Second, 9)
	r.stop()
	messages := r.confirmations.Messages()
	if len(messages) != 6 {
		t.Fatalf("the list holds %d messages, want the 6 of 9 that were confirmed", len(messages))
	}
	for _, m := range messages {
		if m.ID == "" || m.DroneID == "" || m.Topic != "telemetry" || !m.Timestamp.Equal(noon.Add(time.Second)) {
			t.Errorf("incomplete entry %+v", m)
		}
	}
	if s := r.fleet.Stats().Telemetry; s.Sent != 9 || s.Confirmed != 6 || s.Failed != 3 {
		t.Errorf("stats are %+v", s)
	}
}

func TestFleet_StopsWhenNoServerAnswers(t *testing.T) {
	n := newNetwork()
	n.mute = true
	r := run(t, newWorld(t, 3), FleetConfig{}, n)
	r.advance(t, time.Second, 3)
	stopped := make(chan struct{})
	go func() { defer close(stopped); r.stop() }()
	// Only the drain timer is left once the loop's ticker is gone. It may not
	// have been set yet, so advance until it has fired.
	for waiting := true; waiting; {
		select {
		case <-stopped:
			waiting = false
		default:
			r.clock.Advance(drainTime)
		}
	}
	if s := r.fleet.Stats().Telemetry; s.Failed != s.Sent || len(r.confirmations.Messages()) != 0 {
		t.Errorf("stats are %+v with %d confirmed messages, want all failed and none", s, len(r.confirmations.Messages()))
	}
}

func TestFleet_ClocksAreOffByAtMostTheError(t *testing.T) {
	r := run(t, newWorld(t, 100), FleetConfig{ClockError: 3 * time.Second, Seed: 7}, newNetwork())
	r.advance(t, time.Second, 100)
	r.stop()
	early, late := 0, 0
	for _, m := range r.network.sent() {
		report, err := wire.DecodeTelemetry(m.data, m.attrs)
		if err != nil {
			t.Fatal(err)
		}
		switch off := report.Timestamp.Sub(noon.Add(time.Second)); {
		case off < -3*time.Second || off > 3*time.Second:
			t.Errorf("%s is off by %v", report.DroneID, off)
		case off < -time.Second:
			early++
		case off > time.Second:
			late++
		}
	}
	if early == 0 || late == 0 {
		t.Errorf("%d clocks are slow and %d fast, want some of each", early, late)
	}
}

func TestFleet_SilentDronesSendNothing(t *testing.T) {
	r := run(t, newWorld(t, 2), FleetConfig{}, newNetwork())
	if err := r.fleet.Inject("DRONE-001", Fault{Silent: 90 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if err := r.fleet.Inject("DRONE-9", Fault{}); err == nil || !strings.Contains(err.Error(), "DRONE-9") {
		t.Errorf("fault for an unknown drone: %v", err)
	}
	r.advance(t, time.Second, 1)
	r.stop()
	for _, m := range r.network.sent() {
		if m.key == "DRONE-001" {
			t.Error("the silent drone was heard")
		}
	}
}

func TestFleet_NamesEveryBadSetting(t *testing.T) {
	_, err := NewFleet(newWorld(t, 1), FleetConfig{Hz: -1, ClockError: -1, Format: "xml"}, clockwork.NewFakeClock(), newNetwork(), NewConfirmations())
	for _, want := range []string{"hz is -1", "clock error is -1ns", `format is "xml"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

func TestConfirmations_ReduceOldTelemetryToTheNewestOfEachDrone(t *testing.T) {
	r := run(t, newWorld(t, 4), FleetConfig{}, newNetwork())
	r.confirmations.bound = 24
	for range 6 {
		r.advance(t, time.Second, 4)
	}
	r.stop()
	messages := r.confirmations.Messages()
	if len(messages) != 16 {
		t.Fatalf("%d entries, want 4 of the older half and 12 kept", len(messages))
	}
	newest := map[domain.DroneID]time.Time{}
	for _, m := range messages {
		if m.Timestamp.Before(newest[m.DroneID]) {
			t.Errorf("%s goes back to %v", m.DroneID, m.Timestamp)
		}
		newest[m.DroneID] = m.Timestamp
	}
	for drone, at := range newest {
		if !at.Equal(noon.Add(6 * time.Second)) {
			t.Errorf("newest entry of %s is of %v", drone, at)
		}
	}
	if len(slices.Collect(maps.Keys(newest))) != 4 {
		t.Errorf("entries of %d drones, want 4", len(newest))
	}
}

func BenchmarkFleet_Report(b *testing.B) {
	w := newWorld(b, 5000)
	f, err := NewFleet(w, FleetConfig{}, clockwork.NewFakeClockAt(noon), newNetwork(), NewConfirmations())
	if err != nil {
		b.Fatal(err)
	}
	stop := hospital("HOSP-AVICENNE").Position
	for _, d := range w.Drones {
		m := errand("M", stop, stop)
		m.DroneID = d.ID
		f.Deliver(command(m))
	}
	now := noon
	for b.Loop() {
		now = now.Add(time.Second)
		for i := range f.members {
			t, _, _ := f.report(i, now)
			if _, _, err := wire.EncodeTelemetry(t, wire.Protobuf); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(f.members)), "ns/report")
}

// F-DAY-02: the busiest drone is one that flies and reports; what recovers reports again.
func TestFleet_LosesItsBusiestDrone(t *testing.T) {
	clock := clockwork.NewFakeClockAt(noon)
	f, err := NewFleet(newWorld(t, 3), FleetConfig{}, clock, newNetwork(), NewConfirmations())
	if err != nil {
		t.Fatal(err)
	}
	if id, _ := f.Busiest(); id != "" {
		t.Errorf("%s flies without a mission", id)
	}
	m := errand("M", hospital("HOSP-ROTHSCHILD").Position, hospital("HOSP-TROUSSEAU").Position)
	m.DroneID = "DRONE-003"
	if !f.Deliver(domain.Command{Mission: m, ExpiresAt: noon.Add(time.Minute)}) {
		t.Fatal("the drone ignored its mission")
	}
	clock.Advance(time.Second)
	if id, parcels := f.Busiest(); id != m.DroneID || parcels != 0 {
		t.Errorf("busiest is %s with %d parcels", id, parcels)
	}
	if err := f.Inject(m.DroneID, Fault{Silent: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if id, _ := f.Busiest(); id != "" {
		t.Errorf("%s is silent and was taken", id)
	}
	f.Recover(m.DroneID)
	if id, _ := f.Busiest(); id != m.DroneID {
		t.Errorf("busiest is %q after it recovered", id)
	}
}
