package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/testkit/docgen"
)

var updateDocument = flag.Bool("update", false, "rewrite the tables of docs/api.md")

// noKeyRoute is why keys have no routes.
const noKeyRoute = "none: a stolen session must not make access that outlives it"

// routesOf says for each command which route of the API does the same. A command
// without one has the reason instead.
var routesOf = map[string]string{
	"alerts acknowledge":  "POST /api/v1/alerts/acknowledge",
	"audit <subject>":     "GET /api/v1/{collection}/{id}/story",
	"deadletters discard": "POST /api/v1/deadletters/discard",
	"deadletters list":    "GET /api/v1/deadletters",
	"deadletters replay":  "POST /api/v1/deadletters/replay",
	"deadletters show":    "GET /api/v1/deadletters/{id}/story",
	"depots apply":        "POST /api/v1/depots/apply",
	"depots delete":       "POST /api/v1/depots/{id}/delete",
	"depots list":         "GET /api/v1/depots",
	"cycles list":         "GET /api/v1/cycles",
	"decisions list":      "GET /api/v1/decisions",
	"drone-types apply":   "POST /api/v1/drone-types/apply",
	"drone-types delete":  "POST /api/v1/drone-types/{id}/delete",
	"drone-types list":    "GET /api/v1/drone-types",
	"drones apply":        "POST /api/v1/drones/apply",
	"drones clear":        "POST /api/v1/drones/{id}/clear",
	"drones delete":       "POST /api/v1/drones/{id}/delete",
	"drones ground":       "POST /api/v1/drones/{id}/ground",
	"drones list":         "GET /api/v1/drones",
	"drones maintain":     "POST /api/v1/drones/{id}/maintain",
	"drones release":      "POST /api/v1/drones/{id}/release",
	"drones show":         "GET /api/v1/drones/{id}",
	"keys create":         noKeyRoute,
	"keys list":           noKeyRoute,
	"keys revoke":         noKeyRoute,
	"locks break":         "POST /api/v1/locks/break",
	"locks list":          "GET /api/v1/locks",
	"locks show":          "GET /api/v1/locks/show",
	"missions list":       "GET /api/v1/missions",
	"missions recall":     "POST /api/v1/missions/{id}/recall",
	"orders allow":        "POST /api/v1/orders/{id}/allow",
	"orders cancel":       "POST /api/v1/orders/{id}/cancel",
	"orders deadline":     "POST /api/v1/orders/{id}/deadline",
	"orders forbid":       "POST /api/v1/orders/{id}/forbid",
	"orders hold":         "POST /api/v1/orders/{id}/hold",
	"orders list":         "GET /api/v1/orders",
	"orders pin":          "POST /api/v1/orders/{id}/pin",
	"orders priority":     "POST /api/v1/orders/{id}/priority",
	"orders release":      "POST /api/v1/orders/{id}/release",
	"orders unpin":        "POST /api/v1/orders/{id}/unpin",
	"publish":             "POST /api/v1/messages/publish",
	"serve":               "none: it is the API's own process",
	"warehouses apply":    "POST /api/v1/warehouses/apply",
	"warehouses delete":   "POST /api/v1/warehouses/{id}/delete",
	"warehouses list":     "GET /api/v1/warehouses",
	"webhooks apply":      "none: webhooks are set up by whoever runs the fleet",
	"webhooks delete":     "none: webhooks are set up by whoever runs the fleet",
	"webhooks deliveries": "none: webhooks are set up by whoever runs the fleet",
	"webhooks list":       "none: webhooks are set up by whoever runs the fleet",
	"webhooks replay":     "none: webhooks are set up by whoever runs the fleet",
	"webhooks rotate":     "none: webhooks are set up by whoever runs the fleet",
	"webhooks test":       "none: webhooks are set up by whoever runs the fleet",
}

// flagsWithout are the flags of lists that the API lacks, with the reason.
var flagsWithout = map[string]string{
	"deadletters list --id": "the story of a message is at /api/v1/deadletters/{id}/story",
	"locks list --raw":      "keys and ids of locks are secrets",
}

// commandsWithout are the routes that change something and have no command of their own, with the
// reason.
var commandsWithout = map[string]string{
	"POST /api/v1/orders": "the command publish sends any message",
}

// everyCommand lists the commands of the grammar, without those that have moved.
func everyCommand(t *testing.T) map[string]*kong.Node {
	t.Helper()
	parser, err := kong.New(&grammar{}, kong.Vars{"version": ""})
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]*kong.Node{}
	for _, leaf := range parser.Model.Leaves(true) {
		var words []string
		for n := leaf; n.Type == kong.CommandNode; n = n.Parent {
			words = append(words, n.Name)
		}
		slices.Reverse(words)
		name := strings.Join(words, " ")
		if name == "audit" {
			name += " <subject>"
		}
		commands[name] = leaf
	}
	return commands
}

// operation is what the OpenAPI document says of one.
type operation struct {
	Parameters []struct{ Name string }
}

func everyRoute(t *testing.T) map[string]operation {
	t.Helper()
	w := httptest.NewRecorder()
	httpapi.New(httpapi.Config{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/api/openapi.json", nil))
	var document struct {
		Paths map[string]map[string]operation
	}
	if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	routes := map[string]operation{}
	for path, operations := range document.Paths {
		for method, o := range operations {
			routes[strings.ToUpper(method)+" "+path] = o
		}
	}
	return routes
}

// F-API-04: the API does what the command line does and shows. A command that is added
// needs a route, or a reason why it has none.
func TestCommands_HaveRoutes(t *testing.T) {
	commands, routes := everyCommand(t), everyRoute(t)
	used := map[string]bool{}
	for name, leaf := range commands {
		route, listed := routesOf[name]
		if reason, none := strings.CutPrefix(route, "none: "); none && reason != "" {
			continue
		}
		if name == "audit <subject>" {
			checkStories(t, leaf, routes)
			continue
		}
		described, exists := routes[route]
		if !listed || !exists {
			t.Errorf("%q has no route: add one, or say in routesOf why it has none (%q)", name, route)
			continue
		}
		used[route] = true
		if strings.HasSuffix(name, " list") {
			checkFlags(t, name, leaf, described)
		}
	}
	for name := range routesOf {
		if commands[name] == nil {
			t.Errorf("routesOf has %q, which is not a command", name)
		}
	}
	for route := range routes {
		if strings.HasPrefix(route, "POST ") && !used[route] && commandsWithout[route] == "" {
			t.Errorf("%s has no command", route)
		}
	}
}

// checkStories compares the subjects of audit with the routes of stories.
func checkStories(t *testing.T, audit *kong.Node, routes map[string]operation) {
	t.Helper()
	for subject := range audit.Positional[0].EnumMap() {
		route := fmt.Sprintf("GET /api/v1/%ss/{id}/story", subject)
		if subject == operator.SubjectPerson {
			route = "GET /api/v1/audit/person" // F-AUD-17: a name may hold slashes
			checkFlags(t, "audit person", audit, routes[route])
		}
		if routes[route].Parameters == nil {
			t.Errorf("audit %s has no route %s", subject, route)
		}
	}
}

// checkFlags compares the flags of a list with the parameters of its route.
func checkFlags(t *testing.T, name string, leaf *kong.Node, described operation) {
	t.Helper()
	own := map[string]bool{}
	for _, f := range leaf.Flags {
		own[f.Name] = true
	}
	delete(own, "output")                                               // the API answers with JSON
	for _, ofAll := range everyCommand(t)["alerts acknowledge"].Flags { // how to connect and print
		delete(own, ofAll.Name)
	}
	for _, ofLocks := range everyCommand(t)["locks show"].Flags {
		if ofLocks.Name != "raw" {
			delete(own, ofLocks.Name)
		}
	}
	if name != "deadletters list" { // the flag of other commands is the audit's
		delete(own, "reason")
	} else {
		own["reason"] = true
	}
	for flag := range own {
		has := slices.ContainsFunc(described.Parameters, func(p struct{ Name string }) bool { return p.Name == flag })
		if !has && flagsWithout[name+" --"+flag] == "" {
			t.Errorf("%s --%s has no parameter", name, flag)
		}
	}
}

// The table of docs/api.md is the one above.
func TestAPIDocument_IsCurrent(t *testing.T) {
	var table strings.Builder
	table.WriteString("| command | route |\n|-|-|\n| `audit person` | `GET /api/v1/audit/person` |\n")
	for _, name := range slices.Sorted(maps.Keys(routesOf)) {
		route := routesOf[name]
		if !strings.HasPrefix(route, "none: ") {
			route = "`" + route + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s |\n", name, route)
	}
	for _, name := range slices.Sorted(maps.Keys(flagsWithout)) {
		fmt.Fprintf(&table, "| `%s` | none: %s |\n", name, flagsWithout[name])
	}
	err := docgen.Hold("../../docs/api.md", map[string]string{"routes": table.String(), "roles": docgen.Elsewhere}, *updateDocument, "go test ./cmd/statemanager -run TestAPIDocument_IsCurrent -update")
	if err != nil {
		t.Error(err)
	}
}
