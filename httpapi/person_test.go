package httpapi_test

import (
	"testing"

	"github.com/dronefleet/dronefleet/httpapi"
)

// F-AUD-17: the API tells what a person did; the name may be any that the audit has.
func TestAPI_TellsWhatAPersonDid(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	g.order("O1")
	ann, viewer := g.token(asOperator), g.token(asViewer)
	g.asks(ann, "POST", "/api/v1/orders/O1/hold", `{"reason": "address in doubt"}`, 200, "held")
	g.asks(viewer, "GET", "/api/v1/audit/person?name=ann@example.org", "", 200, `"what":"order O1: stays PENDING;`, `because address in doubt"`, `"by":"ann@example.org"`)
	g.asks(viewer, "GET", "/api/v1/audit/person?name=ann@example.org&to=2020-01-01T00:00:00Z", "", 200, `"from":"2019-12-31T00:00:00Z"`, `"steps":[]`)
	g.asks(viewer, "GET", "/api/v1/audit/person?name=ward/4", "", 200, `"events":[]`)
	g.asks(viewer, "GET", "/api/v1/audit/person", "", 400, "name is missing")
	g.asks(viewer, "GET", "/api/v1/audit/person?name=ann&from=2026-11-24T00:00:00Z&to=2026-11-23T00:00:00Z", "", 400, "from is 2026-11-24T00:00:00Z, not before the end")
	g.asks(viewer, "GET", "/api/v1/audit/person?name=ann&from=noon", "", 400, "give a time such as")
}
