package firestoreemu

import (
	"os"
	"regexp"
	"testing"
)

// E-GO-07: the three genproto modules have the same version. By default the Go client
// requires different ones, which contain the same packages.
func TestModules_GenprotoHasOneVersion(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\s*google\.golang\.org/(genproto\S*) (v\S+)`).FindAllStringSubmatch(string(text), -1) {
		versions[m[1]] = m[2]
	}
	want := versions["genproto"]
	if want == "" || versions["genproto/googleapis/api"] != want || versions["genproto/googleapis/rpc"] != want {
		t.Errorf("go.mod has %v, want one version of genproto, genproto/googleapis/api and genproto/googleapis/rpc", versions)
	}
}
