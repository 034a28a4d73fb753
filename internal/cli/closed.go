package cli

import (
	"errors"
	"io"
	"os"
)

// Closed reports whether a standard stream, such as os.Stdout, was closed when the
// process started. Go's runtime opens os.DevNull in its place, for reading and
// writing, so that writes succeed and are lost; a redirection to os.DevNull allows
// writing only. Some programs open it both ways for their children, which cannot be
// told apart.
func Closed(stream *os.File) bool {
	is, err := stream.Stat()
	if err != nil {
		return true
	}
	null, err := os.Stat(os.DevNull)
	if err != nil || !os.SameFile(is, null) {
		return false
	}
	_, err = stream.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}
