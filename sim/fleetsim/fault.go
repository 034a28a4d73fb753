package fleetsim

import "time"

// Fault is something that goes wrong with one drone. Durations are of the
// drone's time and end by themselves; zero leaves that part of it alone.
type Fault struct {
	Silent  time.Duration // it flies on but sends nothing
	Deaf    time.Duration // it receives no commands
	Broken  time.Duration // it hovers and reports PROBLEM
	Battery *float64      // its charge drops to this percentage
}

// Suffering is the drone once the fault has struck.
func (d Drone) Suffering(f Fault) Drone {
	d.silentFor = max(d.silentFor, f.Silent)
	d.deafFor = max(d.deafFor, f.Deaf)
	d.brokenFor = max(d.brokenFor, f.Broken)
	if f.Battery != nil {
		d.battery = min(d.battery, max(0, *f.Battery))
	}
	return d
}
