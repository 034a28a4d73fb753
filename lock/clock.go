package lock

import "time"

// Clock tells the time and runs functions later. The zero behaviour everywhere
// is SystemClock; tests inject their own.
type Clock interface {
	// Now returns the current time; the system clock's carries a monotonic
	// reading, which deadlines rely on.
	Now() time.Time

	// AfterFunc calls f in a goroutine of its own once d has passed.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending call of Clock.AfterFunc.
type Timer interface {
	// Stop prevents the call; false means it has begun or was stopped before.
	Stop() bool
}

// SystemClock returns the clock of the machine.
func SystemClock() Clock { return systemClock{} }

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
