package postgreslock

import (
	"context"

	"github.com/dronefleet/dronefleet/lock"
)

var _ lock.FenceReader = (*Backend)(nil)

const errStandby lock.SafeError = "the server is a replica: use the primary's address"

// HighestFence implements lock.FenceReader.
func (b *Backend) HighestFence(ctx context.Context, key string) (lock.Fence, error) {
	fail := func(err error) (lock.Fence, error) { return "", lock.Located(err, "highestFence", key, "") }
	normal, err := lock.NormalizeKey(key)
	if err == nil {
		err = storable(normal)
	}
	if err == nil && ctx.Err() != nil {
		err = lock.AbortedBy(ctx)
	}
	if err != nil {
		return fail(err)
	}
	bounded, cancel := context.WithTimeout(ctx, b.tasks.Patience)
	defer cancel()
	var counter int64
	var standby bool
	for try := 1; ; try++ {
		err = b.pool.QueryRow(bounded, b.sql.counter, normal).Scan(&counter, &standby)
		if err == nil {
			break
		}
		if e := classify(ctx, err); try > 1 || e.Code != lock.CodeServiceUnavailable {
			return fail(e)
		}
	}
	if standby {
		return fail(&lock.Error{Code: lock.CodeServiceUnavailable, Err: errStandby})
	}
	fence, err := lock.HighestFence(counter)
	if err != nil {
		return fail(err)
	}
	return fence, nil
}
