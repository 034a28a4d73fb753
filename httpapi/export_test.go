package httpapi

import (
	"net"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/identity"
)

// Hurry makes a listener give its clients less time, for tests of the timeouts.
func (l *Listener) Hurry(header, read time.Duration) { l.bounds.header, l.bounds.read = header, read }

// HurryOrders makes orders wait less for Pub/Sub.
func (a *API) HurryOrders(patience time.Duration) { a.orders.Patience = patience }

// ListenOn listens on l.
func ListenOn(l net.Listener) *Listener { return &Listener{l, defaultBounds} }

// ShareStreams sets how many streams each role may have.
func (a *API) ShareStreams(each int64) { a.streams = newShares(each) }

// StreamShare is how many streams each role has.
const StreamShare = streamShare

// Endpoint is a line of the API's table.
type Endpoint struct {
	Method, Path string
	Role         identity.Role
	Requesters   bool
}

// Endpoints is the API's table.
func (a *API) Endpoints() (table []Endpoint) {
	for _, e := range a.described() {
		table = append(table, Endpoint{e.method, e.path, e.role, e.requesters})
	}
	return table
}

// RemarkOn is why an event stands out in a replay; "" if it does not.
func RemarkOn(e domain.Event) string {
	if remarked, is := remarkOn(e); is {
		return string(remarked.Kind)
	}
	return ""
}
