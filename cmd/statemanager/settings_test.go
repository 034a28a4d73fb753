package main_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/identitytest"
)

// configuration writes a file of settings.
func configuration(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// All wrong settings are listed at once.
func TestServe_ListsEveryWrongSetting(t *testing.T) {
	file := configuration(t, "project: p\nserve:\n  http-adr: 127.0.0.1:1\n  max-outstanding: lots\n")
	cmd := statemanager.Command(t, connect.Config{}, "serve", "--config="+file, "--format=xml")
	cmd.Env = append(cmd.Env, "DRONEFLEET_TELEMETRY_COALESCE=1")
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("exit code %d", cmd.ProcessState.ExitCode())
	}
	want := `statemanager: 4 settings cannot be used:
  http-adr (file FILE:3): unknown setting of serve; did you mean http-addr?
  telemetry-coalesce (variable DRONEFLEET_TELEMETRY_COALESCE): "1" cannot be read; give a duration, such as 8s or 1m30s, more than 0s, at most 1m
  max-outstanding (file FILE:4): "lots" cannot be read; give a whole number, 1 or more, at most 10000000
  format (flag --format): "xml" is not a valid choice; give protobuf or json
`
	if got := strings.ReplaceAll(string(out), file, "FILE"); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}

func TestServe_PrintsItsSettingsAndTheirOrigin(t *testing.T) {
	file := configuration(t, "log-level: warn\nserve:\n  oidc-issuer: https://accounts.example.org\n  oidc-audience: [fleet]\n  oidc-viewer: ['*']\n")
	cmd := statemanager.Command(t, connect.Config{Project: "p"}, "serve", "--config="+file, "--http-addr=:8080", "--print-config")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{
		"project: p # variable GOOGLE_CLOUD_PROJECT\n", "log-level: WARN # file " + file + ":1\n", "http-addr: :8080 # flag --http-addr\n",
		"oidc-viewer: ['*'] # file " + file + ":5\n", "max-outstanding: 40000 # default\n",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("printed %s, want %s", out, want)
		}
	}
}

// Every program accepts the log levels that another accepts or prints, because one file or
// variable may serve all.
func TestServe_AcceptsTheLogLevelOfTheOtherPrograms(t *testing.T) {
	file := configuration(t, "project: p\nlog-level: WARN\n")
	if out, _ := statemanager.Run(t, connect.Config{}, 0, "serve", "--config="+file, "--print-config"); !strings.Contains(out, "log-level: WARN # file ") {
		t.Errorf("printed\n%s", out)
	}
}

// The help shows the defaults of flags and what a command does.
func TestHelp_ShowsDefaultsAndCommands(t *testing.T) {
	for args, want := range map[string][]string{
		"serve --help":       {`--http-addr="127.0.0.1:8080"`, `--database="(default)"`},
		"deadletters --help": {"\n\nList, replay and discard dead-lettered messages"},
	} {
		out, _ := statemanager.Run(t, connect.Config{}, 0, strings.Fields(args)...)
		for _, part := range want {
			if !strings.Contains(out, part) {
				t.Errorf("%s: printed\n%s\nwant %q", args, out, part)
			}
		}
	}
}

// A flag that names another Firestore than the environment counts, although Google's
// library would follow the variable.
func TestServe_FlagBeatsTheVariableOfGooglesLibrary(t *testing.T) {
	hosts := emutest.Hosts(t)
	dead := connect.Config{Project: hosts.Project, FirestoreHost: "127.0.0.1:1", PubSubHost: "127.0.0.1:1"}
	out, _ := statemanager.Run(t, dead, 0, "orders", "list", "--firestore-host="+hosts.FirestoreHost, "--pubsub-host="+hosts.PubSubHost)
	if !strings.Contains(out, "No orders yet.") {
		t.Errorf("printed %q", out)
	}
}

// End to end: settings from a file, a token, a command, its effect and its record. No
// token is logged.
func TestServe_AcceptsCommandsOfOperatorsWithTokens(t *testing.T) {
	hosts := emutest.Hosts(t)
	key := identitytest.RSA(t, "k1")
	issuer := identitytest.Start(t, key)
	store := firestoretx.New(emutest.Connect(t, hosts).Firestore, firestoretx.Config{})
	err := store.IngestOrder(t.Context(), domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{
		Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: domain.Position{Lat: 48.86, Lon: 2.36},
	}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	file := configuration(t, `log-level: debug
serve:
  oidc-issuer: `+issuer.URL+`
  oidc-audience: `+identitytest.Audience+`
  oidc-leeway: 5m
  oidc-viewer: groups=watch
  oidc-operator:
    - groups=night
    - email=ann@example.org
  iap-audience: /projects/1/apps/fleet
  iap-viewer: groups=day # of the proxy's callers only
`)
	p := statemanager.Start(t, hosts, "serve", "--http-addr=127.0.0.1:0", "--config="+file)
	var logged strings.Builder
	url := ""
	for url == "" {
		line, err := p.Stderr.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		logged.WriteString(line)
		_, rest, _ := strings.Cut(line, `"url":"`)
		url, _, _ = strings.Cut(rest, `"`)
	}
	ask := func(method, path, token string, status int) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(`{"reason": "doubt"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); resp.StatusCode != status || err != nil {
			t.Errorf("%s, want %d: %s", resp.Status, status, body)
		}
	}
	post := func(token string, status int) {
		t.Helper()
		ask(http.MethodPost, "/api/v1/orders/O1/hold", token, status)
	}
	ann := issuer.Token(t, key, time.Now(), identitytest.Claims{"email": "ann@example.org", "email_verified": true})
	bob := issuer.Token(t, key, time.Now(), identitytest.Claims{"groups": []string{"day"}})
	old := issuer.Token(t, key, time.Now().Add(-2*time.Hour), nil)
	late := issuer.Token(t, key, time.Now().Add(-time.Hour-3*time.Minute), nil) // within the configured leeway
	post(bob, 403)
	ask(http.MethodGet, "/api/v1/orders/O1", bob, 403)
	ask(http.MethodGet, "/api/v1/orders/O1", issuer.Token(t, key, time.Now(), identitytest.Claims{"groups": "watch"}), 200)
	post(old, 401)
	post(late, 403)
	post(ann, 200)
	if o, err := store.Order(t.Context(), "O1"); err != nil || o.HeldReason != "doubt (by ann@example.org)" {
		t.Errorf("order %+v, %v", o, err)
	}
	http.DefaultClient.CloseIdleConnections()
	p.Keep = &logged
	p.Interrupt()
	if !strings.Contains(logged.String(), `"operator":"ann@example.org"`) {
		t.Errorf("the log does not name who held the order:\n%s", logged.String())
	}
	for _, token := range []string{ann, bob, old, late} {
		for _, part := range strings.Split(token, ".")[1:] {
			if strings.Contains(logged.String(), part) {
				t.Errorf("the log shows a token:\n%s", logged.String())
			}
		}
	}
}
