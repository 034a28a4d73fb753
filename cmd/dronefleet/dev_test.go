package main_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-API-02: dev prints the URL of its API in one line. Its Firestore enforces the fleet's
// index configuration, so every query here has its index in production.
func TestDev_PrintsWhereItsAPIIs(t *testing.T) {
	t.Parallel()
	p := dronefleet.Start(t, connect.Config{}, "dev", "--drones=3")
	url := p.Find(p.Stdout, "Console and HTTP API on ")
	hosts := p.Hosts()
	for _, path := range []string{
		"/api/v1/optimizer/snapshot", "/api/v1/drones?status=IDLE&limit=1&cursor=ZHJvbmVzAEE", "/api/v1/orders?status=PENDING&held=true",
		"/api/v1/missions?status=ACTIVE", "/api/v1/decisions?outcome=REJECTED&reason=BAD_ROUTE&cursor=ZGVjaXNpb25zAEE", "/api/v1/cycles?outcome=EMPTY", "/metrics",
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
		statemanager.Refuses(t, hosts, 1, []string{"nothing is recorded"}, "audit", subject, "none")
	}
	resp, err := http.Get(url + "/api/v1/drones?limit=2")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var page struct {
		Drones     []struct{ ID string }
		NextCursor string
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
		t.Fatal(err)
	}
	if len(page.Drones) != 2 || page.NextCursor == "" {
		t.Errorf("page %+v", page)
	}
	http.DefaultClient.CloseIdleConnections()
	p.Interrupt()
	dronefleet.Refuses(t, connect.Config{}, 2, []string{"--http-addr", "host:port"}, "dev", "--http-addr=8080")
}

// F-KIT-02: without simulated drones orders wait for drones of other makers, and the embedded
// Pub/Sub tells clients of HTTP where to go.
func TestDev_WaitsForDronesOfOthers(t *testing.T) {
	t.Parallel()
	report := filepath.Join(t.TempDir(), "report.json")
	p := dronefleet.Start(t, connect.Config{}, "dev", "--drones=0", "--orders-per-minute=60", "--report="+report)
	url := p.Find(p.Stdout, "Console and HTTP API on ")
	p.Find(p.Stdout, "statemanager drones apply")
	hosts := p.Hosts()
	resp, err := http.Post("http://"+hosts.PubSubHost+"/v1/projects/dronefleet/topics/orders:publish", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), "gRPC only") || !strings.Contains(string(body), "messages/publish") || !strings.Contains(string(body), url) {
		t.Errorf("HTTP is answered %q, %v", body, err)
	}
	clients := emutest.Connect(t, hosts)
	emutest.Eventually(t, "an order waits", func() error {
		orders, err := firestoretx.New(clients.Firestore, firestoretx.Config{}).Orders(t.Context(), domain.OrderPending, firestoretx.Page{Limit: 1})
		if err == nil && len(orders) == 0 {
			err = errors.New("no order yet")
		}
		return err
	})
	http.DefaultClient.CloseIdleConnections()
	p.Interrupt()
	if text, err := os.ReadFile(report); err != nil || !strings.Contains(string(text), `"drones": 0`) {
		t.Errorf("summary %s, %v", text, err)
	}
}

// F-INT-06: dev prints keys that work, and those of an earlier run in the same directory still do.
func TestDev_PrintsKeysOfItsAPI(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	status := func(url, method, path, key string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(`{"reason": "x"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	var earlier string
	for range 2 {
		p := dronefleet.Start(t, connect.Config{}, "dev", "--drones=0", "--orders-per-minute=0", "--data-dir="+dir)
		url := p.Find(p.Stdout, "Console and HTTP API on ")
		viewer := p.Find(p.Stdout, "  export VIEWER_KEY=")
		oper := p.Find(p.Stdout, "  export OPERATOR_KEY=")
		requester := p.Find(p.Stdout, "  export REQUESTER_KEY=")
		const hold = "/api/v1/orders/O1/hold" // which does not exist
		for _, c := range []struct {
			method, path, key string
			want              int
		}{
			{"GET", "/api/v1/drones", viewer, 200}, {"POST", hold, viewer, 403}, {"POST", hold, oper, 404},
			{"GET", "/api/v1/session", requester, 200}, {"GET", "/api/v1/drones", requester, 403}, {"GET", "/api/v1/drones", "", 200}, {"GET", "/api/v1/drones", viewer + "x", 401},
		} {
			if got := status(url, c.method, c.path, c.key); got != c.want {
				t.Errorf("%s %s: %d, want %d", c.method, c.path, got, c.want)
			}
		}
		if earlier != "" && (status(url, "POST", hold, earlier) != 404 || earlier == oper) {
			t.Error("the key of an earlier run does not work, or is that of this one")
		}
		earlier = oper
		http.DefaultClient.CloseIdleConnections()
		p.Interrupt()
	}
}

// F-API-02: a run that ends without a summary keeps the summary of the run before.
func TestDev_KeepsTheFormerSummary(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	report := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(report, []byte("report"), 0o600); err != nil {
		t.Fatal(err)
	}
	dronefleet.Run(t, connect.Config{}, 1, "dev", "--report="+report, "--firestore-addr="+taken.Addr().String())
	if text, err := os.ReadFile(report); err != nil || string(text) != "report" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// F-API-02: a run that cannot print fails at once.
func TestDev_FailsAtOnceWhenItCannotPrint(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no device that is always full: ", err)
	}
	defer full.Close()
	cmd := dronefleet.Command(t, connect.Config{}, "dev", "--drones=1", "--http-addr=off")
	var errs strings.Builder
	cmd.Stdout, cmd.Stderr = full, &errs
	_ = cmd.Run() // the exit code is checked below
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.HasPrefix(errs.String(), "dronefleet: print: write ") {
		t.Errorf("exit code %d, printed %q", code, errs.String())
	}
}

// I8, F-API-02: a run whose fleet broke an invariant fails, and its summary names the
// invariant.
func TestDev_FailsWhenAnInvariantBreaks(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.json")
	p := dronefleet.Start(t, connect.Config{}, "dev", "--drones=1", "--orders-per-minute=0", "--http-addr=off", "--report="+file)
	hosts := p.Hosts()
	// A delivered order without an event.
	if _, err := emutest.Connect(t, hosts).Firestore.Doc("orders/O1").Set(t.Context(), map[string]any{"status": "DELIVERED"}); err != nil {
		t.Fatal(err)
	}
	if err := p.Cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	p.Find(p.Stdout, "BROKEN, ")
	p.Find(p.Stdout, "I8 order O1: ")
	p.Find(p.Stderr, "dronefleet: invariants were violated; see the summary")
	if err := p.Cmd.Wait(); err == nil {
		t.Error("the run succeeded")
	}
	var summary struct{ Invariants struct{ Violations []string } }
	if text, err := os.ReadFile(file); err != nil || json.Unmarshal(text, &summary) != nil || len(summary.Invariants.Violations) == 0 {
		t.Errorf("the file holds %s, %v", text, err)
	}
}

// F-API-02: the lines that dev prints connect to its fleet, even from a shell that is set
// up for another project and database.
func TestDev_OthersJoinFromAnyShell(t *testing.T) {
	t.Parallel()
	p := dronefleet.Start(t, connect.Config{}, "dev", "--drones=3", "--http-addr=off")
	var exports []string
	for range 3 {
		exports = append(exports, "export "+p.Find(p.Stdout, "  export "))
	}
	list := exec.CommandContext(t.Context(), "sh", "-c", strings.Join(exports, "\n")+"\nexec "+statemanager.Path(t)+" drones list")
	list.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GOOGLE_CLOUD_PROJECT=my-project", "FIRESTORE_DATABASE=fleet"}
	out, err := list.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "DRONE-003") {
		t.Errorf("with\n%s\nprinted %s, %v", strings.Join(exports, "\n"), out, err)
	}
	p.Interrupt()
}

// F-API-02: a run with standard output closed does not end silently: everything it
// would print goes to standard error.
func TestDev_PrintsToStandardErrorWhenItsOutputIsClosed(t *testing.T) {
	t.Parallel()
	run := exec.CommandContext(t.Context(), "sh", "-c", "exec "+dronefleet.Path(t)+" dev --drones 1 --duration 1s --http-addr off >&-")
	run.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	out, err := run.CombinedOutput()
	for _, want := range []string{"Standard output is closed", "Summary after", "invariants  I1-I12 hold"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("printed %s (%v), want %q", out, err, want)
		}
	}
}

// F-DOC-11, F-API-02: --places gives the fleet other places, without orders of its own there, and
// examples/hospital.py orders one, follows it to its delivery and names what is wrong with another.
func TestDev_ServesHospitalsNearby(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	p := dronefleet.Start(t, connect.Config{}, "dev", "--places=../../examples/nearby.yaml", "--drones=2", "--orders-per-minute=0", "--speed=20")
	url := p.Find(p.Stdout, "Console and HTTP API on ")
	key := p.Find(p.Stdout, "  export REQUESTER_KEY=")
	order := func(code int, last string, args ...string) {
		cmd := exec.CommandContext(t.Context(), python, append([]string{"../../examples/hospital.py", "BLOOD"}, args...)...)
		cmd.Env = []string{"API=" + url, "REQUESTER_KEY=" + key}
		out, err := cmd.CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if cmd.ProcessState.ExitCode() != code || !strings.HasPrefix(lines[len(lines)-1], last) {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	order(0, "delivered at ", "--to=45.7461,4.8770", "--priority=CRITICAL", "--cold")
	order(1, "refused with 400: ", "--to=95,4.8770")
	p.Find(p.Stdout, " 0 pending, 0 assigned, 0 aboard, 1 delivered")
	p.Interrupt()
}
