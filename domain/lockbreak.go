package domain

import "time"

// LockBreak records that an operator broke a lock: which one and why.
type LockBreak struct {
	Key       string
	Fence     string    // of the lease that is broken
	ExpiresAt time.Time // of that lease, by its holder's clock
	BrokenAt  time.Time
	BrokenBy  string
	Why       string
}
