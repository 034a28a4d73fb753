package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// Firestore refuses to read a time of more than an hour ago that is not a whole minute.
// F-OPT-05
func TestSolve_ReadsWholeMinutesBeyondTheHour(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 30, 0, time.UTC)
	for _, c := range []struct{ at, want string }{
		{"2026-11-21T12:00:29.123456Z", "2026-11-21T12:00:29.123456Z"},
		{"2026-11-21T11:01:30.5Z", "2026-11-21T11:01:30.5Z"},
		{"2026-11-21T11:01:29.5Z", "2026-11-21T11:01:00Z"}, // an hour ago by the time it is read
		{"2026-11-21T11:00:00Z", "2026-11-21T11:00:00Z"},
		{"2026-11-21T09:17:59.999Z", "2026-11-21T09:17:00Z"},
		{"2026-11-20T17:47:15+05:30", "2026-11-20T17:47:00+05:30"},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := readable(at, now).Format(time.RFC3339Nano); got != c.want {
			t.Errorf("%s is read at %s, want %s", c.at, got, c.want)
		}
	}
}

// parse reads the arguments of "optimizer solve".
func parse(t *testing.T, args ...string) (*solveCommand, error) {
	t.Helper()
	g := new(grammar)
	parser, err := config.New(g)
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(append([]string{"solve"}, args...))
	return &g.Solve, err
}

// F-OPT-05: a wrong command line is refused before anything is read. A negative number of
// steps does not mean "no bound".
func TestSolve_RefusesAWrongCommandLine(t *testing.T) {
	for _, name := range []string{"GOOGLE_CLOUD_PROJECT", connect.FirestoreHost, connect.PubSubHost} {
		t.Setenv(name, "")
	}
	for line, want := range map[string]string{
		"":                                 "--in=FILE or --at=TIME",
		"--in=":                            "in (flag --in): is empty",
		"--in=- --at=2026-11-21T12:00:00Z": "can't be used together",
		"--at=2026-11-21T12:00:00Z":        "no Google Cloud project",
		"--at=yesterday":                   `"yesterday" cannot be read; give a time, such as 2026-11-21T12:00:30Z`,
		"--at=0001-01-01T00:00:00Z --project=fleet": "at (flag --at): is before 1970; give a time within the last hour",
		"--at=0000-02-28T00:00:00Z --project=fleet": "at (flag --at): is before 1970; give a time within the last hour",
		"--in=- --iterations=-1":                    `iterations (flag --iterations): "-1" is out of range; give 0 or more`,
		"--in=- --solve-limit=-1s":                  `solve-limit (flag --solve-limit): "-1s" is out of range`,
		"--in=- --depot=D1":                         "depot (flag --depot): requires --at",
		"--in=- --seed=-1":                          "give a whole number, 0 or more",
		"--in=- --out=- --geojson=-":                "geojson (flag --geojson): is standard output, as --out is",
	} {
		if _, err := parse(t, strings.Fields(line)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", line, err, want)
		}
	}
}

// F-OPT-05: input that is not a snapshot is refused, not planned as an empty fleet.
func TestSolve_RefusesInputThatIsNotASnapshot(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "no fields": "{}", "another message": `{"id": "O1"}`} {
		file := filepath.Join(t.TempDir(), "snapshot")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := &solveCommand{In: file, SolveLimit: time.Second}
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), file+" is not a snapshot") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// F-OPT-05: the error for input that is neither a JSON object nor protobuf names the
// formats of a snapshot.
func TestSolve_NamesTheFormatsOfASnapshot(t *testing.T) {
	for name, text := range map[string]string{
		"array": ` [{"depot": {"id": "D1"}}]`, "half an array": `[{"depot"`, "string": `"D1"`, "number": "12", "null": "null", "not JSON": "depot: D1\n",
	} {
		file := filepath.Join(t.TempDir(), "snapshot")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := &solveCommand{In: file, SolveLimit: time.Second}
		want := file + ": undecodable snapshot: neither a JSON object {…} nor protobuf of a dronefleet.v1.OptimizationSnapshot"
		if err := c.Run(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// F-OPT-05: outputs that would overwrite each other or the snapshot, under whatever name,
// are refused before anything is read.
func TestSolve_RefusesOneFileForTwo(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, err := range []error{
		os.WriteFile("snapshot.json", []byte("{"), 0o600), // would be refused as well, once read
		os.Mkdir("folder", 0o700),
		os.Symlink("folder", "link"),
		os.Symlink("snapshot.json", "alias.json"),
		os.Link("snapshot.json", "twin.json"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ in, out, geo, want string }{
		{"snapshot.json", "plan.json", "plan.json", "--geojson): is the file of --out, plan.json;"},
		{"snapshot.json", "plan.json", "./folder/../plan.json", "--geojson): is the file of --out, plan.json;"},
		{"snapshot.json", "plan.json", filepath.Join(dir, "plan.json"), "--geojson): is the file of --out, plan.json;"},
		{"snapshot.json", "folder/plan.json", "link/plan.json", "--geojson): is the file of --out, folder/plan.json;"},
		{"snapshot.json", "./snapshot.json", "", "--out): would overwrite the snapshot, snapshot.json;"},
		{"snapshot.json", "twin.json", "", "--out): would overwrite the snapshot, snapshot.json;"},
		{"snapshot.json", "plan.json", "alias.json", "--geojson): would overwrite the snapshot, snapshot.json;"},
		{"snapshot.json", "plan.json", "folder/plan.json", ""},
		{"snapshot.json", os.DevNull, os.DevNull, ""},
		{"-", "-", "", ""}, // standard input and a file
	} {
		_, err := parse(t, "--in="+c.in, "--out="+c.out, "--geojson="+c.geo)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("--in %s --out %s --geojson %s: error %v, want %q", c.in, c.out, c.geo, err, c.want)
		}
	}
}

// F-OPT-05: JSON after a byte order mark, as some editors write it, is read as JSON.
func TestSolve_ReadsJSONAfterAByteOrderMark(t *testing.T) {
	file := filepath.Join(t.TempDir(), "snapshot")
	if err := os.WriteFile(file, []byte("\ufeff"+`{"depot": {"id": "D1", "position": {"lat": 5.6, "lon": -0.2}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &solveCommand{In: file, SolveLimit: time.Second}
	if snap, err := c.snapshotFromFile(t.Context()); err != nil || snap.Depot.ID != "D1" {
		t.Errorf("depot %q, error %v", snap.Depot.ID, err)
	}
}

// F-OPT-05: without --depot the error says what to do: add a depot, or choose one.
func TestSolve_SaysWhatToDoAboutTheDepot(t *testing.T) {
	hosts := emutest.Hosts(t)
	for _, name := range []string{connect.FirestoreHost, connect.PubSubHost} {
		t.Setenv(name, os.Getenv(name)) // connecting unsets both, for the process
	}
	store := firestoretx.New(emutest.Connect(t, hosts).Firestore, firestoretx.Config{})
	c := &solveCommand{
		Connection: cli.Connection{Project: hosts.Project, FirestoreHost: hosts.FirestoreHost, PubsubHost: hosts.PubSubHost},
		At:         time.Now(), SolveLimit: time.Second,
	}
	for _, step := range []struct {
		depots []domain.Depot
		want   string
	}{
		{nil, "no depots; add one with \"statemanager depots apply\""},
		{[]domain.Depot{{ID: "D1"}, {ID: "D2"}}, "2 depots; name one with --depot"},
	} {
		if err := store.Setup(t.Context(), step.depots, nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), step.want) {
			t.Errorf("%d depots: error %v, want %q", len(step.depots), err, step.want)
		}
	}
}

// F-OPT-05: the error for a time that cannot be read says which times can.
func TestSolve_SaysWhichTimesCanBeRead(t *testing.T) {
	hosts := emutest.Hosts(t)
	for _, name := range []string{connect.FirestoreHost, connect.PubSubHost} {
		t.Setenv(name, os.Getenv(name)) // connecting unsets both, for the process
	}
	store := firestoretx.New(emutest.Connect(t, hosts).Firestore, firestoretx.Config{})
	before := time.Now().Add(-10 * time.Minute)
	if err := store.Setup(t.Context(), []domain.Depot{{ID: "D1"}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]time.Time{
		"too old": time.Now().AddDate(-1, 0, 0), "in the future": time.Now().Add(time.Hour), "before the depot": before,
	} {
		c := &solveCommand{
			Connection: cli.Connection{Project: hosts.Project, FirestoreHost: hosts.FirestoreHost, PubsubHost: hosts.PubSubHost},
			At:         at, SolveLimit: time.Second,
		}
		err := c.Run(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), "--at: ") || !strings.Contains(err.Error(), "; give a ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// F-OPT-05: a malformed depot document does not prevent planning for another depot.
func TestSolve_PlansDespiteAMalformedDepot(t *testing.T) {
	hosts := emutest.Hosts(t)
	clients := emutest.Connect(t, hosts)
	store := firestoretx.New(clients.Firestore, firestoretx.Config{})
	if err := store.Setup(t.Context(), []domain.Depot{{ID: "DEPOT", Position: domain.Position{Lat: 48.85, Lon: 2.35}}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	written, err := clients.Firestore.Doc("depots/BROKEN").Set(t.Context(), map[string]any{"position": "nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	for _, variable := range []string{connect.FirestoreHost, connect.PubSubHost} {
		t.Setenv(variable, "") // connecting unsets it for the process
	}
	c := solveCommand{
		Connection: cli.Connection{Project: hosts.Project, Database: hosts.Database, FirestoreHost: hosts.FirestoreHost, PubsubHost: hosts.PubSubHost},
		At:         written.UpdateTime,
	}
	if snap, _, err := c.snapshot(t.Context()); err != nil || snap.Depot.ID != "DEPOT" {
		t.Errorf("snapshot of depot %q, %v", snap.Depot.ID, err)
	}
}

// F-OPT-05: "-" is standard output, which then holds only the requested output.
func TestSolve_WritesToStandardOutput(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	snapshot := `{"depot": {"id": "D1", "position": {"lat": 5.6, "lon": -0.2}}, "readTime": "2026-11-21T12:00:00Z"}`
	if err := os.WriteFile("snapshot.json", []byte(snapshot), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	for key, c := range map[string]*solveCommand{"objective": {Out: "-"}, "features": {GeoJSON: "-"}} {
		out, err := os.Create("printed")
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		os.Stdout = out
		c.In, c.SolveLimit, c.Strategy = "snapshot.json", time.Second, "greedy"
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile("printed")
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := json.Unmarshal(text, &object); err != nil || object[key] == nil {
			t.Errorf("%s: %v: %s", key, err, text)
		}
	}
	if _, err := os.Stat("-"); err == nil {
		t.Error("a file is called -")
	}
}

// F-OPT-05: an output that cannot be written is refused before the search. A former file
// stays until there is a plan to replace it.
func TestSolve_ChecksItsOutputsBeforeTheSearch(t *testing.T) {
	dir := t.TempDir()
	snapshot, kept := filepath.Join(dir, "snapshot.json"), filepath.Join(dir, "plan.json")
	for name, text := range map[string]string{
		snapshot: `{"depot": {"id": "D1", "position": {"lat": 5.6, "lon": -0.2}}, "readTime": "2026-11-21T12:00:00Z"}`,
		kept:     strings.Repeat("the plan before ", 1000),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nowhere := filepath.Join(dir, "no", "such", "folder")
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	printed, err := os.Create(filepath.Join(dir, "printed"))
	if err != nil {
		t.Fatal(err)
	}
	defer printed.Close()
	os.Stdout = printed // the plan's table, if there is a plan
	for flag, c := range map[string]*solveCommand{"--out: ": {Out: nowhere}, "--geojson: ": {Out: kept, GeoJSON: nowhere}} {
		c.In, c.SolveLimit, c.Strategy = snapshot, time.Second, "greedy"
		if err := c.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), flag) {
			t.Errorf("error %v, want %s", err, flag)
		}
	}
	if info, err := printed.Stat(); err != nil || info.Size() > 0 {
		t.Errorf("a plan was printed, %v", err)
	}
	if text, err := os.ReadFile(kept); err != nil || !strings.HasPrefix(string(text), "the plan before") {
		t.Errorf("kept %.20s, %v", text, err)
	}
	c := &solveCommand{In: snapshot, Out: kept, SolveLimit: time.Second, Strategy: "greedy"}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var plan map[string]any
	if text, err := os.ReadFile(kept); err != nil || json.Unmarshal(text, &plan) != nil {
		t.Errorf("%v: %.80s", err, text)
	}
}

// F-OPT-05: a solve that fails or is interrupted leaves no file without a plan.
func TestSolve_LeavesNoFileWithoutAPlan(t *testing.T) {
	dir := t.TempDir()
	in, out, geoJSON := filepath.Join(dir, "snapshot.json"), filepath.Join(dir, "plan.json"), filepath.Join(dir, "plan.geojson")
	position := `{"lat": 5.6, "lon": -0.2}`
	var orders []string // enough to search until the limit
	for i := range 60 {
		orders = append(orders, fmt.Sprintf(`{"id": "O%d", "productType": "BLOOD", "pickupLocation": %s, "deliveryLocation": {"lat": 5.6%d, "lon": -0.2}}`, i, position, i))
	}
	snapshot := fmt.Sprintf(`{"depot": {"id": "D1", "position": %s}, "drones": [{"id": "1", "position": %s, "batteryPercentage": 100}], "orders": [%s]}`,
		position, position, strings.Join(orders, ","))
	if err := os.WriteFile(in, []byte(snapshot), 0o600); err != nil {
		t.Fatal(err)
	}
	nothingLeft := func() {
		t.Helper()
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
			t.Errorf("in the folder of the snapshot are %v, %v", files, err)
		}
	}
	failing := &solveCommand{In: in, Out: out, GeoJSON: filepath.Join(dir, "no", "folder"), SolveLimit: time.Second, Strategy: "greedy"}
	if err := failing.Run(t.Context()); err == nil {
		t.Fatal("no error without a folder")
	}
	nothingLeft()

	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- (&solveCommand{In: in, Out: out, GeoJSON: geoJSON, SolveLimit: time.Hour, Strategy: "sisr"}).Run(ctx)
	}()
	emutest.Eventually(t, "the search has opened its files", func() error {
		_, err := os.Stat(geoJSON)
		return err
	})
	interrupt()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v after an interrupt", err)
	}
	nothingLeft()
}

// stops plans a snapshot of one drone and one order with the given times and returns when
// the drone reaches its stops.
func stops(t *testing.T, times string, service time.Duration) []time.Time {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "snapshot.json"), filepath.Join(dir, "plan.json")
	position := `{"lat": 5.6, "lon": -0.2}`
	snapshot := fmt.Sprintf(`{"depot": {"id": "D1", "position": %[1]s}, "drones": [{"id": "1", "position": %[1]s, "batteryPercentage": 100}],
		"orders": [{"id": "O1", "productType": "BLOOD", "pickupLocation": %[1]s, "deliveryLocation": {"lat": 5.61, "lon": -0.2}}]%[2]s}`, position, times)
	if err := os.WriteFile(in, []byte(snapshot), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := parse(t, "--in="+in, "--out="+out, "--geojson="+os.DevNull, "--strategy=greedy", "--service="+service.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var plan struct {
		Routes []struct{ Stops []struct{ ETA time.Time } }
	}
	if err := json.Unmarshal(text, &plan); err != nil || len(plan.Routes) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	var at []time.Time
	for _, s := range plan.Routes[0].Stops {
		at = append(at, s.ETA)
	}
	return at
}

// F-OPT-05: a plan starts at the read time of its snapshot, else at its time, else now.
func TestSolve_PlansFromTheTimeOfTheSnapshot(t *testing.T) {
	for name, c := range map[string]struct {
		times string
		want  time.Time // zero for now
	}{
		"read":        {`, "readTime": "2026-11-21T12:00:00Z"`, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)},
		"taken":       {`, "timestamp": "2026-11-21T11:00:00Z"`, time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)},
		"both":        {`, "timestamp": "2026-11-21T11:00:00Z", "readTime": "2026-11-21T12:00:00Z"`, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)},
		"without any": {"", time.Time{}},
	} {
		began := time.Now()
		starts := stops(t, c.times, 0)[0]
		if c.want.IsZero() {
			c.want = began
		}
		if starts.Before(c.want) || starts.After(c.want.Add(time.Since(began))) {
			t.Errorf("%s: the route starts at %s, want %s", name, starts, c.want)
		}
	}
}

// F-OPT-05: a plan includes the service time at stops, as cycles do.
func TestSolve_IncludesTheServiceTimeAtStops(t *testing.T) {
	const times = `, "readTime": "2026-11-21T12:00:00Z"`
	brief, long := stops(t, times, 0), stops(t, times, time.Minute)
	last := len(brief) - 1
	if later := long[last].Sub(brief[last]); later != 2*time.Minute {
		t.Errorf("after a minute at each of two stops the drone is home %s later", later)
	}
}
