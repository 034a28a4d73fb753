package fleetsim

import "time"

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
