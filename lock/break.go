package lock

import "context"

// errChangingHands says that a lock got a new holder each time it was broken.
var errChangingHands = SafeError("the lock changes hands faster than it can be broken; try again")

// breakTries bounds how often Break starts over because the lock changed hands.
const breakTries = 5

// Break ends the lock of a key, whoever holds it, and describes it; nil, nil if nobody does. It
// is for operators, when a holder neither works nor lets its lock expire.
//
// The fence counter stays, so whatever checks fences refuses the former holder's writes; its
// next extension fails and ends its Handle's context. before, if not nil, is called before the
// release, for example to write an audit record; its error ends Break. A backend without raw
// lookup is ErrInvalidArgument.
func Break(ctx context.Context, b Backend, key string, before func(Info) error) (*Info, error) {
	for range breakTries {
		held, err := GetByKeyRaw(ctx, b, key)
		if held == nil || err != nil {
			return nil, err
		}
		if before != nil {
			if err := before(held.Info); err != nil {
				return nil, err
			}
		}
		released, err := b.Release(ctx, Ref{Key: key, LockID: held.LockID})
		if err != nil {
			return nil, err
		}
		if released.OK {
			return &held.Info, nil
		}
	}
	return nil, (&Error{Code: CodeServiceUnavailable, Err: errChangingHands}).At("break", key, "")
}
