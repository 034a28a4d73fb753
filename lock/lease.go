package lock

import "time"

// Tolerance is how long after its end a lease counts as live for everybody but its holder. It
// absorbs clock differences, and is not an option because all processes must use the same.
const Tolerance = time.Second

// IsLive reports whether a lease that ends at expiresAtMs is live at nowMs, both
// in Unix milliseconds: live while expiresAtMs > nowMs - 1000.
func IsLive(expiresAtMs, nowMs int64) bool {
	return expiresAtMs > nowMs-Tolerance.Milliseconds()
}

// ValidateTTL refuses a TTL that is not a positive whole number of
// milliseconds with ErrInvalidArgument.
func ValidateTTL(ttl time.Duration) error {
	if ttl <= 0 {
		return Invalid("ttl must be positive; set at least 1ms")
	}
	if ttl%time.Millisecond != 0 {
		return Invalid("ttl must be a whole number of milliseconds; use ttl.Truncate(time.Millisecond)")
	}
	return nil
}

// ValidateAcquire refuses an acquisition with an invalid key, TTL or lock id. It returns it
// with the key in NFC and with an id: a new one if it had none.
func ValidateAcquire(req AcquireRequest) (AcquireRequest, error) {
	key, err := NormalizeKey(req.Key)
	if err != nil {
		return req, err
	}
	if err := ValidateTTL(req.TTL); err != nil {
		return req, err
	}
	if req.LockID == "" {
		req.LockID = NewLockID()
	} else if err := ValidateLockID(req.LockID); err != nil {
		return req, err
	}
	req.Key = key
	return req, nil
}
