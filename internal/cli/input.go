package cli

import (
	"context"
	"os"

	"github.com/dronefleet/dronefleet/internal/input"
)

// Input runs read, which may block on a terminal or a pipe and takes no context, and
// returns early when ctx ends. The abandoned read then ends with the process.
func Input(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := read()
		done <- result{data, err}
	}()
	select {
	case in := <-done:
		return in.data, in.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ReadFile reads a file of at most most bytes; its name - is standard input.
func ReadFile(ctx context.Context, name string, most int) ([]byte, error) {
	return Input(ctx, func() ([]byte, error) {
		if name == "-" {
			return input.Read(os.Stdin, most)
		}
		return input.File(name, most)
	})
}
