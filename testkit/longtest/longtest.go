package longtest

import (
	"fmt"
	"os"
	"testing"
)

// Variable is the environment variable that, when it is not empty, runs tests in full.
const Variable = "LONG_TESTS"

// Marker begins what a shortened test logs. The gate looks for it.
const Marker = "left to the gate: "

// Full reports whether the test runs in full. If not, it logs what is left to the gate.
func Full(t testing.TB, left string) bool {
	t.Helper()
	if os.Getenv(Variable) != "" {
		return true
	}
	t.Log(Marker + left + "; set " + Variable + "=1 to run it")
	return false
}

// Only skips the test unless tests run in full; why says what is slow about it.
func Only(t testing.TB, why string) {
	t.Helper()
	if !Full(t, why) {
		t.SkipNow()
	}
}

// Size is full when tests run in full, otherwise short. What is counted, in the plural,
// names the difference in the log.
func Size[N any](t testing.TB, counted string, short, full N) N {
	t.Helper()
	if Full(t, fmt.Sprintf("%v %s instead of %v", full, counted, short)) {
		return full
	}
	return short
}
