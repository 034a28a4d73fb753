package httpapi

import (
	"context"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/httpapi/console"
	"github.com/dronefleet/dronefleet/httpapi/identity"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/observe"
	"github.com/dronefleet/dronefleet/policy"
)

// endpoint is one line of the table that the API is made of: routing, the answer to
// a wrong method, the list of paths in a 404, who may call and the checks of the
// request all follow from it. docs/recipes.md says how to add one.
type endpoint struct {
	method     string        // GET answers HEAD too
	path       string        // pattern of http.ServeMux; {id} must be an entity's id
	role       identity.Role // who may call it; "" for everybody
	summary    string        // what it does, for the OpenAPI document
	parameters []parameter   // what the query may hold
	body       func() body   // what the JSON body is decoded into; nil if there is none
	answer     answer
}

// answer is what an endpoint does. do returns what to write as JSON with status
// 200, a reply to choose the status, or an http.Handler to write by itself.
type answer struct {
	do    func(context.Context, *request) (any, error)
	shape func(*schemas) content // what is written, for the OpenAPI document
}

// writes is the answer of a function that returns what to write as JSON.
func writes[T any](do func(context.Context, *request) (T, error)) answer {
	return answer{
		func(ctx context.Context, r *request) (any, error) { return do(ctx, r) },
		func(s *schemas) content { return content{"application/json", s.of(reflect.TypeFor[T]())} },
	}
}

// writesA is the answer of a function that writes another media type, or chooses its
// status.
func writesA(mediaType string, s schema, do func(context.Context, *request) (any, error)) answer {
	return answer{do, func(*schemas) content { return content{mediaType, s} }}
}

// reply is an answer with a status of its own.
type reply struct {
	status int
	body   any
}

// fleetEndpoints show and change the fleet.
func (a *API) fleetEndpoints() []endpoint {
	const get, post, viewer, oper = http.MethodGet, http.MethodPost, identity.Viewer, identity.Operator
	change, letters, discard, lockKey := newBody[changeRequest], newBody[replayRequest], newBody[discardRequest], newBody[breakRequest]
	return []endpoint{
		{get, "/api/v1/optimizer/snapshot", viewer, "Read what a solve cycle of a depot would see now.", []parameter{depot}, nil, writesA("application/json", wire.SnapshotSchema(), a.snapshot)},
		{get, "/api/v1/snapshot", viewer, "Read the fleet as it was at a past time.", []parameter{pastTime}, nil, writes(a.past)},
		{get, streamPath, viewer, "Follow the fleet: its state, then what changes. See docs/stream.md.", []parameter{streamKinds, streamDepot, streamArea}, nil, writesA("text/event-stream", schema{"type": "string"}, a.stream)},
		{get, "/api/v1/drones", viewer, "List drones.", listed("drones", choice("status", domain.DroneStatuses)), nil, list("drones", a.drones, entity.OfDrone)},
		{get, "/api/v1/orders", viewer, "List orders, and why those that wait do.", listed("orders", choice("status", domain.OrderStatuses), onlyHeld), nil, pages("orders", a.orders)},
		{get, "/api/v1/missions", viewer, "List missions.", listed("missions", choice("status", domain.MissionStatuses)), nil, list("missions", a.missions, entity.OfMission)},
		{get, "/api/v1/decisions", viewer, "List decisions and their outcomes.", listed("decisions", choice("outcome", domain.Outcomes), choice("reason", policy.LedgerReasons())), nil, list("decisions", a.decisions, entity.OfDecision)},
		{get, "/api/v1/cycles", viewer, "List solve cycles.", listed("cycles", choice("outcome", domain.CycleOutcomes)), nil, list("cycles", a.cycles, entity.OfCycle)},
		{get, "/api/v1/drones/{id}", viewer, "Read one drone.", nil, nil, single[domain.DroneID](a.store.Drone, entity.OfDrone)},
		{get, "/api/v1/orders/{id}", viewer, "Read one order, and why it waits.", nil, nil, writes(a.order)},
		{get, "/api/v1/orders/{id}/explanation", viewer, "Say why an order waited or was late, which drones were nearest, what each lacked, and what would have helped.", []parameter{maybePast, addDrones, addSlots, dropReserve}, nil, writes(a.explanation)},
		{get, "/api/v1/missions/{id}", viewer, "Read one mission.", nil, nil, single[domain.MissionID](a.store.Mission, entity.OfMission)},
		{get, "/api/v1/decisions/{id}", viewer, "Read one decision.", nil, nil, single[domain.DecisionID](a.store.LedgerEntry, entity.OfDecision)},
		{get, "/api/v1/cycles/{id}", viewer, "Read one cycle.", nil, nil, single[domain.CycleID](a.store.Cycle, entity.OfCycle)},
		{get, "/api/v1/depots", viewer, "List depots.", listed("depots"), nil, list("depots", a.depots, entity.OfDepot)},
		{get, "/api/v1/warehouses", viewer, "List warehouses.", listed("warehouses"), nil, list("warehouses", a.warehouses, entity.OfWarehouse)},
		{get, "/api/v1/drones/{id}/story", viewer, "Tell everything recorded about one drone.", nil, nil, a.story(operator.SubjectDrone)},
		{get, "/api/v1/orders/{id}/story", viewer, "Tell everything recorded about one order.", nil, nil, a.story(operator.SubjectOrder)},
		{get, "/api/v1/missions/{id}/story", viewer, "Tell everything recorded about one mission.", nil, nil, a.story(operator.SubjectMission)},
		{get, "/api/v1/decisions/{id}/story", viewer, "Tell everything recorded about one decision.", nil, nil, a.story(operator.SubjectDecision)},
		{get, "/api/v1/cycles/{id}/story", viewer, "Tell everything recorded about one cycle.", nil, nil, a.story(operator.SubjectCycle)},
		{get, "/api/v1/depots/{id}/story", viewer, "Show what changed one depot, and which drones are based there.", nil, nil, a.story(operator.SubjectDepot)},
		{get, "/api/v1/warehouses/{id}/story", viewer, "Show what changed one warehouse, and which active missions visit it.", nil, nil, a.story(operator.SubjectWarehouse)},
		{get, "/api/v1/deadletters", viewer, "List messages that were refused for good.", []parameter{letterTopic, letterReason, limit, letterCursor}, nil, writes(a.deadLetters)},
		{get, "/api/v1/locks", viewer, "List the locks that are held.", []parameter{limit, lockCursor}, nil, pages("locks", a.heldLocks)},
		{get, "/api/v1/deadletters/{id}/story", viewer, "Show what happened to one refused message.", nil, nil, writes(a.letterStory)},
		{get, "/api/v1/locks/show", viewer, "Read the lock of one key.", []parameter{keyOfLock}, nil, writes(a.oneLock)},
		{get, "/api/v1/session", viewer, "Say who the caller is and which verbs it has.", nil, nil, writes(a.session)},

		{post, "/api/v1/orders/{id}/hold", oper, "Keep a pending order from every solve cycle.", nil, change, changing(a, "orders hold", entity.OfOrder, operator.Commands.HoldOrder)},
		{post, "/api/v1/orders/{id}/release", oper, "Offer a held order to the solve cycles again.", nil, change, changing(a, "orders release", entity.OfOrder, operator.Commands.ReleaseOrder)},
		{post, "/api/v1/orders/{id}/cancel", oper, "Cancel an order that no drone carries yet.", nil, change, changing(a, "orders cancel", entity.OfOrder, operator.Commands.CancelOrder)},
		{post, "/api/v1/orders/{id}/priority", oper, "Give an open order another priority.", nil, newBody[priorityRequest], changingTo(a, "orders priority", entity.OfOrder, setPriority)},
		{post, "/api/v1/orders/{id}/deadline", oper, "Give an open order another deadline.", nil, newBody[deadlineRequest], changingTo(a, "orders deadline", entity.OfOrder, setDeadline)},
		{post, "/api/v1/orders/{id}/pin", oper, "Let only one drone take an order.", nil, newBody[droneRequest], changingTo(a, "orders pin", entity.OfOrder, forDrone(operator.Commands.PinOrder))},
		{post, "/api/v1/orders/{id}/unpin", oper, "Let any drone take a pinned order again.", nil, change, changing(a, "orders unpin", entity.OfOrder, operator.Commands.UnpinOrder)},
		{post, "/api/v1/orders/{id}/forbid", oper, "Keep one drone from an order.", nil, newBody[droneRequest], changingTo(a, "orders forbid", entity.OfOrder, forDrone(operator.Commands.ForbidDrone))},
		{post, "/api/v1/orders/{id}/allow", oper, "Let a forbidden drone take an order again.", nil, newBody[droneRequest], changingTo(a, "orders allow", entity.OfOrder, forDrone(operator.Commands.AllowDrone))},
		{post, "/api/v1/drones/{id}/clear", oper, "Clear a drone's latched emergency.", nil, change, changing(a, "drones clear", entity.OfDrone, operator.Commands.ClearDrone)},
		{post, "/api/v1/drones/{id}/ground", oper, "Keep a drone from new missions; it finishes the one it flies.", nil, change, changing(a, "drones ground", entity.OfDrone, operator.Commands.GroundDrone)},
		{post, "/api/v1/drones/{id}/release", oper, "Let a grounded drone take missions again.", nil, change, changing(a, "drones release", entity.OfDrone, operator.Commands.ReleaseDrone)},
		{post, "/api/v1/missions/{id}/recall", oper, "Have a drone give its mission up once nothing is aboard.", nil, change, changing(a, "missions recall", entity.OfMission, operator.Commands.RecallMission)},
		{post, "/api/v1/deadletters/replay", oper, "Publish dead-lettered messages again, after the cause is fixed.", nil, letters, writes(a.replay)},
		{post, "/api/v1/deadletters/discard", oper, "Delete dead-lettered messages that will not be fixed.", nil, discard, writes(a.discard)},
		{post, "/api/v1/messages/publish", oper, "Publish one message, for trials and repairs.", nil, newBody[publishRequest], writes(a.publish)},
		{post, "/api/v1/alerts/acknowledge", oper, "Record that you have taken note of an alert.", nil, newBody[acknowledgeRequest], writes(a.acknowledge)},
		{post, "/api/v1/locks/break", oper, "End the lock of one key, no matter who holds it.", nil, lockKey, writes(a.breakLock)},
		{post, "/api/v1/depots/apply", oper, "Create and change depots.", nil, newBody[depotsRequest], writes(a.applyDepots)},
		{post, "/api/v1/warehouses/apply", oper, "Create and change warehouses.", nil, newBody[warehousesRequest], writes(a.applyWarehouses)},
		{post, "/api/v1/depots/{id}/delete", oper, "Delete a depot that nothing needs.", nil, newBody[deleteRequest], deleting(a, "depots delete", operator.Commands.DeleteDepot)},
		{post, "/api/v1/warehouses/{id}/delete", oper, "Delete a warehouse that nothing needs.", nil, newBody[deleteRequest], deleting(a, "warehouses delete", operator.Commands.DeleteWarehouse)},
	}
}

// consoleEndpoints serve the page for dispatchers. It holds nothing of the fleet, so
// everybody may read it; what it shows comes from the stream.
func (a *API) consoleEndpoints() (endpoints []endpoint) {
	for path, file := range console.Files {
		endpoints = append(endpoints, handling(path, "", console.Handler(file, a.baseMap)))
	}
	endpoints = append(endpoints, handling(console.MapPath, identity.Viewer, http.HandlerFunc(a.baseMap.About)),
		handling(console.PMTilesPath, identity.Viewer, http.HandlerFunc(a.baseMap.Archive)))
	slices.SortFunc(endpoints, func(x, y endpoint) int { return strings.Compare(x.path, y.path) })
	return endpoints
}

// handling is an endpoint that a handler answers.
func handling(path string, role identity.Role, h http.Handler) endpoint {
	return endpoint{method: http.MethodGet, path: path, role: role, answer: answer{do: func(context.Context, *request) (any, error) { return h, nil }}}
}

// probeEndpoints say how the process is.
func (a *API) probeEndpoints() []endpoint {
	const get = http.MethodGet
	probes := []endpoint{
		{get, "/healthz", "", "Say that the process answers.", nil, nil, writes(a.health)},
		{get, "/readyz", "", "Check what the process depends on; 503 if it is not ready.", nil, nil, answer{a.readyz, writes[Readiness](nil).shape}},
	}
	metrics := func(role identity.Role, answer answer) endpoint {
		return endpoint{get, "/metrics", role, "Metrics for Prometheus.", []parameter{anyParameter}, nil, answer}
	}
	switch a.access.Metrics {
	case MetricsOff:
		return probes
	case MetricsViewer:
		return append(probes, metrics(identity.Viewer, metricsOf(a.meter)))
	case MetricsLocal:
		return append(probes, metrics("", localOnly(metricsOf(a.meter))))
	case MetricsOpen:
	}
	return append(probes, metrics("", metricsOf(a.meter)))
}

// route makes the handler of all requests from the table.
func (a *API) route(table []endpoint) http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	var paths []string
	for _, e := range table {
		mux.Handle(e.method+" "+e.path, a.serve(e))
		if methods[e.path] == nil {
			paths = append(paths, strings.TrimSuffix(e.path, "{$}"))
		}
		methods[e.path] = append(methods[e.path], e.method)
	}
	for path, allowed := range methods {
		mux.Handle(path, a.wrongMethod(allowed))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		a.refuse(w, r, problem(http.StatusNotFound, "no such path %.128q; available paths: %s", r.URL.Path, strings.Join(paths, ", ")))
	})
	return a.canonical(mux)
}

// serve checks a request and writes the endpoint's answer.
func (a *API) serve(e endpoint) http.Handler {
	return a.guard(e, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := e.read(r)
		var answered any
		if err == nil {
			answered, err = e.answer.do(r.Context(), req)
		}
		if err != nil {
			a.refuse(w, r, err)
			return
		}
		switch answered := answered.(type) {
		case http.Handler:
			answered.ServeHTTP(w, r)
		case reply:
			a.write(w, r, answered.status, "application/json", answered.body)
		default:
			a.write(w, r, http.StatusOK, "application/json", answered)
		}
	}))
}

// wrongMethod answers a path that exists for other methods.
func (a *API) wrongMethod(allowed []string) http.Handler {
	if slices.Contains(allowed, http.MethodGet) {
		allowed = append(slices.Clone(allowed), http.MethodHead)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := problem(http.StatusMethodNotAllowed, "method %.16s not allowed; use %s", r.Method, oneOf(allowed))
		p.headers = map[string]string{"Allow": strings.Join(allowed, ", ")}
		a.refuse(w, r, p)
	})
}

// canonical redirects paths with empty, "." or ".." segments to the path they
// stand for. ServeMux would do the same, with a body of HTML.
func (a *API) canonical(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		escaped := r.URL.EscapedPath()
		clean := path.Clean("/" + escaped)
		if strings.HasSuffix(escaped, "/") && clean != "/" {
			clean += "/"
		}
		if clean == escaped {
			next.ServeHTTP(w, r)
			return
		}
		location := clean
		if r.URL.RawQuery != "" {
			location += "?" + r.URL.RawQuery
		}
		p := problem(http.StatusTemporaryRedirect, "the path %.128q stands for %.128q; use that", escaped, clean)
		p.headers = map[string]string{"Location": location}
		a.refuse(w, r, p)
	})
}

// list answers GET /api/v1/{collection} with one page.
//
// Cost: 1 RPC; one read per entity listed and one more.
func list[D, J any](name string, read func(context.Context, *request) (firestoretx.Listing[D], error), form func(D) J) answer {
	return pages(name, func(ctx context.Context, r *request) (items []J, next string, malformed []error, err error) {
		l, err := read(ctx, r)
		return entity.Each(l.Items, form), l.Next, l.Malformed, err
	})
}

// single answers GET /api/v1/{collection}/{id}.
//
// Cost: 1 RPC, 1 read.
func single[ID ~string, D, J any](read func(context.Context, ID) (D, error), form func(D) J) answer {
	return writes(func(ctx context.Context, r *request) (now J, err error) {
		v, err := read(ctx, ID(r.id()))
		if err != nil {
			return now, err
		}
		return form(v), nil
	})
}

func (a *API) drones(ctx context.Context, r *request) (firestoretx.Listing[domain.Drone], error) {
	return a.store.ListDrones(ctx, domain.DroneStatus(r.value("status")), r.page())
}

func (a *API) missions(ctx context.Context, r *request) (firestoretx.Listing[domain.Mission], error) {
	return a.store.ListMissions(ctx, domain.MissionStatus(r.value("status")), r.page())
}

func (a *API) decisions(ctx context.Context, r *request) (firestoretx.Listing[domain.LedgerEntry], error) {
	filter := firestoretx.LedgerFilter{Outcome: domain.Outcome(r.value("outcome")), Reason: r.value("reason")}
	if filter.Reason != "" && filter.Outcome == domain.OutcomeApplied {
		return firestoretx.Listing[domain.LedgerEntry]{}, badParameters([]ParameterProblem{{"reason", "goes with outcome REJECTED; an applied decision has none"}})
	}
	return a.store.ListLedger(ctx, filter, r.page())
}

// cycles may end a page early, with a next one, where cycles list many orders.
func (a *API) cycles(ctx context.Context, r *request) (firestoretx.Listing[domain.Cycle], error) {
	return a.store.ListCycles(ctx, domain.CycleOutcome(r.value("outcome")), r.page())
}

type health struct {
	Status string `json:"status"`
}

// health says that the process answers requests, and nothing more.
//
// Cost: no RPC.
func (a *API) health(context.Context, *request) (health, error) {
	return health{CheckOK}, nil
}

// localOnly answers callers on this machine. A proxy is on this machine, too, where it is in
// the same pod, but it says whom it asks for.
func localOnly(a answer) answer {
	return answer{func(ctx context.Context, r *request) (any, error) {
		if !parseAddress(r.RemoteAddr).IsLoopback() || len(r.Header.Values("X-Forwarded-For")) > 0 {
			return nil, problem(http.StatusForbidden, "the metrics are for collectors on the same machine; see --metrics-access")
		}
		return a.do(ctx, r)
	}, a.shape}
}

// metricsOf answers GET /metrics: what the process counted, and the Go runtime.
//
// Cost: no RPC.
func metricsOf(m *meter.Meter) answer {
	h := observe.MetricsHandler(m)
	return writesA("text/plain", schema{"type": "string"}, func(context.Context, *request) (any, error) { return h, nil })
}
