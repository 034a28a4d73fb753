// Package longtest shortens tests. "go test ./..." must end in minutes, so it leaves the
// exhaustive, statistical and slow parts of tests to the gate, which sets LONG_TESTS=1. Each
// shortened test says so in its log: the gate runs exactly those again in full, and fails
// when one is shortened even then. docs/testing.md has the rules.
//
// It is for tests and must not import any other package of this project.
package longtest
