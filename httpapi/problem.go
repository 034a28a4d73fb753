package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/internal/identity"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
)

// Problem is a problem document of RFC 9457, the body of every answer that is not
// a success. Its type is absent, which means "about:blank": the status alone says
// what kind of problem it is.
type Problem struct {
	Title      string                 `json:"title"`
	Status     int                    `json:"status"`
	Detail     string                 `json:"detail"`
	Instance   string                 `json:"instance,omitempty" doc:"The request's path."`
	Parameters []ParameterProblem     `json:"parameters,omitempty"`
	SignIn     string                 `json:"signIn,omitempty" doc:"Where a browser without a session can sign in."`
	Apply      *operator.PlaceChanges `json:"apply,omitempty" doc:"What was applied, what was refused, where the command stopped, and what was not tried."`
	Replay     *operator.LetterList   `json:"replay,omitempty" doc:"What was replayed before the failure."`
	Discard    *operator.LetterList   `json:"discard,omitempty" doc:"What was discarded before the failure."`

	headers map[string]string // of the response, beside its body
}

// ParameterProblem says what is wrong with one parameter and how to fix it.
type ParameterProblem struct {
	Name   string `json:"name"`
	Detail string `json:"detail" doc:"What is wrong and how to fix it, such as: is 0; give 1 to 1000."`
	// Pointer is that of a field of the body, RFC 6901.
	Pointer string `json:"pointer,omitempty" doc:"Of a field of the body: the JSON pointer to it (RFC 6901)."`
	Reason  string `json:"reason,omitempty" doc:"Why no drone can deliver an order as things stand, such as out_of_range."`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

const problemType = "application/problem+json"

func problem(status int, format string, args ...any) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// problems gathers what is wrong with a request.
type problems []ParameterProblem

func (p *problems) add(name, format string, args ...any) {
	*p = append(*p, ParameterProblem{Name: name, Detail: fmt.Sprintf(format, args...)})
}

// addError adds an error about a parameter, if there is one.
func (p *problems) addError(name string, err error) {
	if err != nil {
		p.add(name, "%s", err)
	}
}

// badParameter is the problem of a request with one parameter that cannot be right.
func badParameter(name, format string, args ...any) *Problem {
	return badParameters(problems{{Name: name, Detail: fmt.Sprintf(format, args...)}})
}

// badParameters is the problem of a request with parameters that cannot be right.
func badParameters(bad problems) *Problem {
	lines := make([]string, len(bad))
	for i, p := range bad {
		lines[i] = p.Name + " " + p.Detail
	}
	p := problem(http.StatusBadRequest, "%s", strings.Join(lines, " | "))
	p.Parameters = bad
	return p
}

// asProblem chooses the status for an error.
func asProblem(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	_, malformed := errors.AsType[*firestoretx.MalformedError](err)
	_, incomplete := errors.AsType[*pubsubio.IncompleteError](err)
	_, unverified := errors.AsType[*identity.UnavailableError](err)
	refused, rejected := policy.ReasonOf(err)
	field, unfit := errors.AsType[*operator.FieldError](err)
	switch {
	case unfit && field.Field == "by":
		return problem(http.StatusForbidden, "the caller's name cannot be recorded: it %s", field.Err)
	case unfit:
		return badParameter(field.Field, "%s", field.Err)
	case rejected && refused != policy.ReasonNotFound:
		return problem(http.StatusConflict, "%s", err)
	case unverified:
		return problem(http.StatusServiceUnavailable, "%s", err)
	case rejected, errors.Is(err, firestoretx.ErrNotFound):
		return problem(http.StatusNotFound, "%s", err)
	case incomplete:
		return problem(http.StatusConflict, "%s", err)
	case malformed:
		return problem(http.StatusInternalServerError, "%s", err)
	case errors.Is(err, lock.ErrServiceUnavailable), errors.Is(err, lock.ErrNetworkTimeout):
		return problem(http.StatusServiceUnavailable, "%s; try again", err)
	case firestoretx.Retryable(err), errors.Is(err, context.Canceled):
		return problem(http.StatusServiceUnavailable, "the store does not answer: %s; try again", err)
	}
	return problem(http.StatusInternalServerError, "%s", err)
}
