package httpapi

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/dronefleet/dronefleet/app/live"
	"github.com/dronefleet/dronefleet/domain"
)

func (a *API) streamEndpoint() endpoint {
	return endpoint{
		method: get, path: streamPath, role: viewer, requesters: true, summary: "Follow the fleet: its state, then what changes. See docs/stream.md.",
		parameters: []parameter{streamKinds, streamAreas, streamDepot, streamArea, streamNear, streamAfter, streamRequester}, answer: writesA("text/event-stream", schema{"type": "string"}, a.stream),
	}
}

var (
	streamKinds = parameter{
		name: "kinds", says: "Only these kinds, separated by commas.", example: "alert,order", schema: schema{"type": "string"},
		wrong: func(value string) string { _, detail := kindsOf(value); return detail },
	}
	streamAreas = parameter{
		name: "areas", says: "Only the planning areas of these depots, separated by commas; by default those near what the client looks at, in a fleet of 20,000 drones.",
		example: "DEPOT-1,DEPOT-7", schema: schema{"type": "string"}, wrong: func(value string) string { _, detail := depotsOf(value); return detail },
	}
	streamDepot     = parameter{name: "depot", says: "Only what belongs to this depot.", example: "DEPOT-1", schema: schema{"type": "string"}, wrong: checked(domain.CheckID)}
	streamRequester = parameter{
		name: "requester", says: "Only orders of this requester and their refusals; requesters see no others.", example: "HOSPITAL-1", schema: schema{"type": "string"}, wrong: checked(domain.CheckID),
	}
	streamArea = parameter{
		name: "area", says: "Only what is inside minLat,minLon,maxLat,maxLon in degrees.", example: "48.8,2.2,48.9,2.4", schema: schema{"type": "string"},
		wrong: func(value string) string { _, detail := areaOf(value); return detail },
	}
)

var streamNear = parameter{
	name: "near", says: "What the client looks at, as in area. Of drones elsewhere one position comes in 6 s.", example: "48.8,2.2,48.9,2.4", schema: schema{"type": "string"},
	wrong: func(value string) string { _, detail := areaOf(value); return detail },
}

var streamAfter = parameter{
	name: "after", says: "The id of the last event that the client has, if it cannot send Last-Event-ID.", example: "0d5f31c2-17", schema: schema{"type": "string"},
	wrong: func(string) string { return "" }, // one that is not known is as good as none
}

// kindsOf parses a value of streamKinds. The text wrong is as in parameter.
func kindsOf(value string) (kinds map[live.Kind]bool, wrong string) {
	kinds = make(map[live.Kind]bool)
	for name := range strings.SplitSeq(value, ",") {
		if !slices.Contains(live.Kinds, live.Kind(name)) {
			return nil, fmt.Sprintf("has %.64q; give a list of %s, separated by commas", name, oneOf(live.Kinds))
		}
		kinds[live.Kind(name)] = true
	}
	return kinds, ""
}

// maxAreas bounds the depots of streamAreas.
const maxAreas = 100

// depotsOf parses a value of streamAreas. The text wrong is as in parameter.
func depotsOf(value string) (depots []domain.DepotID, wrong string) {
	for id := range strings.SplitSeq(value, ",") {
		if err := domain.CheckID(id); err != nil {
			return nil, fmt.Sprintf("has %.64q, which %s", id, err)
		}
		depots = append(depots, domain.DepotID(id))
	}
	if len(depots) > maxAreas {
		return nil, fmt.Sprintf("names %d depots; name at most %d, or follow the whole fleet", len(depots), maxAreas)
	}
	return depots, ""
}

// areaOf parses a value of streamArea. The text wrong is as in parameter.
func areaOf(value string) (area *live.Area, wrong string) {
	const fix = "give minLat,minLon,maxLat,maxLon in degrees, such as 48.8,2.2,48.9,2.4"
	parts := strings.Split(value, ",")
	if len(parts) != 4 {
		return nil, fmt.Sprintf("is %.64q; %s", value, fix)
	}
	var edges [4]float64
	for i, part := range parts {
		most := [2]float64{90, 180}[i%2]
		n, err := strconv.ParseFloat(part, 64)
		if err != nil || !(n >= -most && n <= most) {
			return nil, fmt.Sprintf("has %.64q; %s", part, fix)
		}
		edges[i] = n
	}
	if edges[0] > edges[2] || edges[1] > edges[3] {
		return nil, fmt.Sprintf("is %.64q, which is empty; %s", value, fix)
	}
	return &live.Area{Min: domain.Position{Lat: edges[0], Lon: edges[1]}, Max: domain.Position{Lat: edges[2], Lon: edges[3]}}, ""
}

// stream answers GET /api/v1/stream with the fleet's state and then with what changes,
// as server-sent events; docs/stream.md describes them. The stream lasts until the
// client or the server ends it, or the caller's credentials end.
//
// Cost: none for one viewer more; the first starts the feed, see package live.
func (a *API) stream(ctx context.Context, r *request) (any, error) {
	if a.feed == nil {
		return nil, problem(http.StatusNotFound, "this process has no live feed; ask a State Manager")
	}
	requester, err := requesterOf(ctx, r, "requester")
	if err != nil {
		return nil, err
	}
	filter := live.Filter{Depot: domain.DepotID(r.value("depot")), Requester: requester}
	if r.has("kinds") {
		filter.Kinds, _ = kindsOf(r.value("kinds")) // checked
	}
	if r.has("areas") {
		filter.Areas, _ = depotsOf(r.value("areas")) // checked
	}
	if r.has("area") {
		filter.Area, _ = areaOf(r.value("area")) // checked
	}
	if r.has("near") {
		filter.Near, _ = areaOf(r.value("near")) // checked
	}
	connection, _ := ctx.Value(connectionKey{}).(context.Context)
	streaming, _ := ctx.Value(streamingKey{}).(context.Context)
	after := cmp.Or(r.Header.Get("Last-Event-ID"), r.value("after"))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Accel-Buffering", "no") // proxies must not hold events back
		if r.Method == http.MethodHead {
			return
		}
		left := a.streams.join(callerOf(ctx))
		if left == nil {
			w.Header().Del("X-Accel-Buffering")
			a.refuse(w, r, problem(http.StatusServiceUnavailable, "this process has no stream left for the caller's role; try another one, or later"))
			return
		}
		defer left()
		viewer, err := a.feed.Join(filter, after)
		if err != nil {
			w.Header().Del("X-Accel-Buffering")
			a.refuse(w, r, problem(http.StatusServiceUnavailable, "%s; try another one", err))
			return
		}
		defer viewer.Leave()
		s := &eventStream{feed: a.feed, viewer: viewer, streaming: streaming, until: callerOf(ctx).Until, still: callerOf(ctx).Still, control: http.NewResponseController(w), out: bufio.NewWriter(w), log: a.log}
		if err := s.run(connection); err != nil {
			a.log.DebugContext(connection, "stream ended", slog.Any("err", err))
		}
	}), nil
}
