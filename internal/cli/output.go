package cli

import (
	"io"
	"os"
)

// Stdout is where commands print. It keeps the first write error, so that Main fails
// the command even if the code that printed ignored the error.
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
