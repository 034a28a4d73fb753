package domain

import "time"

// LockBreak records that an operator breaks a lock, which it was, and why.
type LockBreak struct {
	Key       string
	Fence     string    // of the lease that is broken
	ExpiresAt time.Time // of that lease, by its holder's clock
	BrokenAt  time.Time
	BrokenBy  string
	Why       string
}
