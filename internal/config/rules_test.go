package config

import (
	"math"
	"reflect"
	"testing"
	"time"
)

// Bounds are inclusive or exclusive as the rule says, and NaN is in no range.
func TestRule_ChecksItsBounds(t *testing.T) {
	for _, row := range []struct {
		check string
		value any
		ok    bool
	}{
		{"min 1", 1, true}, {"min 1", 0, false}, {"min 1", 2, true},
		{"over 0", 0.0, false}, {"over 0", math.SmallestNonzeroFloat64, true}, {"over 0", -1.0, false},
		{"max 100", uint(100), true}, {"max 100", uint(101), false}, {"max 100", uint(99), true},
		{"over 0 max 1", math.NaN(), false}, {"min 0", math.Inf(1), true},
		{"min 1s max 1m", time.Second, true}, {"min 1s max 1m", time.Second - 1, false},
		{"min 1s max 1m", time.Minute, true}, {"min 1s max 1m", time.Minute + 1, false},
		{"address", ":1", true}, {"address", ":0", false}, {"address", ":65535", true}, {"address", ":65536", false},
		{"listen", ":0", true}, {"listen", ":-1", false}, {"listen", "host", false}, {"listen", ":http", false},
		{"listen or off", "off", true}, {"listen or off", ":0", true}, {"listen", "off", false},
		{"listen on loopback", "127.0.0.1:0", true}, {"listen on loopback", "localhost:0", true}, {"listen on loopback", "[::1]:0", true},
		{"listen on loopback", ":0", false}, {"listen on loopback", "0.0.0.0:0", false}, {"listen on loopback", "127.0.0.1", false},
	} {
		r, err := parseRule(row.check)
		if err != nil {
			t.Fatal(err)
		}
		if complaint := r.violated(reflect.ValueOf(row.value)); (complaint == "") != row.ok {
			t.Errorf("%q of %v: %q, want accepted %t", row.check, row.value, complaint, row.ok)
		}
	}
}

func TestOneOf_ListsTheChoices(t *testing.T) {
	for want, values := range map[string][]string{
		"A, B or C": {"A", "B", "C"},
		"A or B":    {"", "A", "B"},
		"A":         {"A"},
	} {
		if got := OneOf(values); got != want {
			t.Errorf("%q: %q, want %q", values, got, want)
		}
	}
}
