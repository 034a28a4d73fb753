package config

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// fleet is a grammar like those of the real commands.
type fleet struct {
	Serve fleetServe `cmd:"" settings:""`
	Dev   fleetDev   `cmd:"" settings:""`
	List  fleetList  `cmd:""`
}

type project struct {
	Project string `env:"GOOGLE_CLOUD_PROJECT" check:"id"`
}

type fleetServe struct {
	project
	Interval time.Duration `default:"10s" check:"over 0s max 1h"`
	Limit    time.Duration `default:"8s" check:"over 0s"`
	Size     int           `default:"40" check:"min 1 max 100"`
	Rate     float64       `default:"1" check:"over 0 max 100"`
	Seed     uint64        `default:"1"`
	Form     string        `enum:"protobuf,json" default:"protobuf"`
	Create   bool
	Depot    []string `check:"id"`
	Peers    []string
	Level    slog.Level `default:"info" accepts:"debug, info, warn or error"`
	Addr     string     `default:"127.0.0.1:8080" check:"listen or off" env:"HTTP_ADDR"`
	Peer     string     `check:"address"`
	Token    string     `secret:"" check:"id"`
	Note     string
	Folder   string `type:"path"`
}

// Check implements Checker.
func (c *fleetServe) Check(r *Refuser) {
	if c.Limit >= c.Interval {
		r.Refuse("limit", "is %s, not below the interval; give less than %s", c.Limit, c.Interval)
	}
}

func (c *fleetServe) Run() error { return nil }

type fleetDev struct {
	Size int     `default:"4" check:"min 1 max 100"`
	Rate float64 `default:"1" check:"over 0"`
}

func (c *fleetDev) Run() error { return nil }

type fleetList struct {
	project
	Reason string `placeholder:"TEXT"`
	Limit  int    `default:"100" check:"min 0"`
	Since  time.Time
	Within time.Duration
	Held   bool
	Order  string `enum:"oldest,newest" default:"oldest"`
	Tag    map[string]string
	Only   []string `placeholder:"ID"`
}

func (c *fleetList) Run() error { return nil }

// parse reads a command line in an environment.
func parse(t *testing.T, environment map[string]string, args ...string) (*fleet, *Command, error) {
	t.Helper()
	g := new(fleet)
	p, err := New(g, kong.Name("fleet"))
	if err != nil {
		t.Fatal(err)
	}
	p.lookup = func(name string) (string, bool) { v, ok := environment[name]; return v, ok }
	c, err := p.Parse(args)
	return g, c, err
}

// write makes a configuration file and returns its name.
func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestParser_PrefersFlagOverVariableOverFileOverDefault(t *testing.T) {
	file := write(t, "size: 2\nserve:\n  size: 3\n  depot: [A, 'B,C']\n  create: true\n")
	for _, c := range []struct {
		name        string
		environment map[string]string
		args        []string
		want        int
	}{
		{"default", nil, []string{"serve"}, 40},
		{"file, for the command", nil, []string{"serve", "--config", file}, 3},
		{"file, for all commands", nil, []string{"dev", "--config", file}, 2},
		{"variable", map[string]string{"DRONEFLEET_SIZE": "4"}, []string{"serve", "--config", file}, 4},
		{"flag", map[string]string{"DRONEFLEET_SIZE": "4"}, []string{"serve", "--config", file, "--size=5"}, 5},
		{"a variable is not read if the flag is given", map[string]string{"DRONEFLEET_SIZE": "x"}, []string{"serve", "--size=5"}, 5},
		{"an empty variable counts as not set", map[string]string{"DRONEFLEET_SIZE": ""}, []string{"serve", "--config", file}, 3},
		{"the file is named by a variable", map[string]string{"CONFIG": file}, []string{"serve"}, 3},
		{"DRONEFLEET_CONFIG comes before CONFIG", map[string]string{"CONFIG": "/nowhere", "DRONEFLEET_CONFIG": file}, []string{"serve"}, 3},
	} {
		g, _, err := parse(t, c.environment, c.args...)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := max(g.Serve.Size*bit(c.args[0] == "serve"), g.Dev.Size*bit(c.args[0] == "dev")); got != c.want {
			t.Errorf("%s: size %d, want %d", c.name, got, c.want)
		}
	}
	g, _, err := parse(t, nil, "serve", "--config="+file)
	if err != nil || !slices.Equal(g.Serve.Depot, []string{"A", "B,C"}) || !g.Serve.Create {
		t.Errorf("file gave depots %q, create %v, %v", g.Serve.Depot, g.Serve.Create, err)
	}
	g, _, err = parse(t, map[string]string{"HTTP_ADDR": "off", "DRONEFLEET_DEPOT": "A,B", "GOOGLE_CLOUD_PROJECT": "p"}, "serve")
	if err != nil || g.Serve.Addr != "off" || !slices.Equal(g.Serve.Depot, []string{"A", "B"}) || g.Serve.Project != "p" {
		t.Errorf("environment gave %+v, %v", g.Serve, err)
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestParser_ReportsAllProblemsWithTheirOrigin(t *testing.T) {
	file := write(t, `siez: 3
serve:
  rate: -1
  form: xml
  depot: [a/b]
  colour: red
  seed: {a: b}
  create:
  create: true
  peer: [x, y]
orders:
  reason: no
once:
  whatever: belongs to another program
`)
	_, _, err := parse(t, map[string]string{"DRONEFLEET_LIMIT": "8", "DRONEFLEET_TOKEN": "se/cret", "DRONEFLEET_LEVEL": "loud"},
		"serve", "--config", file, "--interval=2h", "--size=many", "--addr=8080")
	var problems Problems
	if !errors.As(err, &problems) {
		t.Fatalf("error %v", err)
	}
	want := []string{
		`siez (file FILE:1): unknown setting; did you mean size?`,
		`colour (file FILE:6): unknown setting of serve; delete it, or see "serve --help" for the valid ones`,
		`file FILE:9: "create" is given twice; give it once`,
		`orders (file FILE:11): unknown setting; delete it, or move it below the command it belongs to (serve, dev, emulators, fleet, run, once, link, mqtt)`,
		`interval (flag --interval): "2h0m0s" is out of range; give more than 0s, at most 1h`,
		`limit (variable DRONEFLEET_LIMIT): "8" cannot be read; give a duration, such as 8s or 1m30s, more than 0s`,
		`size (flag --size): "many" cannot be read; give a whole number, 1 or more, at most 100`,
		`rate (file FILE:3): "-1" is out of range; give more than 0, at most 100`,
		`seed (file FILE:7): is a mapping; give one value`,
		`form (file FILE:4): "xml" is not a valid choice; give protobuf or json`,
		`create (file FILE:8): has no value; give one or delete the line`,
		`depot (file FILE:5): "a/b" contains "/", which a document id cannot`,
		`level (variable DRONEFLEET_LEVEL): "loud" cannot be read; give debug, info, warn or error`,
		`addr (flag --addr): "8080" is not an address; give host:port with a port from 0 to 65535, for example 127.0.0.1:8080`,
		`peer (file FILE:10): is a list; give one value`,
		`token (variable DRONEFLEET_TOKEN): the value contains "/", which a document id cannot`,
	}
	var got []string
	for _, p := range problems {
		got = append(got, strings.ReplaceAll(p.Error(), file, "FILE"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(err.Error(), "se/cret") {
		t.Error("the error shows a secret")
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 1+len(want) || lines[0] != "16 settings cannot be used:" {
		t.Errorf("message of %d lines:\n%s", len(lines), err)
	}
}

func TestParser_RejectsMalformedFiles(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"not YAML", "a: [", "is not valid YAML"},
		{"a list", "- a", "is not a mapping"},
		{"two documents", "size: 1\n---\nsize: 2\n", "more than one YAML document"},
		{"a command that is not a mapping", "serve: 3\n", "is not a mapping; give the command's settings below it"},
		{"a key that is not a string", "[a]: 3\n", "a key is not a string"},
		{"a command twice", "serve: {size: 1}\nserve: {size: 2}\n", `"serve" is given twice`},
		{"a setting in two cases", "size: 1\nSize: 2\n", `fleet.yaml:2: "size" and "Size" differ only in case`},
		{"a duplicate below an unknown key", "other: {size: 1, size: 2}\n", `"size" is given twice`},
		{"Latin-1", "project: caf\xe9\n", "line 1, byte offset 12: byte 0xe9 is not UTF-8"},
		{"endless", strings.Repeat("# endless\n", maxFileBytes/10+1), "has more than 1048576 bytes; is it the right file?"},
	} {
		_, _, err := parse(t, nil, "serve", "--config", write(t, c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "fleet.yaml") {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
	_, _, err := parse(t, map[string]string{"CONFIG": "/nowhere/fleet.yaml"}, "serve")
	if err == nil || !strings.Contains(err.Error(), "file /nowhere/fleet.yaml: cannot be read") {
		t.Errorf("missing file: error %v", err)
	}
	for _, text := range []string{"", "# nothing\n", "serve:\n", "null\n"} {
		if _, _, err := parse(t, nil, "serve", "--config", write(t, text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParser_ChecksSettingsAgainstEachOther(t *testing.T) {
	_, _, err := parse(t, nil, "serve", "--limit=20s")
	if err == nil || err.Error() != "limit (flag --limit): is 20s, not below the interval; give less than 10s" {
		t.Errorf("error %v", err)
	}
}

// Flags that are not settings, and programs without commands, are checked alike.
func TestParser_ChecksFlagsThatAreNotSettings(t *testing.T) {
	_, _, err := parse(t, nil, "list", "--limit=-1")
	if err == nil || err.Error() != `limit (flag --limit): "-1" is out of range; give 0 or more` {
		t.Errorf("error %v", err)
	}
	p, err := New(new(bench), kong.Name("bench"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Parse([]string{"--runs=0", "x"}); err == nil || !strings.HasPrefix(err.Error(), "2 settings") ||
		!strings.Contains(err.Error(), "runs (flag --runs): ") || !strings.Contains(err.Error(), "target (argument <target>): is no target") {
		t.Errorf("error %v", err)
	}
	c, err := p.Parse([]string{"--print-config", "home"})
	if err != nil || c.Print(io.Discard) != nil {
		t.Errorf("error %v", err)
	}
}

// kong reads a duration below 1 ns as 0, which may mean "no bound".
func TestParser_RejectsDurationsBelowANanosecond(t *testing.T) {
	const want = "is shorter than a nanosecond; give a duration, such as 8s or 1m30s"
	file := write(t, "limit: 0.5ns\n")
	for name, parsed := range map[string]func() error{
		"flag": func() error { _, _, err := parse(t, nil, "serve", "--limit=0.5ns"); return err },
		"variable": func() error {
			_, _, err := parse(t, map[string]string{"DRONEFLEET_LIMIT": "0.0000000001s"}, "serve")
			return err
		},
		"file":     func() error { _, _, err := parse(t, nil, "serve", "--config="+file); return err },
		"plain":    func() error { _, _, err := parse(t, nil, "list", "--within", "0.9ns"); return err },
		"negative": func() error { _, _, err := parse(t, nil, "list", "--within=-0.9ns"); return err },
	} {
		if err := parsed(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "2 settings") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for _, none := range []string{"0", "0s", "0h0.0ms"} {
		if _, _, err := parse(t, nil, "list", "--within="+none); err != nil {
			t.Errorf("%s: error %v", none, err)
		}
	}
}

func TestParser_SaysWhatAFlagWithoutValueTakes(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"serve --limit", "--limit: has no value; give a duration, such as 8s or 1m30s, more than 0s"},
		{"serve --limit -5s", "--limit: has no value before -5s; give a duration, such as 8s or 1m30s, more than 0s; write --limit=-5s if that is the value"},
		{"serve --limit --create", "--limit: has no value before --create; give a duration, such as 8s or 1m30s, more than 0s; write --limit=--create if that is the value"},
		{"serve --form", "--form: has no value; give protobuf or json"},
		{"serve --depot", "--depot: has no value; give DEPOT,..."},
		{"serve --note", "--note: has no value; give STRING"},
		{"serve --config", "--config: has no value; give FILE"},
		{"list --reason", "--reason: has no value; give TEXT"},
		{"list --reason --held", "--reason: has no value before --held; give TEXT; write --reason=--held if that is the value"},
		{"list --limit", "--limit: has no value; give a whole number, 0 or more"},
		{"list --since", "--since: has no value; give a time, such as 2026-11-21T12:00:30Z"},
		{"list --order", "--order: has no value; give oldest or newest"},
		{"list --tag", "--tag: has no value; give KEY=VALUE;..."},
		{"list --only", "--only: has no value; give ID,..."},
	} {
		_, _, err := parse(t, nil, strings.Fields(c.args)...)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v, want %s", c.args, err, c.want)
		}
	}
	g, _, err := parse(t, nil, "list", "--held", "--only=A,B", "--tag=a=1", "--tag=b=2")
	if err != nil || !g.List.Held || !slices.Equal(g.List.Only, []string{"A", "B"}) || g.List.Tag["b"] != "2" {
		t.Errorf("read %+v, %v", g.List, err)
	}
}

func TestParser_NamesTheUpperBoundOfTheType(t *testing.T) {
	for args, want := range map[string]string{
		"serve --limit=9999999h":                `give a duration, such as 8s or 1m30s, more than 0s, at most 2562047h`,
		"serve --limit=-99999999999999999999ms": `give a duration, such as 8s or 1m30s, more than 0s, at most 2562047h`,
		"list --within=1h9999999h":              `give a duration, such as 8s or 1m30s, at most 2562047h`,
		"serve --seed=18446744073709551616":     `give a whole number, 0 or more, at most 18446744073709551615`,
		"list --limit=9223372036854775808":      `give a whole number, 0 or more, at most 9223372036854775807`,
		"serve --size=99999999999999999999":     `give a whole number, 1 or more, at most 100`,
		"dev --rate=1e999":                      `give a number, more than 0`,
	} {
		_, _, err := parse(t, nil, strings.Fields(args)...)
		if err == nil || !strings.HasSuffix(err.Error(), "is out of range; "+want) {
			t.Errorf("%s: error %v, want %s", args, err, want)
		}
	}
}

// A setting that seems to be missing may be in the file.
func TestParser_SkipsCrossChecksIfTheFileIsUnreadable(t *testing.T) {
	for name, file := range map[string]string{
		"not there": filepath.Join(t.TempDir(), "fleet.yaml"),
		"a folder":  t.TempDir(),
		"no YAML":   write(t, "interval: 20s\n\tlimit: 12s\n"),
		"no keys":   write(t, "interval 20s\n"),
	} {
		_, _, err := parse(t, nil, "serve", "--config", file, "--limit=15s", "--size=0")
		var problems Problems
		if !errors.As(err, &problems) || len(problems) != 2 || problems[0].Setting != "" || problems[1].Setting != "size" {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// kong reads an empty path as the working directory.
func TestParser_KeepsAnEmptyPathEmpty(t *testing.T) {
	file := write(t, "serve:\n  folder: ''\n")
	for _, args := range [][]string{{"serve"}, {"serve", "--folder="}, {"serve", "--folder", ""}, {"serve", "--config", file}} {
		g, _, err := parse(t, nil, args...)
		if err != nil || g.Serve.Folder != "" {
			t.Errorf("%v: folder %q, %v", args, g.Serve.Folder, err)
		}
	}
	there, err := filepath.Abs("there")
	if err != nil {
		t.Fatal(err)
	}
	g, _, err := parse(t, map[string]string{"DRONEFLEET_FOLDER": "there"}, "serve")
	if err != nil || g.Serve.Folder != there {
		t.Errorf("folder %q, %v", g.Serve.Folder, err)
	}
}

// Replacing invalid bytes, as kong does, would name another file or another order.
func TestParser_RejectsInvalidUTF8(t *testing.T) {
	for _, c := range []struct {
		environment map[string]string
		args        []string
		want        string
	}{
		{nil, []string{"list", "--reason=caf\xe9"}, `argument 2, "--reason=caf\xe9", is not valid UTF-8`},
		{nil, []string{"list", "--reason", "caf\xe9"}, `argument 3, "caf\xe9", is not valid UTF-8`},
		{map[string]string{"DRONEFLEET_NOTE": "caf\xe9"}, []string{"serve"}, `note (variable DRONEFLEET_NOTE): the value is not valid UTF-8`},
	} {
		_, _, err := parse(t, c.environment, c.args...)
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: error %v, want %s", c.args, err, c.want)
		}
	}
	if _, _, err := parse(t, map[string]string{"DRONEFLEET_NOTE": "caf\xe9"}, "serve", "--note=café"); err != nil {
		t.Error(err)
	}
}

// bench is a grammar without commands.
type bench struct {
	Runs   int    `default:"1" check:"min 1"`
	Target string `arg:""`
}

// Check implements Checker.
func (b *bench) Check(r *Refuser) {
	if b.Target != "home" {
		r.Refuse("target", "is no target")
	}
}

func TestParser_FollowsAliasesInLists(t *testing.T) {
	f, _, err := parse(t, nil, "serve", "--config", write(t, "serve:\n  note: &depot A\n  depot: [*depot, B]\n"))
	if err != nil || !slices.Equal(f.Serve.Depot, []string{"A", "B"}) {
		t.Errorf("depots %q, %v", f.Serve.Depot, err)
	}
}

// An empty entry would be looked up as an id.
func TestParser_RejectsEmptyListEntries(t *testing.T) {
	file := write(t, "serve:\n  depot: [A, '']\n  peers: ['']\n")
	for _, c := range []struct {
		environment map[string]string
		args        []string
		want        string
	}{
		{map[string]string{"DRONEFLEET_DEPOT": ","}, nil, "depot (variable DRONEFLEET_DEPOT)"},
		{map[string]string{"DRONEFLEET_DEPOT": "A,,B"}, nil, "depot (variable DRONEFLEET_DEPOT)"},
		{nil, []string{"--depot=,A"}, "depot (flag --depot)"},
		{nil, []string{"--config", file, "--peers=A"}, "depot (file " + file + ":2)"},
		{nil, []string{"--config", file, "--depot=A"}, "peers (file " + file + ":3)"},
	} {
		_, _, err := parse(t, c.environment, append([]string{"serve"}, c.args...)...)
		if want := c.want + ": the list has an empty entry; delete it or its comma"; err == nil || err.Error() != want {
			t.Errorf("%v, %v: error %v, want %s", c.environment, c.args, err, want)
		}
	}
	for _, none := range []string{"", "A,"} {
		if _, _, err := parse(t, nil, "serve", "--depot="+none); err != nil {
			t.Errorf("%q: %v", none, err)
		}
	}
}

func TestParser_WarnsOfMisspelledVariables(t *testing.T) {
	p, err := New(new(fleet), kong.Name("fleet"))
	if err != nil {
		t.Fatal(err)
	}
	p.environ = func() []string {
		return []string{"DRONEFLEET_SIZZE=3", "DRONEFLEET_INTERVALL=5s", "DRONEFLEET_PROJETC=", "DRONEFLEET_SIZE=3", "DRONEFLEET_REPORT=f",
			"DRONEFLEET_API_PORT_8080_TCP=tcp://10.0.0.1:8080", "DRONEFLEET_=1", "SIEZ=3", "HTTP_ADR=off", "dronefleet_siez=3"}
	}
	want := []string{
		"variable DRONEFLEET_INTERVALL is not a setting and is ignored; did you mean DRONEFLEET_INTERVAL?",
		"variable DRONEFLEET_SIZZE is not a setting and is ignored; did you mean DRONEFLEET_SIZE?",
	}
	if diff := cmp.Diff(want, p.Misspelled()); diff != "" {
		t.Error(diff)
	}
}

func TestCommand_PrintsAFileThatGivesTheSameSettings(t *testing.T) {
	g, c, err := parse(t, map[string]string{"HTTP_ADDR": "127.0.0.1:99", "DRONEFLEET_TOKEN": "mellon"},
		"serve", "--depot=A", "--depot=B", "--seed=18446744073709551615", "--print-config")
	if err != nil || !c.Prints {
		t.Fatal(c, err)
	}
	var out strings.Builder
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# The settings of \"fleet serve\".\n", "addr: 127.0.0.1:99 # variable HTTP_ADDR\n", "interval: 10s # default\n",
		"depot: [A, B] # flag --depot\n", "level: INFO # default\n", "# token: hidden, from variable DRONEFLEET_TOKEN\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed %s, want %q", out.String(), want)
		}
	}
	if strings.Contains(out.String(), "mellon") {
		t.Error("a secret was printed")
	}
	again, _, err := parse(t, nil, "serve", "--config", write(t, out.String()))
	if err != nil {
		t.Fatal(err)
	}
	g.Serve.Token = "" // which is no part of it
	if diff := cmp.Diff(g.Serve, again.Serve, cmp.AllowUnexported(fleetServe{}, project{}), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// A password in a URL is secret in any setting.
func TestParser_HidesPasswordsInURLs(t *testing.T) {
	_, c, err := parse(t, nil, "serve", "--project=https://ann:mellon@example.org")
	if err == nil || strings.Contains(err.Error(), "mellon") || !strings.Contains(err.Error(), "ann:xxxxx@") {
		t.Errorf("%v, %v", c, err)
	}
	_, c, err = parse(t, nil, "serve", "--peer=", "--note=https://ann:mellon@example.org")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := c.Print(&out); err != nil || strings.Contains(out.String(), "mellon") || !strings.Contains(out.String(), "ann:xxxxx@") {
		t.Errorf("%s, %v", out.String(), err)
	}
}

func TestParser_LeavesCommandLineErrorsToKong(t *testing.T) {
	for _, args := range [][]string{{"fly"}, {"serve", "--interval"}, {"serve", "--interval", "--create"}, {"serve", "--reason=x"}} {
		_, _, err := parse(t, nil, args...)
		var problems Problems
		if err == nil || errors.As(err, &problems) {
			t.Errorf("%v: error %v", args, err)
		}
	}
	// A flag that is not a setting has no variable.
	g, _, err := parse(t, map[string]string{"DRONEFLEET_REASON": "x", "DRONEFLEET_PROJECT": "p"}, "list")
	if err != nil || g.List.Reason != "" || g.List.Project != "p" {
		t.Errorf("%+v, %v", g.List, err)
	}
}

func TestParser_SaysWhatFlagsThatAreNotSettingsTake(t *testing.T) {
	for args, want := range map[string]string{
		"--limit=x":         `limit (flag --limit): "x" cannot be read; give a whole number, 0 or more`,
		"--since=yesterday": `since (flag --since): "yesterday" cannot be read; give a time, such as 2026-11-21T12:00:30Z`,
		"--within=5":        `within (flag --within): "5" cannot be read; give a duration, such as 8s or 1m30s`,
		"--limit --held":    `--limit: has no value before --held; give a whole number, 0 or more; write --limit=--held if that is the value`,
	} {
		_, _, err := parse(t, nil, append([]string{"list"}, strings.Fields(args)...)...)
		if err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", args, err, want)
		}
	}
	g, _, err := parse(t, nil, "list", "--limit", "5", "--since=2026-11-21t12:00:30z", "--within=1m", "--held")
	if l := g.List; err != nil || l.Limit != 5 || l.Since.Unix() != 1795262430 || l.Within != time.Minute || !l.Held {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestParser_PrintsATableOfEverySetting(t *testing.T) {
	var out strings.Builder
	p, err := New(new(fleet), kong.Name("fleet"), kong.Writers(&out, &out), kong.Exit(func(int) { panic("ended") }))
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if r := recover(); r != "ended" {
				t.Errorf("not ended: %v", r)
			}
		}()
		_, _ = p.Parse([]string{"--print-settings"}) // does not return
	}()
	for _, want := range []string{
		"| `project` | serve |  | an id of 1 to 128 bytes | `DRONEFLEET_PROJECT`, `GOOGLE_CLOUD_PROJECT` |",
		"| `size` | serve, dev | serve: `40`, dev: `4` | a whole number, 1 or more, at most 100 | `DRONEFLEET_SIZE` |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("table %s lacks %q", out.String(), want)
		}
	}
}

func TestNew_RejectsMalformedRules(t *testing.T) {
	for _, g := range []any{
		&struct {
			Run struct {
				Size int `check:"about 7"`
			} `cmd:"" settings:""`
		}{},
		&struct {
			Run struct {
				Size int `check:"min"`
			} `cmd:"" settings:""`
		}{},
		&struct {
			Run struct {
				Size int `check:"min few"`
			} `cmd:"" settings:""`
		}{},
	} {
		if _, err := New(g); err == nil || !strings.Contains(err.Error(), "--size") {
			t.Errorf("error %v", err)
		}
	}
	_, err := New(&struct {
		Fly struct{} `cmd:"" settings:""`
	}{})
	if err == nil || !strings.Contains(err.Error(), "config.Commands") {
		t.Errorf("a command that no file can name: error %v", err)
	}
}
