package lock

import (
	"fmt"
	"log/slog"
	"strconv"
)

// Fence is a fencing token: 15 decimal digits, so that strings sort in the order of issue.
// Compare fences of one key with <, > and ==; a resource accepts a fence that is not lower than
// the highest it has seen.
type Fence string

// Limits of the fence counter.
const (
	FenceMax  int64 = 900_000_000_000_000 // no fence above it is issued
	FenceWarn int64 = 90_000_000_000_000  // above it every acquisition logs a warning

	fenceDigits       = 15
	storedFenceDigits = 19 // what SyncGuard 1.x stored
)

// FormatFence writes a counter value as a fence. Values below 1 or above
// FenceMax are ErrInternal: a counter outside that range cannot be ordered.
func FormatFence(n int64) (Fence, error) {
	if n < 1 || n > FenceMax {
		return "", Internal(fmt.Sprintf("fence %d is outside 1..%d; the counter of this key is damaged or used up", n, FenceMax))
	}
	return Fence(fmt.Sprintf("%0*d", fenceDigits, n)), nil
}

// NextFence is the fence after a counter's value. A counter that is used up is ErrInternal.
func NextFence(counter int64) (Fence, error) {
	if counter >= FenceMax {
		return "", Internal(fmt.Sprintf("fence counter has reached %d; the key is used up", FenceMax))
	}
	return FormatFence(counter + 1)
}

// WarnOfFence logs a warning if the counter of a key is close to its end.
func WarnOfFence(log *slog.Logger, hash Hasher, key string, counter int64) {
	if counter > FenceWarn {
		log.Warn("fence counter is close to its end", slog.String("key_hash", hash(key)), slog.Int64("fence", counter))
	}
}

// HighestFence is the fence of a counter that was read, empty if it is 0: the key was
// never locked. Backends answer FenceReader with it.
func HighestFence(counter int64) (Fence, error) {
	if counter == 0 {
		return "", nil
	}
	return FormatFence(counter)
}

// ParseFence reads a stored counter or fence: 1 to 19 decimal digits. Anything else is
// ErrInternal, never zero, because a counter that started again would break every resource that
// relies on it.
func ParseFence(s string) (int64, error) {
	if len(s) < 1 || len(s) > storedFenceDigits {
		return 0, Internal(fmt.Sprintf("stored fence has %d characters, want 1 to %d digits", len(s), storedFenceDigits))
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, Internal("stored fence is not made of decimal digits")
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, Internal("stored fence exceeds 64 bits")
	}
	return n, nil
}
