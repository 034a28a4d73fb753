package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/internal/identity"
)

// session is who sends requests and what they may do.
type session struct {
	Name   string          `json:"name,omitempty"` // absent if no credentials are required
	Method identity.Method `json:"method"`
	Roles  []identity.Role `json:"roles"`
	// Requester is set for callers with the role requester.
	Requester string     `json:"requester,omitempty" doc:"Whose orders a requester sees and changes."`
	Verbs     []string   `json:"verbs"` // "orders hold" for POST /api/v1/orders/{id}/hold
	Expires   *time.Time `json:"expires,omitempty"`
}

// session answers GET /api/v1/session with the caller.
//
// Cost: no RPC.
func (a *API) session(ctx context.Context, _ *request) (session, error) {
	caller := callerOf(ctx)
	s := session{Name: caller.Name, Method: caller.Method, Roles: caller.Roles(), Requester: caller.Requester, Verbs: []string{}}
	if !caller.Until.IsZero() {
		until := caller.Until.UTC()
		s.Expires = &until
	}
	for _, e := range slices.Concat(a.table, a.incidentEndpoints()) {
		if e.method != http.MethodGet && e.admits(caller) {
			s.Verbs = append(s.Verbs, verbOf(e.method, e.path))
		}
	}
	return s, nil
}
