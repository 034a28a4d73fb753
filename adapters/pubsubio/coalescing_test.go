package pubsubio

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/ramp"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// ledger is a store of telemetry that notes when it commits what. To it a drone
// that is idle has changed, and any other only moves.
type ledger struct {
	began   time.Time
	commits []string
	forgot  int
}

func (c *ledger) Apply(_ context.Context, reports []domain.Telemetry) []error {
	var drones []string
	for _, r := range reports {
		drones = append(drones, string(r.DroneID))
	}
	slices.Sort(drones) // drones of a commit have no order
	c.commits = append(c.commits, fmt.Sprintf("%v: %s", time.Since(c.began), strings.Join(drones, " ")))
	return make([]error, len(reports))
}

func (*ledger) Urgent(t domain.Telemetry) bool { return t.Status == domain.DroneIdle }
func (c *ledger) Forget()                      { c.forgot++ }

// fleet is drones whose reports one shard commits to a ledger, in a bubble's time.
type fleet struct {
	*ledger
	*settler
	shard *telemetryShard
	stop  func() // returns when all is settled
}

func newFleet(t *testing.T) *fleet { return newRampedFleet(t, nil) }

func newRampedFleet(t *testing.T, r *ramp.Ramp) *fleet {
	store := &ledger{began: time.Now()}
	s := NewWorker(nil, nil, nil, Config{}, emutest.Log(t), meter.New()).settler(TopicTelemetry)
	p := newTelemetryPipeline(s, Config{TelemetryShards: 1, Ramp: r}.withDefaults(), func() TelemetryApplier { return store })
	ended := make(chan struct{})
	go func() { defer close(ended); p.shards[0].run(t.Context()) }()
	return &fleet{ledger: store, settler: s, shard: p.shards[0], stop: func() { p.stop(); <-ended }}
}

// say has drones report at a time since the beginning.
func (f *fleet) say(at time.Duration, status domain.DroneStatus, drones ...domain.DroneID) {
	time.Sleep(time.Until(f.began.Add(at)))
	for _, id := range drones {
		r := report{Telemetry: domain.Telemetry{DroneID: id, Status: status}, msg: &pubsub.Message{}, lease: time.Now().Add(time.Minute)}
		f.hold(r.msg)
		f.shard.in <- &r
	}
	synctest.Wait()
}

// F-BAT-01: a state change is committed at once, with what its drone has said
// before; a drone that only moves about once a second, with all it has said
// meanwhile, and drones that are due at about the same time together.
func TestTelemetry_CommitsChangesAtOnceAndPositionsOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.say(0, domain.DroneMoving, "A") // nothing is written of it yet
		f.say(20*time.Millisecond, domain.DroneMoving, "B")
		f.say(100*time.Millisecond, domain.DroneMoving, "A", "B", "A")
		f.say(300*time.Millisecond, domain.DroneMoving, "C")
		f.say(400*time.Millisecond, domain.DroneMoving, "A", "C")
		f.say(950*time.Millisecond, domain.DroneMoving, "B")
		f.say(1200*time.Millisecond, domain.DroneMoving, "A", "B")
		f.say(1210*time.Millisecond, domain.DroneIdle, "A")
		f.say(1220*time.Millisecond, domain.DroneIdle, "A") // which delays nothing
		f.say(1500*time.Millisecond, domain.DroneMoving, "A")
		f.say(1600*time.Millisecond, domain.DroneMoving)
		f.stop() // what waits is committed
		want := []string{
			"0s: A",
			"20ms: B",
			"300ms: C",
			"1.05s: A A A B B", // A's second is over at 1 s, B's at 1.02 s
			"1.23s: A A A",     // B may wait
			"1.35s: C",
			"1.6s: A B",
		}
		if !slices.Equal(f.commits, want) {
			t.Errorf("committed\n%s\nwant\n%s", strings.Join(f.commits, "\n"), strings.Join(want, "\n"))
		}
		if n := f.backlog.Messages(); n != 0 {
			t.Errorf("%d messages are still held", n)
		}
		// F-OBS-01: each tier has its latencies.
		if status, position := f.meter.Latency(LatencyStatus).Count(), f.meter.Latency(LatencyPosition).Count(); status != 2 || position != 12 {
			t.Errorf("%d latencies of changes and %d of positions, want 2 and 12", status, position)
		}
	})
}

// F-HIS-02: while writes are held back, positions wait unacked and then go together; a state change does not
// wait.
func TestTelemetry_HoldsBackPositionsInARamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := ramp.New(ramp.Config{Rate: 10, Now: time.Now, Began: func(context.Context) (time.Time, error) { return began, nil }})
		r.Spent(firestoretx.Drones, 120) // 20 more than its burst, which takes 2 s
		f := newRampedFleet(t, r)
		f.say(0, domain.DroneMoving, "A", "B")
		f.say(500*time.Millisecond, domain.DroneIdle, "B")
		f.say(1500*time.Millisecond, domain.DroneMoving, "A")
		if n := f.backlog.Messages(); n != 2 {
			t.Errorf("%d messages are held, want 2", n)
		}
		f.say(3*time.Second, domain.DroneMoving)
		f.stop()
		if want := []string{"500ms: B B", "2.05s: A A"}; !slices.Equal(f.commits, want) {
			t.Errorf("committed %q, want %q", f.commits, want)
		}
	})
}

// F-BAT-01: drones that report once a second, give or take, do not wait until their
// second is over, not even after a late report. Those that report more often do.
func TestTelemetry_DelaysNoDroneThatReportsOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		var want []string
		for n := range 60 {
			at := time.Duration(n)*time.Second + time.Duration(n%4)*30*time.Millisecond + 7*time.Millisecond
			if n == 20 {
				at += 400 * time.Millisecond
			}
			f.say(at, domain.DroneMoving, "A")
			commit := nextTick(f.began.Add(at)).Sub(f.began)
			switch n {
			case 0, 20:
				commit = at // its second is over
			case 21:
				commit = 21450 * time.Millisecond // 600 ms after the late one: waits for its second
			}
			want = append(want, fmt.Sprintf("%v: A", commit))
		}
		time.Sleep(time.Second)
		f.stop()
		if !slices.Equal(f.commits, want) {
			t.Errorf("committed\n%s\nwant\n%s", strings.Join(f.commits, "\n"), strings.Join(want, "\n"))
		}
	})
}

// F-BAT-01, F-ACK-01: a position may wait for its commit as long as it is told to,
// and still has time for it before its message is given back.
func TestConfig_LeaseOutlastsTheWaitForACommit(t *testing.T) {
	for coalesce, want := range map[time.Duration]time.Duration{0: 50 * time.Second, time.Second: 50 * time.Second, time.Minute: 2 * time.Minute} {
		if got := (Config{TelemetryCoalesce: coalesce}).withDefaults().Lease; got != want {
			t.Errorf("positions written every %v: a lease of %v, want %v", coalesce, got, want)
		}
	}
}

// F-FLOW-01: drones that are gone take no memory for long.
func TestTelemetry_ForgetsSilentDrones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.say(0, domain.DroneMoving, "A")
		f.say(90*time.Second, domain.DroneMoving, "B")
		f.say(11*time.Minute+time.Second, domain.DroneMoving)
		f.stop()
		if known := slices.Collect(maps.Keys(f.shard.seen)); !slices.Equal(known, []domain.DroneID{"B"}) {
			t.Errorf("after eleven minutes %v are remembered, want B", known)
		}
		if f.forgot != 11 {
			t.Errorf("the store was told %d times to forget", f.forgot)
		}
	})
}
