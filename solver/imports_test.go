package solver_test

import (
	"os/exec"
	"strings"
	"testing"
)

// What serves a benchmark or a test only stays out of the product.
func TestSolver_LinksNoBenchmarkOrTestPackage(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range strings.Fields(string(out)) {
		for _, kept := range []string{"/internal/fleetmin", "/lilim", "/pdptest"} {
			if strings.HasSuffix(dep, "solver"+kept) || strings.HasSuffix(dep, "solver/internal/pdp"+kept) {
				t.Errorf("solver depends on %s", dep)
			}
		}
	}
}
