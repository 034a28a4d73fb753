package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
)

// Entries on a page.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// request is a request that its endpoint's checks have accepted.
type request struct {
	*http.Request
	values url.Values
	body   body
}

// id is the entity that the path names.
func (r *request) id() string { return r.PathValue("id") }

// value is a parameter's text, empty if it is absent.
func (r *request) value(name string) string { return r.values.Get(name) }

// has reports whether a parameter is present.
func (r *request) has(name string) bool { return r.values.Has(name) }

// page is the page that limit and cursor ask for.
func (r *request) page() firestoretx.Page {
	_, after := entity.ReadCursor(r.value("cursor")) // checked
	page := firestoretx.Page{Limit: DefaultLimit, After: after}
	if n, err := strconv.Atoi(r.value("limit")); err == nil { // checked; absent otherwise
		page.Limit = n
	}
	return page
}

// read checks a request against its endpoint and decodes its body. The error names
// everything that is wrong with the parameters, the id and the body's fields.
func (e endpoint) read(r *http.Request) (*request, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problem(http.StatusBadRequest, "the query cannot be parsed: %s; percent-encode it", err)
	}
	req := &request{Request: r, values: values}
	bad := e.check(req)
	if e.body != nil {
		req.body = e.body()
		switch err := readJSON(r, req.body); {
		case err == nil:
			bad = append(bad, req.body.check()...)
		case bad == nil:
			return nil, err
		}
	}
	if bad != nil {
		return nil, badParameters(bad)
	}
	return req, nil
}

// check says what is wrong with a request's parameters and id.
func (e endpoint) check(r *request) (bad []ParameterProblem) {
	var unknown []ParameterProblem
	for name := range r.values {
		if !e.takes(name) {
			unknown = append(unknown, ParameterProblem{fmt.Sprintf("%.64q", name), "is not a parameter; " + e.validParameters()})
		}
	}
	slices.SortFunc(unknown, func(a, b ParameterProblem) int { return strings.Compare(a.Name, b.Name) })
	if strings.Contains(e.path, "{id}") {
		if err := domain.CheckID(r.id()); err != nil {
			bad = append(bad, ParameterProblem{"id", err.Error()})
		}
	}
	for _, p := range e.parameters {
		if !r.has(p.name) {
			if p.required {
				bad = append(bad, ParameterProblem{p.name, fmt.Sprintf("is missing; give one such as %v", p.example)})
			}
			continue
		}
		if n := len(r.values[p.name]); n > 1 {
			bad = append(bad, ParameterProblem{p.name, fmt.Sprintf("is given %d times; give it once", n)})
		} else if detail := p.wrong(r.value(p.name)); detail != "" {
			bad = append(bad, ParameterProblem{p.name, detail})
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

// choice is a parameter with a list of legal values.
func choice[T ~string](name string, legal []T) parameter {
	return parameter{name, "Only those with this " + name + ".", schema{"type": "string", "enum": legal}, string(legal[0]), func(value string) string {
		if slices.Contains(legal, T(value)) {
			return ""
		}
		return fmt.Sprintf("is %.64q; give %s", value, oneOf(legal))
	}, false}
}

// listed are the parameters of a collection's list: its filters, and those of its pages.
func listed(collection string, filters ...parameter) []parameter {
	return append(filters, limit, ofDocuments(collection))
}

var (
	limit = parameter{"limit", "How many entries to list at most.", schema{"type": "integer", "minimum": 1, "maximum": MaxLimit, "default": DefaultLimit}, 50, func(value string) string {
		if n, err := strconv.Atoi(value); err != nil || n < 1 || n > MaxLimit {
			return fmt.Sprintf("is %.64q; give 1 to %d", value, MaxLimit)
		}
		return ""
	}, false}
	depot = parameter{"depot", "Which depot; required if there are several.", schema{"type": "string"}, "DEPOT-1", checked(domain.CheckID), false}
	// onlyHeld narrows a list. There is no list of orders that are not held: false would
	// look like one and show all.
	onlyHeld = parameter{"held", "Only orders that wait for an operator.", schema{"type": "string", "enum": []string{"true"}}, "true", func(value string) string {
		if value != "true" {
			return fmt.Sprintf("is %.64q; give true, or leave it out for all", value)
		}
		return ""
	}, false}

	addDrones   = added("addDrones", "What if this many more drones waited at the depot.")
	addSlots    = added("addSlots", "What if each depot with limited charging slots had this many more, since the drones that wait for one landed.")
	dropReserve = parameter{"dropReserve", "What if no drone were kept for CRITICAL orders to come.", schema{"type": "string", "enum": []string{"true"}}, "true", func(value string) string {
		if value != "true" {
			return fmt.Sprintf("is %.64q; give true, or leave it out", value)
		}
		return ""
	}, false}
)

// added is a parameter that adds some number to a moment.
func added(name, doc string) parameter {
	return parameter{name, doc, schema{"type": "integer", "minimum": 0, "maximum": planner.MaxAdded}, 2, func(value string) string {
		if n, err := strconv.Atoi(value); err != nil || n < 0 || n > planner.MaxAdded {
			return fmt.Sprintf("is %.64q; give 0 to %d", value, planner.MaxAdded)
		}
		return ""
	}, false}
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
