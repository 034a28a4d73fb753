package cli

import (
	"io"
	"os"
)

// Stdout is where commands print. What a command prints comes from many places;
// here the first failure to write is kept, so that Main can say that the command
// failed, whoever overlooked it.
var Stdout io.Writer = &stdout

var stdout output

type output struct{ err error }

// Write implements io.Writer.
func (o *output) Write(text []byte) (int, error) {
	n, err := os.Stdout.Write(text)
	if o.err == nil {
		o.err = err
	}
	return n, err
}
