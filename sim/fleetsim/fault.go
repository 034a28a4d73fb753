package fleetsim

import (
	"context"
	"time"
)

// Fault is something that goes wrong with one drone. Durations are the drone's
// time, and each part of the fault ends by itself; zero leaves that part out.
type Fault struct {
	Silent  time.Duration // it flies on but sends nothing
	Deaf    time.Duration // it receives no commands
	Broken  time.Duration // it hovers and reports PROBLEM
	Battery *float64      // its charge drops to this percentage
}

// WithFault returns the drone with a fault.
func (d Drone) WithFault(f Fault) Drone {
	d.silentFor = max(d.silentFor, f.Silent)
	d.deafFor = max(d.deafFor, f.Deaf)
	d.brokenFor = max(d.brokenFor, f.Broken)
	if f.Battery != nil {
		d.battery = min(d.battery, max(0, *f.Battery))
	}
	return d
}

// Recovered returns the drone without what is left of its faults. A charge that was lost stays lost.
func (d Drone) Recovered() Drone {
	d.silentFor, d.deafFor, d.brokenFor = 0, 0, 0
	return d
}

// Wind slows drones down and makes them use more charge; the zero value is calm air.
type Wind struct {
	Slower float64 // the share of the ground speed that is lost, under 1
	Dearer float64 // what a kilometre costs more, as a share
}

// In returns the drone in a wind.
func (d Drone) In(w Wind) Drone {
	d.wind = w
	return d
}

// CrashFor is how long a crashed drone is out of touch: longer than the State Manager
// waits for a silent one.
const CrashFor = 150 * time.Second

// Crash makes a random drone fall silent and deaf for CrashFor, as one whose computer
// restarts, at a mean rate in crashes an hour, until ctx ends.
func (f *Fleet) Crash(ctx context.Context, perHour float64) {
	if perHour == 0 || len(f.members) == 0 {
		<-ctx.Done()
		return
	}
	random := randomFor(f.cfg.Seed, streamCrashes)
	for {
		timer := f.clock.NewTimer(time.Duration(random.ExpFloat64() / perHour * float64(time.Hour)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.Chan():
			f.mu.Lock()
			m := f.advance(random.IntN(len(f.members)), f.clock.Now())
			m.drone = m.drone.WithFault(Fault{Silent: CrashFor, Deaf: CrashFor})
			f.crashes++
			f.mu.Unlock()
		}
	}
}
