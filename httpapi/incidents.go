package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"
)

// Incident is something that goes wrong on purpose in a trial.
type Incident struct {
	Name string `json:"name"`
	Does string `json:"does"`
	// While it is under way: what went wrong, where to look, and when it ends by itself.
	What     string     `json:"what,omitempty"`
	Console  string     `json:"console,omitempty"`
	Terminal string     `json:"terminal,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
}

// Incidents are those that a trial offers. by names who asks. An error says why the incident
// cannot be started or ended now.
type Incidents interface {
	List() []Incident
	Start(name, by string) (Incident, error)
	End(name, by string) (Incident, error)
}

// incidentEndpoints list, start and end the incidents of a trial.
func (a *API) incidentEndpoints() []endpoint {
	if a.incidents == nil {
		return nil
	}
	const path = "/api/v1/dev/incidents"
	return []endpoint{
		{method: get, path: path, role: viewer, answer: answer{do: a.listIncidents}},
		{method: post, path: path + "/{id}", role: oper, answer: a.incident(a.incidents.Start)},
		{method: post, path: path + "/{id}/end", role: oper, answer: a.incident(a.incidents.End)},
	}
}

// listIncidents answers GET /api/v1/dev/incidents.
//
// Cost: no RPC.
func (a *API) listIncidents(context.Context, *request) (any, error) {
	return map[string][]Incident{"incidents": a.incidents.List()}, nil
}

// incident answers a request that starts or ends an incident with the incident.
func (a *API) incident(do func(name, by string) (Incident, error)) answer {
	return answer{do: func(ctx context.Context, r *request) (any, error) {
		if !slices.ContainsFunc(a.incidents.List(), func(i Incident) bool { return i.Name == r.id() }) {
			return nil, problem(http.StatusNotFound, "no incident %q; GET /api/v1/dev/incidents lists them", r.id())
		}
		done, err := do(r.id(), callerOf(ctx).Name)
		if err != nil {
			return nil, problem(http.StatusConflict, "%s", err)
		}
		return done, nil
	}}
}
