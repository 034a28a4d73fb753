package cli

import "context"

// Input runs read, which may block on a terminal or a pipe and takes no context, and
// returns early when ctx ends. The abandoned read then ends with the process.
func Input(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type input struct {
		data []byte
		err  error
	}
	done := make(chan input, 1)
	go func() {
		data, err := read()
		done <- input{data, err}
	}()
	select {
	case in := <-done:
		return in.data, in.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
