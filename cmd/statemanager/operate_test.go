package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/dronefleet/dronefleet/app/operator"
)

// F-API-04: the command line names what is wrong as the flag or argument that it comes from.
func TestOperate_NamesFieldsAsFlags(t *testing.T) {
	for field, want := range map[string]string{
		"by": "--by is blank", "reason": "--reason is blank", "ids": "--id is blank", "droneId": "--drone is blank", "key": "lock key is blank", "id": "id is blank",
	} {
		err := inFlags(fmt.Errorf("hold: %w", &operator.FieldError{Field: field, Err: errors.New("is blank")}))
		if err.Error() != want {
			t.Errorf("%s: %q, want %q", field, err, want)
		}
	}
	if other := errors.New("order O1: NOT_FOUND"); inFlags(other) != other || inFlags(nil) != nil {
		t.Error("other errors must stay as they are")
	}
}
