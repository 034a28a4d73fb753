package firestoretx

import (
	"context"
	"errors"
)

// Sweep sweeps what is due and then everything, as a new sweeper does.
func (s *Store) Sweep(ctx context.Context, holds func() bool) (SweepResult, error) {
	w := s.NewSweeper()
	due, err := w.Due(ctx, holds, nil)
	all, _, failed := w.All(ctx, holds)
	due.add(all)
	return due, errors.Join(err, failed)
}
