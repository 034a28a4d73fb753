package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/apikeys"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/clitest"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

const statemanager = clitest.Program("statemanager")

// A wrong command line exits with 2, a command that fails with 1.
func TestCommands_RefuseInOneLine(t *testing.T) {
	t.Parallel()
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
		{1, "locks show a/b", []string{`lock key "a/b" is invalid`}},
		{1, "drones clear D1 --reason=x", []string{"drone D1: NOT_FOUND"}},
		{1, "drones ground D1 --reason=x", []string{"drone D1: NOT_FOUND"}},
		{1, "orders priority O1 --priority=HIGH --reason=x", []string{"order O1: NOT_FOUND"}},
		{2, "orders priority O1 --priority=high --reason=x", []string{"priority (flag --priority)", "CRITICAL"}},
		{1, "orders deadline O1 --deadline=2126-11-21T12:00:00Z --reason=x", []string{"order O1: NOT_FOUND"}},
		{2, "orders deadline O1 --deadline=tomorrow --reason=x", []string{"--deadline"}},
		{1, "orders pin O1 --drone=D1 --reason=x", []string{"order O1: NOT_FOUND"}},
		{1, "orders unpin O1 --reason=x", []string{"order O1: NOT_FOUND"}},
		{1, "orders forbid O1 --drone=D1 --reason=x", []string{"order O1: NOT_FOUND"}},
		{1, "orders allow O1 --drone=D1 --reason=x", []string{"order O1: NOT_FOUND"}},
		{2, "orders pin O1 --reason=x", []string{"--drone"}},
		{2, "orders forbid O1 --drone=a/b --reason=x", []string{"drone (flag --drone)", "a/b"}},
		{2, "alerts acknowledge D1 --reason=x", []string{"id (argument <id>)", "is not an alert's id"}},
		{1, "missions recall M-X --reason=x", []string{"mission M-X: NOT_FOUND"}},
		{1, "drones release D1 --reason=x", []string{"drone D1: NOT_FOUND"}},
		{2, "orders cancel a/b --reason=x", []string{"a/b"}},
		{2, "keys create --role=admin --reason=x", []string{"role (flag --role)", `is "admin"; give viewer, operator, requester or drone`}},
		{2, "keys create --role=requester --reason=x", []string{"requester", "is empty"}},
		{2, "keys create --role=viewer --drone=D1 --reason=x", []string{"drone (flag --drone)", "is for keys of the role drone"}},
		{2, "keys create --role=viewer --expires=soon --reason=x", []string{"expires (flag --expires)", "give days such as 90d"}},
		{2, "keys create --role=viewer --expires=9999d --reason=x", []string{"expires (flag --expires)", "keys last at most 5 years"}},
		{2, "keys create --role=viewer", []string{"--reason"}},
		{1, "keys revoke O1 --reason=x", []string{"id is not a key's id, which has 64 hexadecimal digits"}},
		{1, "keys revoke " + strings.Repeat("0", 64) + " --reason=x", []string{"key 0000", "NOT_FOUND", "no such key"}},
		{2, "orders list --status=FLYING", []string{"status (flag --status)", "PENDING", "CANCELLED"}},
		{2, "drones list --status=PENDING", []string{"--status", "IDLE", "UNKNOWN"}},
		{2, "drones list --limit=-1", []string{"--limit", "0 or more"}},
		{2, "drones list --limit=lots", []string{"--limit", "0 or more"}},
		{2, "drones list --cursor=a/b", []string{"cursor (flag --cursor)", `"a/b"`, "nextCursor of a page of drones"}},
		{2, "orders list --cursor=" + entity.Cursor("drones", "D1"), []string{"nextCursor of a page of orders"}},
		{2, "locks list --cursor=" + entity.Cursor("locks", "x"), []string{"nextCursor of a page of locks"}},
		{2, "deadletters list --cursor=" + entity.Cursor("deadletters", "2026-11-21T12:00:00Z missions 1"), []string{"nextCursor of a page of deadletters"}},
		{2, "audit order a/b", []string{"id (argument <id>)", `"a/b"`}},
		{2, "deadletters list --limit=-1", []string{"--limit", "0 or more"}},
		{2, "deadletters list --topic=missions", []string{"topic (flag --topic)", "telemetry"}},
		{1, "audit order O1", []string{`order "O1"`}},
		{2, "audit order O1 --from 2026-11-24T00:00:00Z", []string{"from (flag --from)", "is for a person"}},
		{2, "audit person ann --to noon", []string{"to (flag --to)"}},
		{2, "serve --retention event=30y", []string{"retention (flag --retention)", `"event"`}}, // F-REC-01
		{2, "serve --retention orders=30d", []string{"retention (flag --retention)", "at least 31d"}},
		{1, "deadletters list", []string{"does not exist", "--create-topics"}},
		{2, "publish orders --attribute=note", []string{"attribute (flag --attribute)", "give NAME=VALUE"}},
		{2, "publish orders --attribute=goog-x=1", []string{"attribute (flag --attribute)", "Pub/Sub's"}},
		{1, "publish orders cli_test.go", []string{"topic orders does not exist", "--create-topics"}},
		{2, "deadletters replay", []string{"all (flag --all)", "is not set", "id, topic or reason", "or all to replay every dead letter"}},
		{2, "deadletters replay --limit=2 --dry-run", []string{"--all"}},
		{2, "deadletters replay --all --id=1", []string{"--all", "one or the other"}},
		{2, "deadletters replay --topic=missions", []string{"--topic", "telemetry"}},
		// F-DLQ-01: an empty value replays nothing.
		{2, "deadletters replay --id=", []string{"--id", "empty value"}},
		{2, "deadletters replay --id=1,", []string{"--id", "empty value"}},
		{2, "deadletters replay --reason=", []string{"--reason", "empty value"}},
		{2, "deadletters replay --topic=", []string{"--topic", "empty value"}},
		{1, "deadletters replay --id=1,2 --id=3", []string{"does not exist", "--create-topics"}},
		// F-DLQ-01: a discard needs a selection and a reason.
		{2, "deadletters discard --why=x", []string{"id (flag --id)", "is empty", "topic and reason", "set at least one"}},
		{2, "deadletters discard --why=x --limit=1 --dry-run", []string{"id (flag --id)", "is empty"}},
		{2, "deadletters discard --why=x --id=", []string{"--id", "empty value"}},
		{2, "deadletters discard --why=x --topic=missions", []string{"--topic", "telemetry"}},
		{2, "deadletters discard --id=1", []string{"--why"}},
		{2, "deadletters discard --id=1 --why=", []string{"why (flag --why)", "is blank"}},
		{1, "deadletters discard --id=1 --why=x", []string{"does not exist", "--create-topics"}},
		{2, "depots apply --reason=x", []string{"--file"}},
		{2, "depots apply -f x.yaml", []string{"--reason"}},
		{1, "depots apply -f /does/not/exist.yaml --reason=x", []string{"/does/not/exist.yaml", "no such file"}},
		{1, "depots apply -f cli_test.go --reason=x", []string{"cli_test.go"}},
		{1, "depots delete D9 --reason=x", []string{"depot: D9: NOT_FOUND: no such depot"}},
		{2, "warehouses delete a/b --reason=x", []string{"id (argument <id>)", `"a/b"`}},
		{2, "warehouses list --limit=-1", []string{"--limit", "0 or more"}},
		{2, "serve --http-addr=nowhere", []string{"--http-addr", "host:port"}},
		{2, "serve --http-addr=:8080", []string{"--http-addr", "without credentials", "--oidc-issuer", "--insecure-http"}},
		{2, "serve --metrics-access=viewer", []string{"metrics-access (flag --metrics-access)", "requires oidc-issuer"}},
		{2, "serve --rate-reads=-1", []string{"rate-reads (flag --rate-reads)", "0 or more"}},
		{2, "serve --rate-commands=NaN", []string{"rate-commands (flag --rate-commands)", "give 0 or more"}},
		{2, "serve --trusted-proxies=10.0.0.1/8", []string{"trusted-proxies (flag --trusted-proxies)", "give an address such as"}},
		{2, "serve --cors-origins=*", []string{"cors-origins (flag --cors-origins)", "give each origin in full"}},
		{2, "serve --oidc-audience=a", []string{"oidc-audience", "requires oidc-issuer"}},
		{2, "serve --oidc-client-id=a", []string{"public-url", "give one such as https://fleet.example.org"}},
		{2, "serve --oidc-issuer=https://example.org --oidc-audience=a --oidc-viewer=* --session-key=" + strings.Repeat("mellon", 6), []string{"session-key", "cannot be read"}},
		{2, "serve --oidc-issuer=https://example.org --oidc-audience=a --oidc-viewer=* --public-url=https://example.org --oidc-client-id=a --oidc-scope=email", []string{"oidc-scope", "lacks openid"}},
		{2, "serve --oidc-issuer=https://example.org --oidc-audience=a --oidc-viewer=* --public-url=https://example.org", []string{"public-url", "requires oidc-client-id"}},
		{2, "serve --iap-audience=/projects/1/apps/fleet", []string{"iap-viewer", "nobody could use the API"}},
		{2, "serve --iap-audience=/projects/1/apps/fleet --iap-viewer=* --oidc-viewer=*", []string{"oidc-viewer", "requires oidc-issuer"}},
		{2, "serve --oidc-issuer=https://example.org --oidc-audience=a --oidc-viewer=groups=a --iap-viewer=*", []string{"iap-viewer", "requires iap-audience"}},
		{2, "serve --oidc-issuer=https://example.org --oidc-audience=a --oidc-viewer=groups=a --iap-audience=/projects/1/apps/fleet", []string{"iap-viewer", "nobody could use the API"}},
		{2, "serve --oidc-issuer=https://example.org --oidc-audience=a --oidc-viewer=groups=a,* --iap-audience=/projects/1/apps/fleet --iap-viewer=groups=a", []string{"oidc-viewer", "has *", "give CLAIM=VALUE"}},
		{2, "serve --oidc-issuer=https://example.org --oidc-audience=a --oidc-viewer=groups=a --iap-audience=/projects/1/apps/fleet --iap-operator=*", []string{"iap-operator", "has *", "give CLAIM=VALUE"}},
		{2, "serve --http-hosts=https://fleet.example.org", []string{"http-hosts", "without a scheme or port"}},
		{2, "serve --http-hosts=*", []string{"http-hosts", "*.example.org"}},
		{2, "serve --oidc-issuer=http://example.org --oidc-audience=a --oidc-viewer=*", []string{"oidc-issuer", "https"}},
		{2, "serve --oidc-issuer=https://a:mellon@example.org --oidc-audience=a --oidc-viewer=*", []string{"oidc-issuer (flag --oidc-issuer): is not an issuer's URL"}},
		{2, "serve --oidc-issuer=https://example.org --oidc-viewer=*", []string{"oidc-audience", "is missing"}},
		{2, "serve --oidc-issuer=https://example.org --oidc-audience=a", []string{"oidc-viewer", "nobody could use the API"}},
		{2, "serve --oidc-issuer=https://example.org --oidc-audience=a --oidc-viewer=ann", []string{"oidc-viewer", "claim=value"}},
		{2, "serve --oidc-issuer=https://example.org --oidc-audience=a --oidc-viewer=* --insecure-http", []string{"insecure-http", "give only one"}},
		{2, "serve --config=/does/not/exist", []string{"/does/not/exist", "cannot be read"}},
	} {
		statemanager.Refuses(t, hosts, c.code, c.parts, strings.Fields(c.args)...)
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
		statemanager.Refuses(t, hosts, 2, c.parts, c.args...)
	}
	// F-API-02: there is no fallback.
	statemanager.Refuses(t, connect.Config{}, 2, []string{"GOOGLE_CLOUD_PROJECT", connect.FirestoreHost}, "orders", "list")
	statemanager.Refuses(t, connect.Config{}, 2, []string{"GOOGLE_CLOUD_PROJECT", connect.FirestoreHost}, "serve")
	statemanager.Refuses(t, connect.Config{}, 2, []string{`"My Project" is not a Google Cloud project id`, "--project"}, "orders", "list", "--project=My Project")
	statemanager.Refuses(t, connect.Config{Project: "p"}, 2, []string{`"a b" is not a Firestore database id`, "--database"}, "orders", "list", "--database=a b")
	statemanager.Refuses(t, connect.Config{FirestoreHost: "127.0.0.1:1"}, 2, []string{"only one of"}, "serve")
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
		if out, _ := statemanager.Run(t, hosts, 0, strings.Fields(args)...); !strings.Contains(out, want) {
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
	// F-API-05: without a terminal nobody is asked.
	const places = " -f ../../examples/paris.yaml --reason=first"
	says("1 would change; omit --dry-run to do it.", "depots apply --dry-run"+places)
	says("No depots yet", "depots list")
	says("depot DEPOT-PARIS-01: new", "depots apply"+places)
	says("2 changed, 0 unchanged.", "warehouses apply"+places)
	says("0 changed, 2 unchanged.", "warehouses apply"+places)
	says("BLOOD MEDICINE VACCINE", "warehouses list")
	says("warehouse WH-SOUTH: deleted", "warehouses delete WH-SOUTH --reason=closed")
	says("Nobody holds some:key", "locks show some:key")
	says(`"drones": []`, "drones list --json")
}

// F-INT-06: a script takes the key from standard output, and a State Manager accepts it. A key that has
// leaked is revoked by its text. Nothing else shows the key.
func TestKeys_WorkFromStandardOutputToTheAPI(t *testing.T) {
	t.Parallel()
	hosts := emutest.Hosts(t)
	out, note := statemanager.Run(t, hosts, 0, "keys", "create", "--role=operator", "--expires=12h", "--reason=night shift", "--by=ann")
	key := strings.TrimSuffix(out, "\n")
	if !apikeys.Is(key) || len(key) != 47 || strings.Contains(note, key[4:]) || !strings.Contains(note, "it is not shown again") {
		t.Fatalf("printed %q and noted %q", out, note)
	}
	p := statemanager.Start(t, hosts, "serve", "--http-addr=127.0.0.1:0", "--api-keys=require")
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
	p.Keep = &logged
	status := func(key string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/drones", nil)
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := []int{status(""), status(key)}; !slices.Equal(got, []int{401, 200}) {
		t.Errorf("answers %v, want 401 without the key and 200 with it", got)
	}
	for subject, want := range map[string]string{"keys list": "night shift", "keys revoke " + key + " --reason=leaked": "was revoked by", "audit person ann": "made for role operator"} {
		if out, note := statemanager.Run(t, hosts, 0, strings.Fields(subject)...); !strings.Contains(out, want) || strings.Contains(out+note, key[4:]) {
			t.Errorf("%.12s: printed %s%s, want %q", subject, out, note, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	p.Interrupt()
	if strings.Contains(logged.String(), key[4:]) {
		t.Error("the log shows the key")
	}
}

// F-REG-01, F-REG-02, F-REG-12, F-REG-15: the commands of the starter file's head register its
// drones, and each other command of the registry does what it says.
func TestCommands_RegisterTheStarterFilesDrones(t *testing.T) {
	hosts := emutest.Hosts(t)
	run := func(code int, want, args string) {
		t.Helper()
		if out, errs := statemanager.Run(t, hosts, code, strings.Fields(args)...); !strings.Contains(out+errs, want) {
			t.Errorf("%s: printed %q and %q, want %q", args, out, errs, want)
		}
	}
	const file = "../../examples/paris.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	run(1, "home depot DEPOT-PARIS-01 does not exist; apply it first", "drones apply -f "+file+" --reason=first")
	applied := 0
	for line := range strings.Lines(string(text)) {
		if _, command, is := strings.Cut(line, "#   statemanager "); is {
			run(0, " 0 unchanged.", strings.NewReplacer("examples", "../../examples", `"first places"`, "first", `"first drones"`, "first").Replace(command))
			applied++
		}
	}
	if applied != 4 {
		t.Errorf("%d commands in the head of %s, want 4", applied, file)
	}
	run(0, "0 changed, 3 unchanged.", "drones apply -f "+file+" --reason=again")
	run(0, "0 changed, 1 unchanged.", "drone-types apply -f "+file+" --reason=again")
	run(0, "COURIER-5", "drone-types list")
	run(0, "PARIS-03", "drones list")
	run(0, "Every drone is registered", "drones list --legacy")
	run(0, "PARIS-02, registered", "drones show PARIS-02")
	run(0, `"payloadCapacityKg": 4`, "drones show PARIS-02 --json")
	run(1, "PARIS-99", "drones show PARIS-99")
	run(0, "1 would change", "drones maintain PARIS-01 --item=propellers --reason=new --dry-run")
	run(0, "drone PARIS-01: changed", "drones maintain PARIS-01 --item=propellers --reason=new")
	run(1, "ITEM_UNKNOWN", "drones maintain PARIS-01 --item=wings --reason=new")
	run(1, "IN_USE", "drone-types delete COURIER-5 --reason=gone")
	for _, drone := range []string{"PARIS-01", "PARIS-02"} {
		run(0, "drone "+drone+": retired", "drones delete "+drone+" --reason=sold")
	}
	run(0, "droneType COURIER-5: deleted", "drone-types delete COURIER-5 --reason=gone")
	run(1, "DRONE_TYPE_UNKNOWN", "drones apply -f "+file+" --reason=back")
	bad := filepath.Join(t.TempDir(), "bad.csv")
	if err := os.WriteFile(bad, []byte("id,homeDepotId,payloadCapacityKg,unregistered\nD,H,0,true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(1, "bad.csv: line 2: unregistered is written by the State Manager only; leave it out", "drones apply -f "+bad+" --reason=first")
}

// F-API-05, F-IN-01, F-IN-03: a file that would be read wrongly is refused with the place
// and the fix, and the preview tells what was not there before.
func TestCommands_ReadPlacesAsTheyAreMeant(t *testing.T) {
	hosts, dir := emutest.Hosts(t), t.TempDir()
	point := func(id, coordinates, more string) string {
		return `{"type": "FeatureCollection"` + more + `, "features": [{"type": "Feature", "id": "` + id + `", "geometry": {"type": "Point", "coordinates": ` + coordinates + `}, "properties": {}}]}`
	}
	for _, c := range []struct {
		code             int
		name, text, want string
	}{
		{1, "latin1.geojson", point("D-\xe9", "[2.35, 48.86]", ""), "line 1, byte offset 72: byte 0xe9 is not UTF-8; save or send the text as UTF-8"},
		{1, "surrogate.geojson", point(`D-\ud800`, "[2.35, 48.86]", ""), "half of a surrogate pair"},
		{1, "twice.csv", "id,name,lat,lon,lat,lon\nD,,1,2,3,4\n", `line 1: "lat" is given twice; give it once`},
		{1, "excel.csv", "\ufeffid;lat;lon\r\nD;48,5;2,35\r\n", `the columns are separated by ";"; save the table with commas between columns and points in decimals`},
		{1, "crs.geojson", point("D", "[48.86, 2.35]", `, "crs": {"type": "name", "properties": {"name": "EPSG:4326"}}`), "give coordinates as WGS 84 longitude, latitude (RFC 7946)"},
		{1, "nfd.yaml", "depots:\n- {id: \"D-e\u0301\", position: {lat: 48.86, lon: 2.35}}\n", `not in Unicode normal form NFC; give "D-é"`},
		{1, "guess.yaml", "depots:\n- {id: D, xy: 1, position: {lat: 48.86, lon: 2.35}}\n", "the fields are id, name, position, capacity, chargingSlots, group\n"},
		{0, "mark.geojson", "\ufeff" + point("D", "[2.35, 48.86]", ""), "depot D: new\n  position: none -> 48.860000,2.350000\n1 would change"},
		{0, "mark", "\ufeff" + point("D", "[2.35, 48.86]", ""), "depot D: new"},
		{0, "swapped.csv", "id,lat,lon\nA,48.86,2.35\nB,48.85,2.36\nC,2.34,48.87\n", "depot C: new\n  position: none -> 2.340000,48.870000\n  warning: position is"},
	} {
		file := filepath.Join(dir, c.name)
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs := statemanager.Run(t, hosts, c.code, "depots", "apply", "-f", file, "--reason=x", "--dry-run")
		if !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: printed %q and %q, want %q", c.name, out, errs, c.want)
		}
	}
}

// F-API-01: serve answers over HTTP; a taken port is refused before it starts.
func TestServe_AnswersOverHTTP(t *testing.T) {
	hosts := emutest.Hosts(t)
	p := statemanager.Start(t, hosts, "serve", "--http-addr=127.0.0.1:0")
	url, _, _ := strings.Cut(p.Find(p.Stderr, `"url":"`), `"`)
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
	statemanager.Refuses(t, hosts, 1, []string{"--http-addr", "in use"}, "serve", "--http-addr="+strings.TrimPrefix(url, "http://"))
	http.DefaultClient.CloseIdleConnections()
	p.Interrupt()
	if _, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		t.Error("the port is still open")
	}
}

// A command fails if its listing cannot be printed, even an empty one.
func TestCommands_FailWithoutTheirOutput(t *testing.T) {
	hosts := emutest.Hosts(t)
	unwritable, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer unwritable.Close()
	for _, line := range []string{"orders list", "locks list"} {
		cmd := statemanager.Command(t, hosts, strings.Fields(line)...)
		var errs strings.Builder
		cmd.Stdout, cmd.Stderr = unwritable, &errs
		_ = cmd.Run() // the exit code is checked below
		if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(errs.String(), "statemanager: write /dev/stdout: ") {
			t.Errorf("%s: exit code %d, printed %q", line, code, errs.String())
		}
	}
}

// F-API-02: the error of a moved command names the new one.
func TestStatemanager_NamesTheNewHomeOfDevAndEmulators(t *testing.T) {
	for _, args := range []string{"dev --drones=3", "emulators"} {
		name, _, _ := strings.Cut(args, " ")
		statemanager.Refuses(t, connect.Config{}, 1, []string{`use "dronefleet ` + name + `"`, "go run ./cmd/dronefleet " + name}, strings.Fields(args)...)
	}
}

// F-REG-01: what operate.md tells people to type for a first fleet makes one, whose drone is
// ready and whose order waits.
func TestOperateDocument_MakesAFirstFleet(t *testing.T) {
	hosts := emutest.Hosts(t)
	page, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "### Your first fleet\n")
	section, _, _ = strings.Cut(section, "\n###")
	var typed []string
	for line := range strings.Lines(section) {
		if command, is := strings.CutPrefix(line, "    "); is {
			typed = append(typed, strings.ReplaceAll(command, "go run ./cmd/statemanager", statemanager.Path(t)))
		}
	}
	if len(typed) != 10 {
		t.Fatalf("%d lines to type: %q", len(typed), typed)
	}
	dir := t.TempDir()
	file, err := os.ReadFile("../../examples/paris.yaml")
	if err == nil {
		err = errors.Join(os.Mkdir(filepath.Join(dir, "examples"), 0o700), os.WriteFile(filepath.Join(dir, "examples", "paris.yaml"), file, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	statemanager.Start(t, hosts, "serve", "--http-addr=off", "--log-level=error")
	store := firestoretx.New(emutest.Connect(t, hosts).Firestore, firestoretx.Config{})
	shell := exec.Command("bash", "-e")
	shell.Dir, shell.Env, shell.Stdin = dir, statemanager.Command(t, hosts).Env, strings.NewReader(strings.Join(typed[:9], ""))
	if out, err := shell.CombinedOutput(); err != nil || !strings.Contains(string(out), "never heard of") {
		t.Fatalf("%v: %s", err, out)
	}
	emutest.Eventually(t, "drone and order", func() error {
		order, err := store.Order(t.Context(), "O-1")
		if err != nil || order.Status != domain.OrderPending || !order.ColdChain || order.WeightKg != 1 {
			return fmt.Errorf("%+v, %w", order, err)
		}
		drone, err := store.Drone(t.Context(), "PARIS-01")
		if err != nil || drone.Status != domain.DroneIdle || drone.Battery != 95 || drone.Unregistered {
			return fmt.Errorf("%+v, %w", drone, err)
		}
		return nil
	})
}
