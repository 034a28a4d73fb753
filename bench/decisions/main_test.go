package main

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A State Manager that fails ends the measurement, with its error, at once:
// nobody would judge the rest.
func TestWorkOff_EndsWithTheWorkersError(t *testing.T) {
	broken := errors.New("broken")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fail := func(context.Context) error { return broken }
	if err := workOff(ctx, fail, func() bool { return false }); !errors.Is(err, broken) || ctx.Err() != nil {
		t.Errorf("ended with %v", err)
	}
}
