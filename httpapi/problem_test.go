package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/dronefleet/dronefleet/app/operator"
)

// F-API-01: a problem names the field of a command as the body has it, not as a flag of the
// command line. A caller whose name cannot be recorded is refused, not told of a field.
func TestProblem_NamesTheFieldOfACommand(t *testing.T) {
	p := asProblem(fmt.Errorf("order O1: %w", &operator.FieldError{Field: "droneId", Err: errors.New("is empty")}))
	if p.Status != http.StatusBadRequest || p.Detail != "droneId is empty" || len(p.Parameters) != 1 || p.Parameters[0] != (ParameterProblem{Name: "droneId", Detail: "is empty"}) {
		t.Errorf("%+v", p)
	}
	if p := asProblem(&operator.FieldError{Field: "by", Err: errors.New("is blank")}); p.Status != http.StatusForbidden || p.Detail != "the caller's name cannot be recorded: it is blank" {
		t.Errorf("%+v", p)
	}
}
