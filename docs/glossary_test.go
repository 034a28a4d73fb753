package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// oneMeaning is a word of the glossary that has meant other things, too.
type oneMeaning struct {
	forms *regexp.Regexp // of the word, within a name in snake case
	in    []string       // folders and files whose names may have it
	use   string         // what the glossary calls the rest
}

var oneMeanings = []oneMeaning{
	{forms: word("settles?|settled|settling|settlements?|settlers?|unsettled"),
		in:  []string{"adapters/pubsubio", "app/manager", "bench", "internal/meter", "sim", "*_test.go"},
		use: "settle only for ack and nack; a dead letter is resolved"},
	{forms: word("sightings?"),
		in:  []string{"domain", "policy", "adapters/entity", "adapters/firestoretx", "*_test.go"},
		use: "sighting only for what a report says about one stop"},
	{forms: word("faults?|faulty"),
		in:  []string{"domain", "policy", "adapters/entity", "sim", "*_test.go"},
		use: "fault only for what a drone reports or a test injects; others: violation, outage, obstacle"},
	{forms: regexp.MustCompile("(^|_)reports?$"),
		in: []string{"domain", "policy", "adapters", "app/gateway", "app/live", "app/manager", "bench/telemetry", "internal/meter", "*_test.go",
			"sim/capacity", "sim/conform", "sim/explore", "sim/faultsim", "sim/fleetsim", "sim/linksim", "bench/link", "sim/plannersim", "sim/invariant/history.go", "sim/devrun/fleetsummary.go",
			"httpapi/console/latency"},
		use: "report only for telemetry; others: summary, result"},
	{forms: regexp.MustCompile("^(.*_)?(unassigned)(_.*)?$"), use: "unserved"},
	{forms: regexp.MustCompile("^(for_|no_)?positions?$|^(.*[^e]_)?positioning$"),
		in:  []string{"adapters", "app/live", "app/placefile", "app/planview", "domain", "policy", "httpapi", "sim/fleetsim", "sim/faultsim", "cmd/optimizer"},
		use: "position only for a point; drones wait at an advance position"},
	{forms: word("places?|unplaced?"),
		in: []string{"domain", "policy/place.go", "adapters/entity", "adapters/firestoretx", "app/dispatch", "app/operator", "app/placefile", "app/manager",
			"cmd/dronefleet", "cmd/statemanager", "httpapi", "sim/capacity", "sim/fleetsim", "sim/devrun"},
		use: "place only for a depot or a warehouse; others: point, index, source"},
}

// exemptNames break a rule for a reason.
var exemptNames = map[string]string{
	"cmd/dronefleet/dev.go: Report":   "the flag --report, which scripts use",
	"cmd/dronefleet/fleet.go: Report": "the flag --report, which scripts use",
	"cmd/dronefleet/dev.go: Position": "the flag --position, which scripts use",
	"bench/dynamic/main.go: Position": "the flag --position, as in the optimizer",
	"bench/dynamic/main.go: Place":    "the flag --place, which names a city",
	"bench/decisions/main.go: report": "a telemetry report",
}

// word matches a name in snake case with a word of these forms.
func word(forms string) *regexp.Regexp { return regexp.MustCompile("(^|_)(" + forms + ")(_|$)") }

// ownWords are folders with a vocabulary of their own: libraries and their tests.
var ownWords = []string{"lock", "solver", "emulator", "conformance", "tools", ".ci", "examples"}

var camelHump = regexp.MustCompile("([a-z0-9])([A-Z])")

// misused says how a name in a file breaks the glossary; "" if it does not.
func misused(file, name string) string {
	snake := strings.ToLower(camelHump.ReplaceAllString(name, "${1}_${2}"))
	for _, w := range oneMeanings {
		allowed := slices.ContainsFunc(w.in, func(in string) bool {
			matches, _ := path.Match(in, path.Base(file))
			return matches || file == in || strings.HasPrefix(file, in+"/")
		})
		if !allowed && w.forms.MatchString(snake) {
			return fmt.Sprintf("%s: %s: %s", file, name, w.use)
		}
	}
	return ""
}

// declaredNames lists the names that a file declares, and the file's own.
func declaredNames(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{strings.TrimSuffix(filepath.Base(file), ".go")}
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			names = append(names, id.Name)
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if !strings.HasPrefix(n.Name.Name, "Test") { // a sentence
				add(n.Name)
			}
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.ValueSpec:
			add(n.Names...)
		case *ast.Field:
			add(n.Names...)
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if id, is := left.(*ast.Ident); is && n.Tok == token.DEFINE {
					add(id)
				}
			}
		}
		return true
	})
	return names
}

// Names in the code follow the glossary.
func TestGlossary_GivesEachWordOneMeaning(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file := strings.TrimPrefix(filepath.ToSlash(name), "../")
		switch {
		case entry.IsDir() && name != ".." && slices.Contains(append(ownWords, "node_modules", ".git", "testdata"), file):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, ".pb.go"):
			return nil
		}
		files++
		for _, id := range declaredNames(t, name) {
			if complaint := misused(file, id); complaint != "" && exemptNames[file+": "+id] == "" {
				t.Error(complaint)
			}
		}
		return nil
	})
	if err != nil || files < 300 {
		t.Errorf("%d files, %v", files, err)
	}
}

// The check finds what it is for.
func TestGlossary_FindsOtherMeanings(t *testing.T) {
	for _, row := range []struct {
		file, name string
		found      bool
	}{
		{"app/operator/deadletters.go", "settleDeadLetters", true},
		{"app/operator/deadletters.go", "resolveDeadLetters", false},
		{"adapters/pubsubio/settle.go", "settler", false},
		{"app/live/book.go", "Sighting", true},
		{"app/planner/assign.go", "fault", true},
		{"app/planner/assign.go", "withDefaults", false},
		{"policy/bound.go", "isFault", false},
		{"internal/config/command.go", "Report", true},
		{"sim/devrun/summary.go", "PriorityReport", true},
		{"sim/devrun/summary.go", "reported", false},
		{"adapters/pubsubio/telemetry.go", "droneReports", false},
		{"app/planner/advance.go", "positions", true},
		{"app/planner/advance.go", "advancePositions", false},
		{"app/dispatch/config.go", "NoPositions", true},
		{"app/planner/amend.go", "unassigned", true},
		{"app/planner/amend.go", "unserved", false},
		{"app/live/book.go", "place", true},
		{"app/live/book.go", "replace", false},
		{"domain/place.go", "PlaceKind", false},
	} {
		if got := misused(row.file, row.name) != ""; got != row.found {
			t.Errorf("%s in %s: found is %t", row.name, row.file, got)
		}
	}
}
