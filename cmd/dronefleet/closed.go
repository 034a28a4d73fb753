package main

import (
	"errors"
	"io"
	"os"
)

// closed reports whether a standard stream, such as os.Stdout, was closed when the
// process started. Go's runtime then opens os.DevNull in its place for reading and
// writing, whereas a shell's redirection to os.DevNull allows only writing. A parent
// that opens os.DevNull both ways for its child looks the same as a closed stream.
func closed(stream *os.File) bool {
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
