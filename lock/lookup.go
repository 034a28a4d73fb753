package lock

import (
	"context"
	"errors"
)

// GetByKey describes the live lock of a key, or returns nil, nil.
func GetByKey(ctx context.Context, b Backend, key string) (*Info, error) {
	return b.Lookup(ctx, Query{Key: key})
}

// GetByID describes the live lock with an id, or returns nil, nil. If several live
// locks have the id, the error is ErrInternal, here and in GetByIDRaw and Owns.
func GetByID(ctx context.Context, b Backend, lockID string) (*Info, error) {
	return b.Lookup(ctx, Query{LockID: lockID})
}

// GetByKeyRaw is GetByKey with the raw key and lock id. A backend without raw
// lookup is ErrInvalidArgument.
func GetByKeyRaw(ctx context.Context, b Backend, key string) (*RawInfo, error) {
	return lookupRaw(ctx, b, Query{Key: key})
}

// GetByIDRaw is GetByID with the raw key and lock id. A backend without raw
// lookup is ErrInvalidArgument.
func GetByIDRaw(ctx context.Context, b Backend, lockID string) (*RawInfo, error) {
	return lookupRaw(ctx, b, Query{LockID: lockID})
}

// Owns reports whether the lock with this id is live. It is a diagnostic: the
// lease may end before the answer is used, so it guards no mutation; fences do.
func Owns(ctx context.Context, b Backend, lockID string) (bool, error) {
	info, err := GetByID(ctx, b, lockID)
	return info != nil && err == nil, err
}

func lookupRaw(ctx context.Context, b Backend, q Query) (*RawInfo, error) {
	raw, ok := b.(RawLookuper)
	if !ok {
		return nil, Invalid("backend offers no raw lookup; use Lookup").At("lookup", q.Key, q.LockID)
	}
	return raw.LookupRaw(ctx, q)
}

// WithoutRaw is the answer of a Lookup from that of a LookupRaw.
func WithoutRaw(raw *RawInfo, err error) (*Info, error) {
	if raw == nil || err != nil {
		return nil, err
	}
	return &raw.Info, nil
}

// ValidateQuery refuses a query with both or neither field set, or with an
// invalid one, and returns it with the key in NFC.
func ValidateQuery(q Query) (Query, error) {
	switch {
	case q.Key == "" && q.LockID == "":
		return q, Invalid("query is empty; set Key or LockID")
	case q.Key != "" && q.LockID != "":
		return q, Invalid("query has both Key and LockID; set one")
	case q.LockID != "":
		return q, ValidateLockID(q.LockID)
	}
	key, err := NormalizeKey(q.Key)
	return Query{Key: key}, err
}

// ValidateRef refuses a reference without a valid lock id, or with an invalid
// key, and returns it with the key in NFC.
func ValidateRef(r Ref) (Ref, error) {
	if err := ValidateLockID(r.LockID); err != nil {
		return r, err
	}
	if r.Key == "" {
		return r, nil
	}
	key, err := NormalizeKey(r.Key)
	r.Key = key
	return r, err
}

// isBudget reports whether the helper's budget ended a try.
func isBudget(err error) bool { return errors.Is(err, errBudget) }
