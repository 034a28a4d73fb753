package wal

import "errors"

var (
	// The name of a database has no checksum. One that became another would make all
	// that is in it seem to be gone.
	errForeign    = errors.New("stands in another database, whose name may be damaged; restore the file from a copy or choose another data directory")
	errNoDatabase = errors.New("is damaged: it is marked as a value; restore the file from a copy or choose another data directory")
	errUnsealed   = errors.New("was written by an earlier version, which kept no checksums; choose another data directory")
)
