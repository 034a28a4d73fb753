package httpapi_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/testkit/docgen"
)

var update = flag.Bool("update", false, "rewrite the generated table of docs/operate.md")

// The table of docs/operate.md lists every endpoint. Run with -update to rewrite it.
func TestEndpoints_DocumentIsCurrent(t *testing.T) {
	var table strings.Builder
	table.WriteString("| request | role | parameters |\n|-|-|-|\n")
	for _, e := range httpapi.New(httpapi.Config{}).Endpoints() {
		parameters := ""
		if len(e.Parameters) > 0 {
			parameters = "`" + strings.Join(e.Parameters, "`, `") + "`"
		}
		fmt.Fprintf(&table, "| `%s %s` | %s | %s |\n", e.Method, e.Path, e.Role, parameters)
	}
	if err := docgen.Hold("../docs/operate.md", map[string]string{"endpoints": table.String()}, *update,
		"go test ./httpapi -run TestEndpoints_DocumentIsCurrent -update"); err != nil {
		t.Error(err)
	}
}
