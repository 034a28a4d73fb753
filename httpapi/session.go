package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/dronefleet/dronefleet/httpapi/identity"
)

// session is who sends requests and what they may do.
type session struct {
	Name    string          `json:"name,omitempty"` // absent if no credentials are required
	Method  identity.Method `json:"method"`
	Roles   []identity.Role `json:"roles"`
	Verbs   []string        `json:"verbs"` // "orders hold" for POST /api/v1/orders/{id}/hold
	Expires *time.Time      `json:"expires,omitempty"`
}

// session answers GET /api/v1/session with the caller.
//
// Cost: no RPC.
func (a *API) session(ctx context.Context, _ *request) (session, error) {
	caller := callerOf(ctx)
	s := session{Name: caller.Name, Method: caller.Method, Roles: caller.Roles(), Verbs: []string{}}
	if !caller.Until.IsZero() {
		until := caller.Until.UTC()
		s.Expires = &until
	}
	for _, e := range a.table {
		if e.method != http.MethodGet && caller.May(e.role) {
			s.Verbs = append(s.Verbs, verbOf(e.path))
		}
	}
	return s, nil
}
