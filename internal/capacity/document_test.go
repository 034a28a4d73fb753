package capacity_test

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/internal/capacity"
)

var update = flag.Bool("update", false, "write the generated part of docs/capacity.md anew")

const (
	document = "../../docs/capacity.md"
	begin    = "<!-- begin generated -->\n"
	end      = "<!-- end generated -->\n"
)

// TestDocument fails when the tables of docs/capacity.md are not those of the
// formula. Run it with -update to write them anew.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := regenerate(string(text))
	switch {
	case err != nil:
		t.Fatal(err)
	case fresh == string(text):
	case *update:
		if err := os.WriteFile(document, []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is stale; run go test ./internal/capacity -run TestDocument -update", document)
	}
}

func regenerate(text string) (string, error) {
	before, rest, found := strings.Cut(text, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", errors.New("the document lacks the marks of its generated part")
	}
	return before + begin + "\n" + capacity.Tables() + "\n" + end + after, nil
}
