package policy

import (
	"cmp"
	"time"
)

// Limits are the numbers of the contract. Every policy, cycle and snapshot of a fleet must use the
// same ones.
type Limits struct {
	// MaxFuture is how far ahead of the server a report may be measured.
	MaxFuture time.Duration
	// ClockError bounds how far a drone's clock may be off.
	ClockError time.Duration
	// StopRadiusMetres is how near a drone must come to reach a stop.
	StopRadiusMetres float64
	// TopSpeedKmh is the drones' top speed. A claim that needs more than twice this speed is not
	// believed.
	TopSpeedKmh float64
	// EmergencyBattery is the state of charge, in percent, below which a
	// report acts as one of EMERGENCY.
	EmergencyBattery float64
	// MinBattery is the charge, in percent, that a drone must exceed to fly and
	// must land with.
	MinBattery float64
	// MaxSilence is how long a drone that is given a mission may have been silent.
	MaxSilence time.Duration
	// FaultGrace is how long an acked drone may recover from a fault.
	FaultGrace time.Duration
	// LateGrace is how long late reports may still prove the missing stops of a parked drone. It is
	// of the order of a message's lease.
	LateGrace time.Duration
	// GhostGrace is how long a drone that names its failed mission is not believed to be idle.
	GhostGrace time.Duration
	// GhostRevokeEvery is how often a ghost's mission is revoked again.
	GhostRevokeEvery time.Duration
	// IdleSilence is how long an unbound drone may be silent before it is
	// UNKNOWN, and how old a report of IDLE may be to be believed.
	IdleSilence time.Duration
	// BoundSilence is how long a bound drone may be silent before its mission
	// is given up.
	BoundSilence time.Duration
	// CommandLifetime is how long a drone may take to receive a command.
	CommandLifetime time.Duration
	// StallFactor is how many times its estimate a mission may take, but at least BoundSilence.
	// StallFloor is how long a mission without an estimate may take.
	StallFactor float64
	StallFloor  time.Duration
	// QueueLimit is the extra time of a mission whose drone is at its charging stop, where it may
	// wait for a slot.
	QueueLimit time.Duration

	// MaxAge is how old the snapshot behind a decision may be.
	MaxAge time.Duration
	// CommitDelay is how long after its own time a change may become visible. No transaction lasts
	// longer.
	CommitDelay time.Duration
	// TurnTime is how long before its arrival a drone can no longer be turned away from a stop,
	// unless its mission has no orders. An optimizer's must be at least the State Managers'.
	TurnTime time.Duration
	// MaxWait is how far ahead a drone may be told to wait.
	MaxWait time.Duration
	// StopToleranceMetres is how far a stop may be from its order's address, its
	// warehouse, or a depot: a sender may round to four decimals.
	StopToleranceMetres float64
}

// DefaultLimits are the contract's values.
func DefaultLimits() Limits { return Limits{}.WithDefaults() }

// WithDefaults replaces each field that is zero with the contract's value.
func (l Limits) WithDefaults() Limits {
	return Limits{
		MaxFuture: cmp.Or(l.MaxFuture, 5*time.Second), ClockError: cmp.Or(l.ClockError, 5*time.Second),
		StopRadiusMetres: cmp.Or(l.StopRadiusMetres, 75), TopSpeedKmh: cmp.Or(l.TopSpeedKmh, 200),
		EmergencyBattery: cmp.Or(l.EmergencyBattery, 5), MinBattery: cmp.Or(l.MinBattery, 20),
		MaxSilence: cmp.Or(l.MaxSilence, 15*time.Second), IdleSilence: cmp.Or(l.IdleSilence, 15*time.Second), BoundSilence: cmp.Or(l.BoundSilence, 2*time.Minute),
		FaultGrace: cmp.Or(l.FaultGrace, 30*time.Second), LateGrace: cmp.Or(l.LateGrace, 30*time.Second),
		GhostGrace: cmp.Or(l.GhostGrace, 30*time.Second), GhostRevokeEvery: cmp.Or(l.GhostRevokeEvery, 10*time.Second),
		CommandLifetime: cmp.Or(l.CommandLifetime, 20*time.Second),
		StallFactor:     cmp.Or(l.StallFactor, 2), StallFloor: cmp.Or(l.StallFloor, 10*time.Minute), QueueLimit: cmp.Or(l.QueueLimit, 2*time.Hour),
		MaxAge:      cmp.Or(l.MaxAge, 2*time.Minute),
		CommitDelay: cmp.Or(l.CommitDelay, 270*time.Second), // Firestore aborts transactions older than this
		TurnTime:    cmp.Or(l.TurnTime, 30*time.Second), MaxWait: cmp.Or(l.MaxWait, 2*time.Hour),
		StopToleranceMetres: cmp.Or(l.StopToleranceMetres, 10),
	}
}
