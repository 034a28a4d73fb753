package policy

import (
	"reflect"
	"testing"
	"time"
)

// Whoever sets one limit gets the contract's values of the others.
func TestLimits_KeepWhatIsSetAndFillTheRest(t *testing.T) {
	want := reflect.ValueOf(DefaultLimits())
	for i := range want.NumField() {
		name := want.Type().Field(i).Name
		if want.Field(i).IsZero() {
			t.Errorf("%s has no default", name)
		}
		var l Limits
		set := reflect.ValueOf(&l).Elem().Field(i)
		if set.Kind() == reflect.Float64 {
			set.SetFloat(1.5)
		} else {
			set.SetInt(int64(time.Millisecond))
		}
		got := reflect.ValueOf(l.WithDefaults())
		for j := range got.NumField() {
			expected := want.Field(j)
			if j == i {
				expected = set
			}
			if !got.Field(j).Equal(expected) {
				t.Errorf("with only %s set: %s is %v, want %v", name, want.Type().Field(j).Name, got.Field(j), expected)
			}
		}
	}
}
