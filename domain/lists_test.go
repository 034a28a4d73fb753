package domain_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/domain"
)

// A status, priority or stop that its list forgets would be unknown to whoever
// derives from the list: the wire, the documents, the API's filters.
func TestLists_HoldEveryConstantOfTheirType(t *testing.T) {
	for typeName, list := range map[string][]string{
		"DroneStatus":   texts(domain.DroneStatuses),
		"OrderStatus":   texts(domain.OrderStatuses),
		"MissionStatus": texts(domain.MissionStatuses),
		"WaypointType":  texts(domain.WaypointTypes),
		"Outcome":       texts(domain.Outcomes),
		"CycleOutcome":  texts(domain.CycleOutcomes),
		"Priority":      numbers(domain.Priorities[:]),
	} {
		constants := constantsOf(t, typeName)
		if len(constants) == 0 {
			t.Errorf("no constant of type %s found", typeName)
		}
		for _, c := range constants {
			if !slices.Contains(list, c.value) {
				t.Errorf("the list of type %s lacks %s (%s)", typeName, c.name, c.value)
			}
		}
		if len(list) != len(constants) {
			t.Errorf("the list of type %s has %d entries for %d constants", typeName, len(list), len(constants))
		}
	}
}

type constant struct{ name, value string }

// constantsOf lists the package's constants of a type, by their source.
func constantsOf(t *testing.T, typeName string) (found []constant) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if ident, ok := spec.Type.(*ast.Ident); !ok || ident.Name != typeName {
				return true
			}
			for i, name := range spec.Names {
				literal, ok := spec.Values[i].(*ast.BasicLit)
				if !ok {
					t.Errorf("%s is not a plain literal", name.Name)
					continue
				}
				found = append(found, constant{name.Name, strings.Trim(literal.Value, `"`)})
			}
			return true
		})
	}
	return found
}

func texts[S ~string](list []S) (names []string) {
	for _, s := range list {
		names = append(names, string(s))
	}
	return names
}

func numbers[N ~int](list []N) (names []string) {
	for _, n := range list {
		names = append(names, strconv.Itoa(int(n)))
	}
	return names
}

// Every priority has a name of its own that parses back, and a window.
func TestPriority_HasANameAndAWindow(t *testing.T) {
	for _, p := range domain.Priorities {
		if parsed, ok := domain.ParsePriority(p.String()); !ok || parsed != p {
			t.Errorf("%s parses to %s, %t", p, parsed, ok)
		}
		if p.Window() <= 0 {
			t.Errorf("%s has the window %s", p, p.Window())
		}
	}
	if p, ok := domain.ParsePriority("URGENT"); ok {
		t.Errorf("URGENT parses to %s", p)
	}
	if none := domain.Priority(0); none.String() != "STANDARD" || none.Window() != domain.PriorityStandard.Window() {
		t.Errorf("no priority counts as %s, due in %s", none, none.Window())
	}
	if name := domain.Priority(9).String(); name != fmt.Sprintf("Priority(%d)", 9) {
		t.Errorf("an unknown priority is called %q", name)
	}
}
