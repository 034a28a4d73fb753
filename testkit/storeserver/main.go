package storeserver

import (
	"fmt"
	"os"
)

// TB is what a server needs of the test that it runs for: a testing.TB, or a Main for all
// tests of a package.
type TB interface {
	Helper()
	TempDir() string
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
	Error(args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Main stands for all tests of a package: TestMain starts a server with it before the
// tests, and calls End after them. What fails panics.
type Main struct{ cleanups []func() }

// End does what Cleanup was given, the last first.
func (m *Main) End() {
	for i := len(m.cleanups) - 1; i >= 0; i-- {
		m.cleanups[i]()
	}
	m.cleanups = nil
}

// TempDir is a folder that End removes.
func (m *Main) TempDir() string {
	dir, err := os.MkdirTemp("", "storeserver")
	if err != nil {
		panic(err)
	}
	m.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Cleanup is for End.
func (m *Main) Cleanup(f func()) { m.cleanups = append(m.cleanups, f) }

// Helper does nothing.
func (m *Main) Helper() {}

// Failed is false: failures panic.
func (m *Main) Failed() bool { return false }

// Logf prints nothing: a server's log is printed after a failure.
func (m *Main) Logf(string, ...any) {}

// Error panics.
func (m *Main) Error(args ...any) { panic(fmt.Sprint(args...)) }

// Fatal panics.
func (m *Main) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Fatalf panics.
func (m *Main) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Skipf panics: see HasPostgres before a server is started for all tests.
func (m *Main) Skipf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
