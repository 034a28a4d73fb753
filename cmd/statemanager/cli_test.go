package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/emutest"
	"github.com/dronefleet/dronefleet/internal/meter"
)

// binary is the command under test, built once.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "statemanager")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "statemanager")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Stderr = os.Stderr
	code := 1
	if err := build.Run(); err == nil {
		code = m.Run()
	}
	_ = os.RemoveAll(dir) // what is left is only temporary
	os.Exit(code)
}

// patience bounds a test against a command that hangs.
const patience = 2 * time.Minute

// command is a call of the binary on hosts, with nothing else of this
// environment that could reach a fleet.
func command(t *testing.T, hosts connect.Config, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "GOOGLE_CLOUD_PROJECT=" + hosts.Project}
	if hosts.FirestoreHost != "" {
		cmd.Env = append(cmd.Env, connect.FirestoreHost+"="+hosts.FirestoreHost, connect.PubSubHost+"="+hosts.PubSubHost)
	}
	return cmd
}

// run expects an exit code and returns what the command printed.
func run(t *testing.T, hosts connect.Config, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	cmd := command(t, hosts, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && !failed {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("%v: exit code %d, want %d (%v)\n%s%s", args, got, code, exit, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// refused expects an exit code and one line that holds every part; the last of
// them, where a command line that is none brings its usage too.
func refused(t *testing.T, hosts connect.Config, code int, parts []string, args ...string) {
	t.Helper()
	out, errs := run(t, hosts, code, args...)
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(errs), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "waiting for ") // a machine under load is told so
	})
	last := lines[len(lines)-1]
	if code == 1 && (len(lines) != 1 || out != "") {
		t.Errorf("%v: printed more than one line:\n%s%s", args, out, errs)
	}
	for _, part := range parts {
		if !strings.Contains(last, part) {
			t.Errorf("%v: %q lacks %q", args, last, part)
		}
	}
}

// A wrong command line ends with 2, whatever is wrong with it; one that cannot be
// carried out with 1.
func TestCommands_RefuseInOneLine(t *testing.T) {
	hosts := emutest.Hosts(t)
	for _, c := range []struct {
		code  int
		args  string
		parts []string
	}{
		{2, "orders hold O1", []string{"--reason"}},
		{2, "orders fly O1", []string{"unexpected argument fly"}},
		{2, "audit hospital H1", []string{"drone", "cycle"}},
		{2, "drones clear --reason=x", []string{"<id>"}},
		{1, "orders hold O1 --reason=x", []string{"order O1: NOT_FOUND", "no such order"}},
		{1, "drones clear D1 --reason=x", []string{"drone D1: NOT_FOUND"}},
		{2, "orders cancel a/b --reason=x", []string{"a/b"}},
		{2, "orders list --status=FLYING", []string{"status (flag --status)", "PENDING", "CANCELLED"}},
		{2, "drones list --status=PENDING", []string{"--status", "IDLE", "UNKNOWN"}},
		{2, "drones list --limit=-1", []string{"--limit", "0 or more"}},
		{2, "drones list --limit=lots", []string{"--limit", "0 or more"}},
		{2, "drones list --after=a/b", []string{"after (flag --after)", `"a/b"`}},
		{2, "audit order a/b", []string{"id (argument <id>)", `"a/b"`}},
		{2, "deadletters list --limit=-1", []string{"--limit", "0 or more"}},
		{2, "deadletters list --topic=missions", []string{"topic (flag --topic)", "telemetry"}},
		{1, "audit order O1", []string{`order "O1"`}},
		{1, "deadletters list", []string{"does not exist", "--create-topics"}},
		{1, "publish orders cli_test.go", []string{"topic orders does not exist", "--create-topics"}},
		{2, "deadletters replay --topic=missions", []string{"--topic", "telemetry"}},
		// F-DLQ-01: what names no message replays none.
		{2, "deadletters replay --id=", []string{"--id", "chooses nothing"}},
		{2, "deadletters replay --id=1,", []string{"--id", "chooses nothing"}},
		{2, "deadletters replay --reason=", []string{"--reason", "chooses nothing"}},
		{2, "deadletters replay --topic=", []string{"--topic", "chooses nothing"}},
		{1, "deadletters replay --id=1,2 --id=3", []string{"does not exist", "--create-topics"}},
		// F-DLQ-01: who discards says which, and why.
		{2, "deadletters discard --why=x", []string{"id (flag --id)", "chooses nothing", "topic or reason", "give one of them"}},
		{2, "deadletters discard --why=x --limit=1 --dry-run", []string{"id (flag --id)", "chooses nothing"}},
		{2, "deadletters discard --why=x --id=", []string{"--id", "chooses nothing"}},
		{2, "deadletters discard --why=x --topic=missions", []string{"--topic", "telemetry"}},
		{2, "deadletters discard --id=1", []string{"--why"}},
		{2, "deadletters discard --id=1 --why=", []string{"why (flag --why)", "is blank"}},
		{1, "deadletters discard --id=1 --why=x", []string{"does not exist", "--create-topics"}},
		{2, "emulators --firestore=0.0.0.0:0", []string{"--firestore", "loopback"}},
		{2, "dev --firestore-addr=0.0.0.0:0", []string{"firestore-addr (flag --firestore-addr)", "loopback"}},
		{2, "dev --seed=-1", []string{"seed (flag --seed)", "0 or more"}},
		{2, "emulators --firestore=8081", []string{"firestore (flag --firestore)", "host:port"}},
		{1, "emulators --indexes=/does/not/exist", []string{"--indexes"}},
		{2, "serve --http-addr=nowhere", []string{"--http-addr", "host:port"}},
		{2, "serve --http-addr=:8080", []string{"--http-addr", "without credentials", "--oidc-issuer", "--insecure-http"}},
		{2, "dev --http-addr=0.0.0.0:8080", []string{"--http-addr", "without credentials; give an address of this machine", "--insecure-http"}}, // dev knows no issuer
		{2, "serve --metrics-access=viewer", []string{"metrics-access (flag --metrics-access)", "goes with oidc-issuer"}},
		{2, "serve --oidc-audience=a", []string{"oidc-audience", "goes with oidc-issuer"}},
		{2, "serve --oidc-issuer=http://example.org --oidc-audience=a --oidc-viewer=*", []string{"oidc-issuer", "https"}},
		{2, "serve --oidc-issuer=https://a:mellon@example.org --oidc-audience=a --oidc-viewer=*", []string{"oidc-issuer (flag --oidc-issuer): is no URL"}},
		{2, "serve --oidc-issuer=https://example.org --oidc-viewer=*", []string{"oidc-audience", "is missing"}},
		{2, "serve --oidc-issuer=https://example.org --oidc-audience=a", []string{"oidc-viewer", "nobody may do anything"}},
		{2, "serve --oidc-issuer=https://example.org --oidc-audience=a --oidc-viewer=ann", []string{"oidc-viewer", "claim=value"}},
		{2, "serve --oidc-issuer=https://example.org --oidc-audience=a --oidc-viewer=* --insecure-http", []string{"insecure-http", "give one of them"}},
		{2, "serve --config=/does/not/exist", []string{"/does/not/exist", "cannot be read"}},
		{2, "dev --speed=0", []string{"speed (flag --speed)", "1 or more"}},
		{2, "dev --outage-at=-1s", []string{"outage-at", "0s or more"}},
		{2, "dev --outage-at=10s", []string{"outage-for", "how long"}},
		{2, "dev --duration=10s --outage-at=10s --outage-for=1s", []string{"outage-at (flag --outage-at)", "--duration"}},
		{2, "dev --outage-for=10s", []string{"outage-for (flag --outage-for)", "give --outage-at"}},
		{2, "dev --clock-skew=-2h", []string{"clock-skew (flag --clock-skew)", "at most 1h0m0s"}},
	} {
		refused(t, hosts, c.code, c.parts, strings.Fields(c.args)...)
	}
	for _, c := range []struct {
		args  []string
		parts []string
	}{
		{[]string{"locks", "show", ""}, []string{"key (argument <key>)", "is empty", "locks list"}},
		{[]string{"orders", "hold", "O1", "--reason="}, []string{"reason (flag --reason)", "is blank"}},
		{[]string{"drones", "clear", "", "--reason=x"}, []string{"id (argument <id>)", "is empty"}},
		{[]string{"orders", "hold", "O1", "--reason=x", "--by= "}, []string{"by (flag --by)", "is blank"}},
	} {
		refused(t, hosts, 2, c.parts, c.args...)
	}
	// The flag is named that is to be changed.
	dir, ends := t.TempDir(), []string{"emulators", "--firestore=127.0.0.1:0", "--pubsub=127.0.0.1:0"}
	for name, text := range map[string]string{"indexes.json": "{", "firestore": "", "second/pubsub": ""} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct{ flag, value string }{
		{"--indexes", filepath.Join(dir, "missing.json")},
		{"--indexes", filepath.Join(dir, "indexes.json")},
		{"--data-dir", dir},
		{"--data-dir", filepath.Join(dir, "second")},
		{"--firestore", taken.Addr().String()},
		{"--pubsub", taken.Addr().String()},
	} {
		refused(t, hosts, 1, []string{"statemanager: " + c.flag + ": "}, append(ends, c.flag+"="+c.value)...)
	}
	for _, c := range []struct{ flag, value string }{
		{"--data-dir", filepath.Join(dir, "second")},
		{"--firestore-addr", taken.Addr().String()},
		{"--pubsub-addr", taken.Addr().String()},
		{"--http-addr", taken.Addr().String()},
	} {
		refused(t, connect.Config{}, 1, []string{"statemanager: " + c.flag + ": "}, "dev", "--duration=1s", c.flag+"="+c.value)
	}
	// F-API-02: nothing falls back to anything.
	refused(t, connect.Config{}, 2, []string{"GOOGLE_CLOUD_PROJECT", connect.FirestoreHost}, "orders", "list")
	refused(t, connect.Config{}, 2, []string{"GOOGLE_CLOUD_PROJECT", connect.FirestoreHost}, "serve")
	refused(t, connect.Config{}, 2, []string{`"My Project" is no id`, "--project"}, "orders", "list", "--project=My Project")
	refused(t, connect.Config{Project: "p"}, 2, []string{`"a b" is no id`, "--database"}, "orders", "list", "--database=a b")
	refused(t, connect.Config{FirestoreHost: "127.0.0.1:1"}, 2, []string{"only one of"}, "serve")
}

func TestCommands_ChangeAndShowTheFleet(t *testing.T) {
	hosts := emutest.Hosts(t)
	store := firestoretx.New(emutest.Connect(t, hosts).Firestore, firestoretx.Config{})
	err := store.IngestOrder(t.Context(), domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{
		Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: domain.Position{Lat: 48.86, Lon: 2.36},
	}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	says := func(want, args string) {
		t.Helper()
		if out, _ := run(t, hosts, 0, strings.Fields(args)...); !strings.Contains(out, want) {
			t.Errorf("%s: printed %q, want %q", args, out, want)
		}
	}
	says("order O1 is PENDING, held: doubt (by ann)", "orders hold O1 --reason=doubt --by=ann")
	says("doubt", "orders list --held")
	says("order O1 is PENDING\n", "orders release O1 --reason=settled")
	says("No orders are held.", "orders list --held")
	says("order O1 is CANCELLED", "orders cancel O1 --reason=obsolete")
	says("already done: order O1 is CANCELLED", "orders cancel O1 --reason=again")
	says("PENDING -> CANCELLED because obsolete", "audit order O1")
	says(`"to": "CANCELLED"`, "audit order O1 --json")
	says("No drones yet.", "drones list")
	says("No lock is held.", "locks list")
	says("Nobody holds some:key", "locks show some:key")
	says(`"drones": []`, "drones list --json")
}

// process is a command that runs until it is told to stop.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *bufio.Reader
	stderr *bufio.Reader
	keep   io.Writer // gets what interrupt reads from stderr, if set
}

func start(t *testing.T, hosts connect.Config, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: command(t, hosts, args...)}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdout, p.stderr = bufio.NewReader(stdout), bufio.NewReader(stderr)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// find reads lines from r up to one with prefix, and returns the rest of it.
func (p *process) find(r *bufio.Reader, prefix string) string {
	p.t.Helper()
	for {
		text, err := r.ReadString('\n')
		if _, rest, ok := strings.Cut(text, prefix); ok {
			return strings.TrimSpace(rest)
		}
		if err != nil {
			p.t.Fatalf("%v ended without %q: %v", p.cmd.Args, prefix, err)
		}
	}
}

// interrupt sends Ctrl-C and expects success.
func (p *process) interrupt() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		p.t.Fatal(err)
	}
	rest := make(chan struct{})
	go func() {
		defer close(rest)
		_, _ = io.Copy(io.Discard, p.stdout) // until the process ends
	}()
	errs, _ := io.ReadAll(p.stderr) // likewise
	<-rest
	if p.keep != nil {
		_, _ = p.keep.Write(errs) // a builder's writes succeed
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("%v: %v\n%s", p.cmd.Args, err, errs)
	}
}

// The two servers alone: clients find them by the lines printed, and a data
// directory keeps what they stored.
func TestEmulators_ServeAndKeepTheirData(t *testing.T) {
	dir := t.TempDir()
	for round, want := range []string{"", "kept"} {
		p := start(t, connect.Config{}, "emulators", "--firestore=127.0.0.1:0", "--pubsub=127.0.0.1:0", "--data-dir="+dir)
		hosts := connect.Config{
			FirestoreHost: p.find(p.stdout, "export "+connect.FirestoreHost+"="),
			PubSubHost:    p.find(p.stdout, "export "+connect.PubSubHost+"="),
		}
		logged := p.find(p.stderr, "emulators serving")
		for _, want := range []string{
			`"` + connect.FirestoreHost + `":"` + hosts.FirestoreHost + `"`, `"` + connect.PubSubHost + `":"` + hosts.PubSubHost + `"`, dir,
		} {
			if !strings.Contains(logged, want) {
				t.Errorf("logged %s, want %s in it", logged, want)
			}
		}
		clients, err := connect.Open(t.Context(), hosts, meter.New())
		if err != nil {
			t.Fatal(err)
		}
		if err := clients.Check(t.Context(), func(string) {}); err != nil {
			t.Fatal(err)
		}
		doc := clients.Firestore.Doc("notes/n1")
		snap, err := doc.Get(t.Context())
		if got, _ := snap.Data()["text"].(string); got != want {
			t.Errorf("round %d: document holds %q, want %q (%v)", round, got, want, err)
		}
		if _, err := doc.Set(t.Context(), map[string]any{"text": "kept"}); err != nil {
			t.Fatal(err)
		}
		if err := clients.Close(); err != nil {
			t.Error(err)
		}
		p.interrupt()
	}
}

// F-API-01: serve answers over HTTP; a taken port is refused before it starts.
func TestServe_AnswersOverHTTP(t *testing.T) {
	hosts := emutest.Hosts(t)
	p := start(t, hosts, "serve", "--http-addr=127.0.0.1:0")
	url, _, _ := strings.Cut(p.find(p.stderr, `"url":"`), `"`)
	emutest.Eventually(t, "ready", func() error {
		resp, err := http.Get(url + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		var report struct{ Status string }
		if err := json.NewDecoder(resp.Body).Decode(&report); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %+v", resp.Status, report)
		}
		return nil
	})
	refused(t, hosts, 1, []string{"--http-addr", "in use"}, "serve", "--http-addr="+strings.TrimPrefix(url, "http://"))
	http.DefaultClient.CloseIdleConnections()
	p.interrupt()
	if _, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		t.Error("the port is still open")
	}
}

// F-API-02: dev says in one line where its API is. Its Firestore keeps to the
// fleet's index configuration, so every query here has its index in production.
func TestDev_PrintsWhereItsAPIIs(t *testing.T) {
	p := start(t, connect.Config{}, "dev", "--drones=3")
	hosts := connect.Config{
		FirestoreHost: p.find(p.stdout, "export "+connect.FirestoreHost+"="),
		PubSubHost:    p.find(p.stdout, "export "+connect.PubSubHost+"="),
	}
	url := p.find(p.stdout, "HTTP API on ")
	for _, path := range []string{
		"/api/v1/optimizer/snapshot", "/api/v1/drones?status=IDLE&limit=1&after=A", "/api/v1/orders?status=PENDING&held=true",
		"/api/v1/missions?status=ACTIVE", "/api/v1/decisions?outcome=REJECTED&reason=BAD_ROUTE&after=A", "/api/v1/cycles?outcome=EMPTY", "/metrics",
	} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s %v", path, resp.Status, body, err)
		}
	}
	for _, subject := range []string{"drone", "order", "mission", "decision", "cycle"} {
		refused(t, hosts, 1, []string{"nothing is recorded"}, "audit", subject, "none")
	}
	resp, err := http.Get(url + "/api/v1/drones?limit=2")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var page struct {
		Drones []struct{ ID string }
		Next   string
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
		t.Fatal(err)
	}
	if len(page.Drones) != 2 || page.Next != page.Drones[1].ID {
		t.Errorf("page %+v", page)
	}
	http.DefaultClient.CloseIdleConnections()
	p.interrupt()
	refused(t, connect.Config{}, 2, []string{"--http-addr", "host:port"}, "dev", "--http-addr=8080")
}

// F-API-02: a run that comes to no report costs nobody the report of the one
// before.
func TestDev_KeepsTheFormerReport(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	report := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(report, []byte("report"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, connect.Config{}, 1, "dev", "--report="+report, "--firestore-addr="+taken.Addr().String())
	if text, err := os.ReadFile(report); err != nil || string(text) != "report" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// F-API-02: a run whose report cannot be printed has failed.
func TestDev_FailsWithoutItsReport(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no device that is always full: ", err)
	}
	defer full.Close()
	cmd := command(t, connect.Config{}, "dev", "--drones=1", "--duration=10ms", "--http-addr=off")
	var errs strings.Builder
	cmd.Stdout, cmd.Stderr = full, &errs
	_ = cmd.Run() // its exit code tells
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.HasPrefix(errs.String(), "statemanager: print the report: write ") {
		t.Errorf("exit code %d, printed %q", code, errs.String())
	}
}

// I8, F-API-02: a run whose fleet broke an invariant has failed, and its report
// says which.
func TestDev_FailsWhenAnInvariantBreaks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	p := start(t, connect.Config{}, "dev", "--drones=1", "--orders-per-minute=0", "--http-addr=off", "--report="+file)
	hosts := connect.Config{
		FirestoreHost: p.find(p.stdout, "export "+connect.FirestoreHost+"="),
		PubSubHost:    p.find(p.stdout, "export "+connect.PubSubHost+"="),
	}
	// An order that was delivered, of which no event tells.
	if _, err := emutest.Connect(t, hosts).Firestore.Doc("orders/O1").Set(t.Context(), map[string]any{"status": "DELIVERED"}); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	p.find(p.stdout, "BROKEN, ")
	p.find(p.stdout, "I8 order O1: ")
	p.find(p.stderr, "statemanager: invariants broke; see the report")
	if err := p.cmd.Wait(); err == nil {
		t.Error("the run succeeded")
	}
	var report struct{ Invariants struct{ Violations []string } }
	if text, err := os.ReadFile(file); err != nil || json.Unmarshal(text, &report) != nil || len(report.Invariants.Violations) == 0 {
		t.Errorf("the file holds %s, %v", text, err)
	}
}

// What nobody could be told has failed: that there is nothing to list, or where the
// emulators are.
func TestCommands_FailWithoutTheirOutput(t *testing.T) {
	hosts := emutest.Hosts(t)
	unwritable, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer unwritable.Close()
	for _, line := range []string{"orders list", "locks list", "emulators --firestore=127.0.0.1:0 --pubsub=127.0.0.1:0"} {
		cmd := command(t, hosts, strings.Fields(line)...)
		var errs strings.Builder
		cmd.Stdout, cmd.Stderr = unwritable, &errs
		_ = cmd.Run() // its exit code tells
		if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(errs.String(), "statemanager: write /dev/stdout: ") {
			t.Errorf("%s: exit code %d, printed %q", line, code, errs.String())
		}
	}
}

// F-API-02: what dev prints leads to its fleet, though the shell is set up for
// another project and database.
func TestDev_OthersJoinFromAnyShell(t *testing.T) {
	p := start(t, connect.Config{}, "dev", "--drones=3", "--http-addr=off")
	var exports []string
	for range 3 {
		exports = append(exports, "export "+p.find(p.stdout, "  export "))
	}
	list := exec.CommandContext(t.Context(), "sh", "-c", strings.Join(exports, "\n")+"\nexec "+binary+" drones list")
	list.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GOOGLE_CLOUD_PROJECT=my-project", "FIRESTORE_DATABASE=fleet"}
	out, err := list.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "DRONE-003") {
		t.Errorf("with\n%s\nprinted %s, %v", strings.Join(exports, "\n"), out, err)
	}
	p.interrupt()
}
