package ramp_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dronefleet/dronefleet/internal/ramp"
)

var start = time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)

// fleet is a ramp on a clock of its own.
type fleet struct {
	*ramp.Ramp
	now   time.Time
	began time.Time
	err   error
	asked int
	held  map[string]int
}

func newFleet(rate float64) *fleet {
	f := &fleet{now: start, held: map[string]int{}}
	f.Ramp = ramp.New(ramp.Config{
		Rate: rate, Now: func() time.Time { return f.now }, Held: func(collection string) { f.held[collection]++ },
		Began: func(context.Context) (time.Time, error) { f.asked++; return f.began, f.err },
	})
	return f
}

// drive writes as much as it may for a time, in commits of 250, and returns the writes of each second.
func (f *fleet) drive(collection string, seconds int) (written []int) {
	for range seconds {
		n := 0
		for range 20 {
			for n < 50_000 && f.Ready(collection) {
				f.Spent(collection, 250)
				n += 250
			}
			synctest.Wait() // for the answer of Began
			f.now = f.now.Add(50 * time.Millisecond)
		}
		written = append(written, n)
	}
	return written
}

// F-HIS-02: a collection gets 500 writes a second, and half more every five minutes; each has a bucket of its
// own.
func TestRamp_GrowsByHalfEveryFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(ramp.Rate)
		f.began = start
		written := f.drive("drones", 20*60)
		want := 500.0
		for minutes := 0; minutes < 20; minutes += 5 {
			sum := 0
			for _, n := range written[minutes*60+30 : minutes*60+300] { // without the burst at the beginning
				sum += n
			}
			if mean := float64(sum) / 270; mean < want*0.98 || mean > want*1.02 {
				t.Errorf("%.0f writes a second from minute %d on, want %.0f", mean, minutes, want)
			}
			want *= 1.5
		}
		if !f.Ready("events") {
			t.Error("one collection holds up another")
		}
		if f.asked != 1 || f.held["drones"] == 0 || f.held["events"] != 0 {
			t.Errorf("asked %d times, held %v", f.asked, f.held)
		}
	})
}

// F-HIS-02: a fleet that writes less is never held back, in no burst of seconds either, and its database has no
// ramp.
func TestRamp_IsNotNoticedBySmallFleets(t *testing.T) {
	f, random := newFleet(ramp.Rate), rand.New(rand.NewPCG(1, 1))
	for second := range 3600 {
		writes := random.IntN(700) // 350 on average
		if second%60 == 0 {
			writes = 3000
		}
		if !f.Ready("drones") {
			t.Fatalf("held back in second %d", second)
		}
		f.Spent("drones", writes)
		f.now = f.now.Add(time.Second)
	}
	if f.asked != 0 {
		t.Error("the ramp began")
	}
}

// F-HIS-02: after a restart, and in a database that is used to it, the rate is that of the time since the ramp
// began.
func TestRamp_GoesOnAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(ramp.Rate)
		f.began, f.err = start.Add(-24*time.Hour), errors.New("no answer")
		f.drive("drones", 30)
		if f.err = nil; f.asked < 2 {
			t.Errorf("asked %d times while there was no answer", f.asked)
		}
		f.drive("drones", 6)
		for f.now.Sub(start) < 60*time.Second {
			if !f.Ready("drones") {
				t.Fatal("a database that is used to it is held back")
			}
			f.Spent("drones", 50_000)
			f.now = f.now.Add(time.Second)
		}
	})
}

// A wait ends with its context, and none is for a ramp that is off.
func TestRamp_WaitEndsWithItsContext(t *testing.T) {
	f := newFleet(ramp.Rate)
	f.began = start
	f.Spent("orders", 1_000_000)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := f.Wait(ctx, "events", "orders"); !errors.Is(err, context.Canceled) {
		t.Errorf("wait: %v", err)
	}
	var off *ramp.Ramp
	off.Spent("orders", 1_000_000)
	if err := off.Wait(ctx, "orders"); err != nil || !off.Ready("orders") {
		t.Errorf("a ramp that is off: %v", err)
	}
}
