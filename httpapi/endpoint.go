package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/identity"
)

// endpoint is one line of the table that the API is made of: routing, the answer to
// a wrong method, the list of paths in a 404, who may call and the checks of the
// request all follow from it. docs/recipes.md says how to add one.
type endpoint struct {
	method     string        // GET answers HEAD too
	path       string        // pattern of http.ServeMux; {id} must be an entity's id
	role       identity.Role // who may call it; "" for everybody
	requesters bool          // requesters may call it too, for their own orders
	summary    string        // what it does, for the OpenAPI document
	parameters []parameter   // what the query may hold
	headers    []parameter   // what the header may hold, for the OpenAPI document; the answer checks them
	answer     answer
}

const (
	get, post    = http.MethodGet, http.MethodPost
	patch        = http.MethodPatch
	viewer, oper = identity.Viewer, identity.Operator
)

const (
	// healthPath is the one path that answers whatever host a request names.
	healthPath = "/healthz"
	streamPath = "/api/v1/stream"
)

// admits reports whether a caller's roles let it call the endpoint.
func (e endpoint) admits(c identity.Caller) bool {
	return c.May(e.role) || e.requesters && c.May(identity.Requester)
}

// answer is what an endpoint does. do returns what to write as JSON with status
// 200, a reply to choose the status, or an http.Handler to write by itself.
type answer struct {
	body  func() body // what the JSON body is decoded into; nil if there is none
	do    func(context.Context, *request) (any, error)
	shape func(*schemas) content // what is written, for the OpenAPI document
	// status is that of a success, for the OpenAPI document; 0 for 200.
	status int
}

// writes is the answer of a function that returns what to write as JSON.
func writes[T any](do func(context.Context, *request) (T, error)) answer {
	return answer{do: func(ctx context.Context, r *request) (any, error) { return do(ctx, r) }, shape: jsonOf[T]}
}

// jsonOf is the shape of a type's JSON form.
func jsonOf[T any](s *schemas) content { return content{"application/json", s.of(typeOf[T]())} }

// writesA is the answer of a function that writes another media type, or chooses its
// status.
func writesA(mediaType string, s schema, do func(context.Context, *request) (any, error)) answer {
	return answer{do: do, shape: func(*schemas) content { return content{mediaType, s} }}
}

// reply is an answer with a status of its own, and perhaps with headers.
type reply struct {
	status  int
	body    any
	headers map[string]string
}

// request is a request that its endpoint's checks have accepted.
type request struct {
	*http.Request
	path   string // of the endpoint
	values url.Values
	body   body
	now    func() time.Time // the fleet's clock
}

// serverTime is part of every answer that a page shows with times, so that the page needs no clock
// of its own.
type serverTime struct {
	ServerTime time.Time `json:"serverTime" doc:"The fleet's time when it was answered."`
}

func (r *request) serverTime() serverTime {
	return serverTime{r.now().UTC().Truncate(time.Millisecond)}
}

// id is the entity that the path names.
func (r *request) id() string { return r.PathValue("id") }

// value is a parameter's text, empty if it is absent.
func (r *request) value(name string) string { return r.values.Get(name) }

// has reports whether a parameter is present.
func (r *request) has(name string) bool { return r.values.Has(name) }

// read checks a request against its endpoint and decodes its body. The error names
// everything that is wrong with the parameters, the id and the body's fields.
func (e endpoint) read(r *http.Request) (*request, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problem(http.StatusBadRequest, "the query cannot be parsed: %s; percent-encode it", err)
	}
	req := &request{Request: r, path: e.path, values: values}
	bad := e.check(req)
	if e.answer.body != nil {
		req.body = e.answer.body()
		if err := readBody(r, req.body, &bad); err != nil && bad == nil {
			return nil, err
		}
	}
	if bad != nil {
		return nil, badParameters(bad)
	}
	return req, nil
}

// maxUnknown is how many unknown parameters an answer names.
const maxUnknown = 10

// check says what is wrong with a request's parameters and id.
func (e endpoint) check(r *request) (bad problems) {
	var unknown problems
	for name := range r.values {
		if !e.takes(name) {
			unknown.add(fmt.Sprintf("%.64q", name), "is not a parameter; %s", e.validParameters())
		}
	}
	slices.SortFunc(unknown, func(a, b ParameterProblem) int { return strings.Compare(a.Name, b.Name) })
	unknown = unknown[:min(len(unknown), maxUnknown)] // the answer must not be far longer than the request
	if strings.Contains(e.path, "{id}") {
		bad.addError("id", domain.CheckID(r.id()))
	}
	for _, p := range e.parameters {
		if !r.has(p.name) {
			if p.required {
				bad.add(p.name, "is missing; give one such as %v", p.example)
			}
			continue
		}
		if n := len(r.values[p.name]); n > 1 {
			bad.add(p.name, "is given %d times; give it once", n)
		} else if detail := p.wrong(r.value(p.name)); detail != "" {
			bad.add(p.name, "%s", detail)
		}
	}
	return append(unknown, bad...)
}

func (e endpoint) takes(name string) bool {
	return slices.ContainsFunc(e.parameters, func(p parameter) bool { return p.name == name || p.name == anyParameter.name })
}

func (e endpoint) validParameters() string {
	if len(e.parameters) == 0 {
		return "this path takes none"
	}
	names := make([]string, len(e.parameters))
	for i, p := range e.parameters {
		names[i] = p.name
	}
	return "valid parameters: " + strings.Join(names, ", ")
}

// parameter is something that a query may hold.
type parameter struct {
	name string
	// says what the parameter does, schema its values and example one of them, for the
	// OpenAPI document.
	says    string
	schema  schema
	example any
	// wrong says what is wrong with a value and how to fix it, as in "is 0; give 1 to
	// 1000"; "" if nothing is.
	wrong func(value string) string
	// required refuses a request without the parameter.
	required bool
}

// anyParameter lets a query hold anything: a scraper may add what it likes.
var anyParameter = parameter{name: "*"}

// onlyTrue is a parameter that is true or absent.
func onlyTrue(name, says, fix string) parameter {
	return parameter{
		name: name, says: says, example: "true", schema: schema{"type": "string", "enum": []string{"true"}},
		wrong: func(value string) string {
			if value != "true" {
				return fmt.Sprintf("is %.64q; give %s", value, fix)
			}
			return ""
		},
	}
}

// checked turns a check that returns an error into one that returns text.
func checked(check func(string) error) func(string) string {
	return func(value string) string {
		if err := check(value); err != nil {
			return err.Error()
		}
		return ""
	}
}

// oneOf lists choices for people.
func oneOf[T ~string](choices []T) string {
	var b strings.Builder
	for i, c := range choices {
		switch {
		case i > 0 && i == len(choices)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(c))
	}
	return b.String()
}

// textOf is a text, empty if it is absent.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
