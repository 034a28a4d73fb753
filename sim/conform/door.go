package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
)

// examRequester is the requester whose API key an examination makes.
const examRequester = "HOSPITAL-EXAM"

// makeKey makes an API key with which a hospital can order over HTTP.
func (x *HospitalExam) makeKey(ctx context.Context) (err error) {
	use := operator.KeyUse{Role: domain.KeyRequester, Requester: examRequester, ExpiresAt: x.manager.Store.Now().Add(domain.MaxKeyLifetime)}
	x.Key, _, err = x.commands.CreateKey(ctx, use, reason)
	return err
}

// answered is what the API answered to a request about orders.
type answered struct {
	what     string // method and path
	status   int
	location string
	detail   string // of a refusal
}

// maxDetail is more than any problem of the API has.
const maxDetail = 64 << 10

// Door is the fleet's HTTP API, which is served at an address, as the hospital should reach it: it
// notes the answers to orders.
func (x *HospitalExam) Door(api *url.URL) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(api) },
		ModifyResponse: func(r *http.Response) error {
			path := r.Request.URL.Path
			if r.Request.Method == http.MethodGet || !strings.HasPrefix(path, "/api/v1/orders") {
				return nil
			}
			a := answered{what: r.Request.Method + " " + path, status: r.StatusCode, location: r.Header.Get("Location")}
			if r.StatusCode >= http.StatusBadRequest {
				text, err := io.ReadAll(io.LimitReader(r.Body, maxDetail))
				if err != nil {
					return err
				}
				r.Body = io.NopCloser(bytes.NewReader(text))
				a.detail = problemIn(text)
			}
			x.mu.Lock()
			x.answers = append(x.answers, a)
			x.mu.Unlock()
			return nil
		},
	}
}

// problemIn is what a problem document says.
func problemIn(text []byte) string {
	var problem struct {
		Title, Detail string
		Errors        []struct{ Pointer, Detail string }
	}
	if json.Unmarshal(text, &problem) != nil {
		return strings.TrimSpace(string(text))
	}
	said := []string{problem.Detail}
	if problem.Detail == "" {
		said[0] = problem.Title
	}
	for _, e := range problem.Errors {
		said = append(said, e.Pointer+" "+e.Detail)
	}
	return strings.Join(said, "; ")
}

// answer judges one answer of the API.
func (o *orderBook) answer(a answered) {
	rule := "H-01"
	switch {
	case a.status == http.StatusTooManyRequests || a.status >= http.StatusInternalServerError:
		return // the fleet's doing
	case a.status == http.StatusForbidden || a.status == http.StatusUnauthorized:
		rule = "H-03"
	case a.status == http.StatusUnprocessableEntity:
		rule = "H-04"
	case strings.HasSuffix(a.what, "/cancel"):
		rule = "H-06"
	case a.status == http.StatusConflict:
		rule = "H-02"
	}
	switch {
	case a.status >= http.StatusBadRequest:
		o.broke(rule, "%s is answered %d: %s", a.what, a.status, a.detail)
	case rule == "H-06":
		o.test(rule)
	case a.location != "":
		if o.accepted[a.location] {
			o.test("H-02")
		}
		o.accepted[a.location] = true
	}
}
