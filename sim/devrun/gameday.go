package devrun

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/simclock"
)

// GameDay makes a run fail on purpose, so that people can practise on it. The zero
// value changes nothing.
type GameDay struct {
	// WithoutOptimizer leaves planning to optimizers that join from other
	// processes, where they can be killed.
	WithoutOptimizer bool
	Incidents        []Incident
	// ClockSkew is how far the clock of the State Manager and the optimizer in
	// this process is ahead of all others, in simulated time; negative is behind.
	ClockSkew time.Duration
}

// Incident says which incident begins, and when: in simulated time after the start.
type Incident struct {
	Name string
	At   time.Duration
}

// UnmarshalText reads NAME or NAME@TIME. Without a time, drones have a minute to begin their flights.
func (i *Incident) UnmarshalText(text []byte) error {
	name, at, timed := strings.Cut(string(text), "@")
	if !slices.ContainsFunc(incidents, func(known incident) bool { return known.name == name }) {
		return fmt.Errorf("no incident has this name; give one of %s", strings.Join(incidentNames(), ", "))
	}
	i.Name, i.At = name, time.Minute
	if timed {
		var err error
		if i.At, err = time.ParseDuration(at); err != nil || i.At < 0 {
			return errors.New("the time after @ cannot be read; give a duration of simulated time after the start, such as 90s or 5m")
		}
	}
	return nil
}

// CheckOperator says why nobody can be signed in as operator without credentials: others than this
// machine's user could reach an API at the address or by the host names.
func CheckOperator(addr string, hosts []httpapi.Host) error {
	switch {
	case addr == "":
		return errors.New("needs the HTTP API; give --http-addr a loopback address such as 127.0.0.1:8080")
	case httpapi.CheckOpenAddress(addr) != nil:
		return fmt.Errorf("makes everybody who reaches %s an operator; give --http-addr a loopback address such as 127.0.0.1:8080", addr)
	case len(hosts) > 0:
		return errors.New("cannot be used with --http-hosts, by which other people reach the console; leave one of them out")
	}
	return nil
}

// maxClockSkew is more than the error of any machine that synchronises its clock.
const maxClockSkew = time.Hour

// Check calls refuse for every setting of dev that does not fit a run of that simulated duration,
// 0 for one without an end, with its name and what is wrong with it.
func (g GameDay) Check(duration time.Duration, refuse func(setting, format string, args ...any)) {
	for _, i := range g.Incidents {
		if duration > 0 && i.At >= duration {
			refuse("incident", "has %s after %s, but the run ends after %s of simulated time; give less, or a longer --duration", i.Name, i.At, duration)
		}
		if i.Name == optimizerDead && g.WithoutOptimizer {
			refuse("incident", "has %s, but --no-optimizer runs no optimizer; leave one of them out", i.Name)
		}
	}
	if g.ClockSkew.Abs() > maxClockSkew {
		refuse("clock-skew", "is %s; give at most %s either way", g.ClockSkew, maxClockSkew)
	}
}

// productClock is the clock of the State Manager and the optimizer.
func (run *devRun) productClock() (*simclock.Clock, error) {
	if run.cfg.GameDay.ClockSkew == 0 {
		return run.clock, nil
	}
	rate := run.clock.Shared()
	rate.Ahead += run.cfg.GameDay.ClockSkew
	return simclock.New(rate)
}
