package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

// Sizes of a page.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// query reads the parameters of a request and collects what is wrong with them.
type query struct {
	values url.Values
	bad    []ParameterProblem
}

// parameters refuses parameters that are repeated or not among names.
func parameters(r *http.Request, names ...string) (*query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problem(http.StatusBadRequest, "the query cannot be read: %s; escape it as a URL's", err)
	}
	q := &query{values: values}
	for name := range values {
		switch {
		case !slices.Contains(names, name):
			fix := "is no parameter here; there are none"
			if len(names) > 0 {
				fix = "is no parameter here; there are " + oneOf(names)
			}
			q.add(fmt.Sprintf("%.64q", name), "%s", fix)
		case len(values[name]) > 1:
			q.add(name, "is given %d times; give it once", len(values[name]))
		}
	}
	slices.SortFunc(q.bad, func(a, b ParameterProblem) int { return strings.Compare(a.Name, b.Name) })
	return q, q.err()
}

func (q *query) add(name, format string, args ...any) {
	q.bad = append(q.bad, ParameterProblem{name, fmt.Sprintf(format, args...)})
}

func (q *query) err() error {
	if len(q.bad) == 0 {
		return nil
	}
	return badParameters(q.bad)
}

// choice is one of the legal values, or empty when the parameter is absent.
func choice[T ~string](q *query, name string, legal []T) T {
	v := T(q.values.Get(name))
	if q.values.Has(name) && !slices.Contains(legal, v) {
		q.add(name, "is %.64q; give %s", string(v), oneOf(legal))
		return ""
	}
	return v
}

// id is an id that check accepts, or empty when the parameter is absent.
func (q *query) id(name string, check func(string) error) string {
	v := q.values.Get(name)
	if !q.values.Has(name) {
		return ""
	}
	if err := check(v); err != nil {
		q.add(name, "%s", err)
	}
	return v
}

// only is a parameter that narrows a listing or is absent. There is no listing of
// the others: false would look like one and show all.
func (q *query) only(name string) bool {
	v := q.values.Get(name)
	if q.values.Has(name) && v != "true" {
		q.add(name, "is %.64q; give true, or leave it out for all", v)
	}
	return v == "true"
}

// page reads limit and after. A page may end with a document that is no
// entity's, so after may be its id.
func (q *query) page() firestoretx.Page {
	page := firestoretx.Page{Limit: DefaultLimit, After: q.id("after", domain.CheckDocumentID)}
	if v := q.values.Get("limit"); q.values.Has("limit") {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > MaxLimit {
			q.add("limit", "is %.64q; give 1 to %d", v, MaxLimit)
		}
		page.Limit = n
	}
	return page
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
