package capacity_test

import (
	"flag"
	"testing"

	"github.com/dronefleet/dronefleet/docs/capacity"
	"github.com/dronefleet/dronefleet/testkit/docgen"
)

var update = flag.Bool("update", false, "write the generated part of docs/capacity.md anew")

// TestDocument fails when the tables of docs/capacity.md are not those of the
// formula. Run it with -update to write them anew.
func TestDocument(t *testing.T) {
	sections := map[string]string{"tables": capacity.Tables(), "rising": capacity.RisingTable()}
	if err := docgen.Hold("../../docs/capacity.md", sections, *update, "go test ./docs/capacity -run TestDocument -update"); err != nil {
		t.Error(err)
	}
}
