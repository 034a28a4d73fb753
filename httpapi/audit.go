package httpapi

import (
	"context"

	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/internal/input"
)

func (a *API) auditEndpoints() []endpoint {
	return []endpoint{{
		method: get, path: "/api/v1/audit/person", role: viewer, summary: "Tell what one person did in a period.",
		parameters: []parameter{
			personName, timeParameter("from", "Begin of the period; default a day before its end.", false), timeParameter("to", "End of the period; default now.", false),
		},
		answer: writes(a.personStory),
	}}
}

// personName is required. A name may have slashes, so it is not part of the path.
var personName = parameter{
	name: "name", says: "Name of the person, as the field by has it.", example: "ann@example.org", schema: schema{"type": "string"},
	wrong: checked(operator.CheckBy), required: true,
}

// personStory answers GET /api/v1/audit/person?name= with what "audit person" prints with --json.
//
// Cost: see operator.Commands.PersonStory.
func (a *API) personStory(ctx context.Context, r *request) (operator.PersonJSON, error) {
	from, _ := input.Time(r.value("from")) // checked; the zero time if it is absent
	to, _ := input.Time(r.value("to"))
	return a.operator.PersonStory(ctx, r.value("name"), from, to)
}
