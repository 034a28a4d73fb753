package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// exampleIDs are the ids of the document's examples, by collection.
var exampleIDs = map[string]string{
	"drones": "D1", "orders": "O2", "missions": "M-DEC-1", "decisions": "DEC-1", "cycles": "C1", "depots": "DEPOT-8", "warehouses": "W8", "drone-types": "M30", "deadletters": "4711",
}

// openAPI answers GET /api/openapi.json with the OpenAPI 3.1 document of the API. It is generated
// from the table of endpoints and the Go types of bodies and answers, so it cannot contradict
// them.
//
// Cost: no RPC.
func (a *API) openAPI(context.Context, *request) (any, error) { return a.document() }

// describe makes the OpenAPI document of a table.
func describe(table []endpoint) ([]byte, error) {
	s := newSchemas()
	problem := schema{"description": "What is wrong and how to fix it.", "content": schema{problemType: schema{"schema": s.of(reflect.TypeFor[Problem]())}}}
	paths := schema{}
	for _, e := range table {
		operations, _ := paths[e.path].(schema)
		if operations == nil {
			operations = schema{}
			paths[e.path] = operations
		}
		operations[strings.ToLower(e.method)] = e.operation(s)
	}
	return json.Marshal(schema{
		"openapi": "3.1.0",
		"info": schema{
			"title": "DroneFleet State Manager", "version": "1",
			"description": "Reads and changes the state of a medical drone fleet. Changes need the role operator and a reason, and may be sent again if their answer was lost.",
		},
		"servers": []schema{{"url": "/"}},
		"paths":   paths,
		"components": schema{
			"schemas":         s.named,
			"responses":       schema{"Problem": problem},
			"securitySchemes": schema{"bearer": schema{"type": "http", "scheme": "bearer", "description": "A token of the OpenID Connect issuer, if the State Manager has one (--oidc-issuer), or an API key."}},
		},
	})
}

// operation describes an endpoint.
func (e endpoint) operation(s *schemas) schema {
	answer := e.answer.shape(s)
	operation := schema{
		"operationId": e.id(), "summary": e.summary, "tags": []string{e.collection()},
		"responses": schema{
			strconv.Itoa(cmp.Or(e.answer.status, http.StatusOK)): schema{"description": "Done.", "content": schema{answer.mediaType: schema{"schema": answer.schema}}},
			"default": schema{"$ref": "#/components/responses/Problem"},
		},
	}
	if e.role != "" {
		operation["security"] = []schema{{"bearer": []string{}}}
		operation["description"] = "Needs the role " + string(e.role) + "."
		if e.requesters {
			operation["description"] = "Needs the role " + string(e.role) + " or requester."
		}
	}
	if parameters := e.describeParameters(); len(parameters) > 0 {
		operation["parameters"] = parameters
	}
	if e.answer.body != nil {
		body := reflect.TypeOf(e.answer.body()).Elem()
		content := schema{"schema": s.closed(body), "example": s.example(body)} // see readJSON
		operation["requestBody"] = schema{"required": true, "content": schema{"application/json": content}}
	}
	return operation
}

func (e endpoint) describeParameters() (list []schema) {
	if strings.Contains(e.path, "{id}") {
		list = append(list, schema{"name": "id", "in": "path", "required": true, "schema": schema{"type": "string"}, "example": exampleIDs[e.collection()]})
	}
	for _, h := range e.headers {
		list = append(list, schema{"name": h.name, "in": "header", "description": h.says, "schema": h.schema, "example": h.example})
	}
	for _, p := range e.parameters {
		if p.name == anyParameter.name {
			continue
		}
		described := schema{"name": p.name, "in": "query", "description": p.says, "schema": p.schema, "example": p.example}
		if p.required {
			described["required"] = true
		}
		list = append(list, described)
	}
	return list
}

// collection is the first part of the path below /api/v1.
func (e endpoint) collection() string {
	path := strings.TrimPrefix(strings.TrimPrefix(e.path, "/api"), "/v1")
	return strings.Split(path, "/")[1]
}

// id is a name that is unique among the operations: postOrdersIdHold.
func (e endpoint) id() string {
	id := strings.ToLower(e.method)
	for part := range strings.FieldsFuncSeq(strings.TrimPrefix(e.path, "/api/v1"), func(r rune) bool { return strings.ContainsRune("/{}.", r) }) {
		id += strings.ToUpper(part[:1]) + part[1:]
	}
	return id
}

// example is an example of a struct, made of those of its fields.
func (s *schemas) example(t reflect.Type) schema {
	s.of(t)
	example := schema{}
	properties := s.named[componentName(t)]["properties"].(schema)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if examples, ok := properties[name].(schema)["examples"].([]any); ok {
			example[name] = examples[0]
		}
	}
	return example
}

// documentEndpoint serves the description of the other endpoints. It says nothing of the
// fleet, so everybody may read it.
func (a *API) documentEndpoint() endpoint {
	return endpoint{
		method: get, path: "/api/openapi.json", summary: "Describe this API (OpenAPI 3.1).",
		answer: writesA("application/json", schema{"type": "object"}, a.openAPI),
	}
}
