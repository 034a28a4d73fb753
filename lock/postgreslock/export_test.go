package postgreslock

import "testing"

// NewDatabase makes an empty database on the shared server and returns how to connect to
// it.
func NewDatabase(tb testing.TB) string {
	tb.Helper()
	return database(tb)
}
