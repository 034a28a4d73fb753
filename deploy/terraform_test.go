package deploy_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/dronefleet/dronefleet/testkit/tfmodule"
)

const (
	testProject = "fleet-test"
	terraform   = "terraform" // the module's folder
	service     = "google_cloud_run_v2_service"
)

// deployFiles are the files of this folder that are no code of Go.
func deployFiles(t testing.TB) tfmodule.Files {
	t.Helper()
	files := tfmodule.Files{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && name != "." {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) == ".go" {
			return nil
		}
		files[filepath.ToSlash(name)], err = os.ReadFile(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func textSet(items ...string) cty.Value {
	values := make([]cty.Value, len(items))
	for i, item := range items {
		values[i] = cty.StringVal(item)
	}
	if len(values) == 0 {
		return cty.SetValEmpty(cty.String)
	}
	return cty.SetVal(values)
}

// settings are values for the module's variables that use all it can do; more
// replaces or adds.
func settings(more map[string]cty.Value) map[string]cty.Value {
	s := map[string]cty.Value{
		"project":               cty.StringVal(testProject),
		"region":                cty.StringVal("europe-west9"),
		"firestore_location":    cty.StringVal("europe-west9"),
		"statemanager_image":    cty.StringVal("images.example/statemanager:v1"),
		"optimizer_image":       cty.StringVal("images.example/optimizer:v1"),
		"mission_subscriptions": textSet("missions-gateway"),
		"drone_publishers":      textSet("serviceAccount:gateway@example.iam.gserviceaccount.com"),
		"hospital_publishers":   textSet("serviceAccount:hospital@example.iam.gserviceaccount.com"),
		"operators":             textSet("group:operators@example.com"),
		"auditors":              textSet("group:auditors@example.com"),
		"api_invokers":          textSet("group:operators@example.com"),
		"alert_emails":          textSet("on-call@example.com"),
		"otlp_endpoint":         cty.StringVal("https://collector.example:4317"),
		"otlp_headers_secret":   cty.StringVal("collector-headers"),
	}
	maps.Copy(s, more)
	return s
}

// tokens is a value of variable oidc.
func tokens(issuer, audience, viewer, operator string) cty.Value {
	list := func(item string) cty.Value {
		if item == "" {
			return cty.ListValEmpty(cty.String)
		}
		return cty.ListVal([]cty.Value{cty.StringVal(item)})
	}
	return cty.ObjectVal(map[string]cty.Value{
		"issuer": cty.StringVal(issuer), "audiences": list(audience), "viewers": list(viewer), "operators": list(operator),
	})
}

// droneTokens is a value of variable gateway_oidc.
func droneTokens(issuer, drones, claim string) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"issuer": cty.StringVal(issuer), "audiences": textList("link"), "drones": textList(drones), "drone_claim": cty.StringVal(claim),
	})
}

// lockNetwork is a value of variable lock_network.
var lockNetwork = cty.ObjectVal(map[string]cty.Value{"network": cty.StringVal("fleet"), "subnetwork": cty.StringVal("fleet-paris")})

// withLocks are the variables of a fleet with a lock store of its own.
func withLocks(url string) map[string]cty.Value {
	return map[string]cty.Value{
		"lock_url": cty.StringVal(url), "lock_password_secret": cty.StringVal("lock-password"), "lock_network": lockNetwork,
	}
}

// signIn, proxied and rates are values of variables sign_in, iap and rate_limits.
func signIn(id, url, secret, key string) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"client_id": cty.StringVal(id), "public_url": cty.StringVal(url), "client_secret": cty.StringVal(secret), "session_key": cty.StringVal(key),
	})
}

func proxied(audience string, viewers ...string) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{"audience": cty.StringVal(audience), "viewers": textList(viewers...), "operators": cty.ListValEmpty(cty.String)})
}

// with is an object with more attributes.
func with(object cty.Value, more map[string]cty.Value) cty.Value {
	attributes := object.AsValueMap()
	maps.Copy(attributes, more)
	return cty.ObjectVal(attributes)
}

func rates(reads, commands, streams float64) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"reads": cty.NumberFloatVal(reads), "commands": cty.NumberFloatVal(commands), "streams": cty.NumberFloatVal(streams),
	})
}

func textList(items ...string) cty.Value {
	values := make([]cty.Value, len(items))
	for i, item := range items {
		values[i] = cty.StringVal(item)
	}
	if len(values) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	return cty.ListVal(values)
}

// bigquery is a value of variable history.
func bigquery(project, location string, days float64) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{"project_number": cty.StringVal(project), "location": cty.StringVal(location), "days": cty.NumberFloatVal(days)})
}

// ways are the ways to deploy that the module offers.
var ways = map[string]map[string]cty.Value{
	"Cloud Run":                 settings(nil),
	"Cloud Run, optimizer job":  settings(map[string]cty.Value{"optimizer_mode": cty.StringVal("job")}),
	"Cloud Run, named database": settings(map[string]cty.Value{"firestore_database": cty.StringVal("fleet")}),
	"Cloud Run, tokens":         settings(map[string]cty.Value{"oidc": tokens("https://accounts.example.com", "fleet", "groups=CN=nurses,OU=Groups", "groups=operators")}),
	"Cloud Run, browsers": settings(map[string]cty.Value{
		"oidc":    tokens("https://accounts.example.com", "fleet", "hd=example.com", "groups=operators"),
		"sign_in": signIn("client-1", "https://fleet.example.com", "client-secret", "session-key"), "iap": proxied("/projects/1/apps/fleet", "groups=nurses"), "http_hosts": textList("fleet.example.com", "*.example.org"),
		"rate_limits": rates(50, 0.5, 0), "trusted_proxies": textList("169.254.0.0/16", "203.0.113.7"), "cors_origins": textList("https://board.example.com", "http://localhost:3000"),
	}),
	"Cloud Run, keys":             settings(map[string]cty.Value{"api_keys": cty.StringVal("require")}),
	"Cloud Run, keys of invokers": settings(map[string]cty.Value{"api_keys": cty.StringVal("accept")}),
	"Cloud Run, requesters": settings(map[string]cty.Value{
		"oidc": with(tokens("https://accounts.example.com", "fleet", "", "groups=operators"), map[string]cty.Value{
			"auditors": textList("groups=audit"), "requesters": textList("groups=wards", "groups=labs"), "requester_claim": cty.StringVal("hospital.id"),
		}),
		"iap": with(proxied("/projects/1/apps/fleet", "groups=nurses"), map[string]cty.Value{"auditors": textList("groups=board"), "requesters": textList("groups=desks")}),
	}),
	"Cloud Run, Identity-Aware Proxy": settings(map[string]cty.Value{
		"iap": proxied("/projects/1/global/backendServices/2", "email=ann@example.com"), "live_telemetry": cty.False, "trusted_proxies": cty.ListValEmpty(cty.String),
	}),
	"Cloud Run, large fleet":      settings(map[string]cty.Value{"sharded_indexes": cty.True, "require_sender": cty.True, "webhook_key_secret": cty.StringVal("webhook-key")}),
	"Cloud Run, years of records": settings(map[string]cty.Value{"telemetry_archive": cty.StringVal("archive-1.fleet.telemetry"), "retention": cty.StringVal("events=30y,decisions=30y,orders=1y,cycles=30d")}),
	"Cloud Run, history":          settings(map[string]cty.Value{"history": bigquery("123456789012", "europe-west9", 30)}),
	"Cloud Run, Enterprise":       settings(map[string]cty.Value{"firestore_edition": cty.StringVal("ENTERPRISE")}),
	"Cloud Run, large Enterprise": settings(map[string]cty.Value{
		"firestore_edition": cty.StringVal("ENTERPRISE"), "sharded_indexes": cty.True,
	}),
	"Cloud Run, gateway": settings(map[string]cty.Value{"gateway_image": cty.StringVal("images.example/gateway:v1")}),
	"Cloud Run, gateway with tokens, locks in Redis": func() map[string]cty.Value {
		s := settings(withLocks("rediss://10.0.0.3:6378/0?replicas=1"))
		s["gateway_image"], s["gateway_oidc"] = cty.StringVal("images.example/gateway:v1"), droneTokens("https://accounts.example.com", "vendor=A,B", "drone.id")
		return s
	}(),
	"Cloud Run, locks in Redis": settings(withLocks("rediss://10.0.0.3:6378/0?replicas=1")),
	"Cloud Run, optimizer job, locks in PostgreSQL": func() map[string]cty.Value {
		s := settings(withLocks("postgres://fleet@10.0.0.3:5432/locks?sslmode=require"))
		s["optimizer_mode"] = cty.StringVal("job")
		return s
	}(),
	"GKE": settings(map[string]cty.Value{
		"runtime": cty.StringVal("gke"), "statemanager_image": cty.StringVal(""), "optimizer_image": cty.StringVal(""),
	}),
}

// computed is what Google Cloud makes up for a resource, as far as others refer
// to it.
func computed(kind string, config map[string]cty.Value) map[string]cty.Value {
	text := func(name string) string {
		v, ok := config[name]
		if !ok || v.IsNull() {
			return ""
		}
		return v.AsString()
	}
	format := func(f string, args ...any) cty.Value { return cty.StringVal(fmt.Sprintf(f, args...)) }
	switch kind {
	case "google_pubsub_topic":
		return map[string]cty.Value{"id": format("projects/%s/topics/%s", testProject, text("name"))}
	case "google_pubsub_subscription":
		return map[string]cty.Value{"id": format("projects/%s/subscriptions/%s", testProject, text("name"))}
	case "google_service_account":
		email := fmt.Sprintf("%s@%s.iam.gserviceaccount.com", text("account_id"), testProject)
		return map[string]cty.Value{
			"email": cty.StringVal(email), "member": cty.StringVal("serviceAccount:" + email),
			"name": format("projects/%s/serviceAccounts/%s", testProject, email),
		}
	case service:
		return map[string]cty.Value{"uri": format("https://%s.run.example", text("name"))}
	case "google_cloud_run_v2_job":
		return map[string]cty.Value{"id": format("projects/%s/locations/%s/jobs/%s", testProject, text("location"), text("name"))}
	case "google_bigquery_dataset", "google_bigquery_table", "google_bigquery_routine":
		return map[string]cty.Value{"id": cty.StringVal(kind)}
	case "google_secret_manager_secret":
		return map[string]cty.Value{"id": format("projects/%s/secrets/%s", testProject, text("secret_id"))}
	case "google_secret_manager_secret_version":
		return map[string]cty.Value{"version": cty.StringVal("1")}
	case "google_firebaserules_ruleset":
		return map[string]cty.Value{"name": format("projects/%s/rulesets/1", testProject)}
	case "google_project_iam_custom_role":
		return map[string]cty.Value{"id": format("projects/%s/roles/%s", testProject, text("role_id"))}
	case "google_monitoring_notification_channel":
		return map[string]cty.Value{"id": format("projects/%s/notificationChannels/1", testProject)}
	}
	return nil
}

// plan evaluates the module among files.
func plan(files tfmodule.Files, variables map[string]cty.Value) (*tfmodule.Plan, error) {
	m, err := tfmodule.Parse(files, terraform)
	if err != nil {
		return nil, err
	}
	return m.Evaluate(variables, computed)
}

// problems lists what is wrong with the module among files, deployed in a way.
func problems(files tfmodule.Files, way map[string]cty.Value, w *world) []string {
	p, err := plan(files, way)
	if err != nil {
		return []string{err.Error()}
	}
	list := w.schema.Check(p)
	list = append(list, checkTopics(p, way, w)...)
	list = append(list, checkSubscriptions(p, w)...)
	list = append(list, checkFirestore(p, way, w, files)...)
	list = append(list, checkAccess(p, way)...)
	list = append(list, checkCloudRun(p, way, w)...)
	list = append(list, checkReaders(p)...)
	list = append(list, checkHistory(p, way, files)...)
	list = append(list, checkMonitoring(p, w)...)
	return list
}

// Deployed in any way, the module creates exactly what the code needs, in a form that
// Google's provider accepts.
func TestTerraform_MakesWhatTheCodeNeeds(t *testing.T) {
	w, files := newWorld(t), deployFiles(t)
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			for _, p := range problems(files, way, w) {
				t.Error(p)
			}
		})
	}
}

// The schema the module is checked against is that of the version it pins.
func TestTerraform_PinsTheProviderItWasCheckedWith(t *testing.T) {
	m, err := tfmodule.Parse(deployFiles(t), terraform)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	if got := m.ProviderVersions()["google"]; got != w.schema.Version {
		t.Errorf("versions.tf asks for google %q; the schema in testdata is of %q", got, w.schema.Version)
	}
	lock, err := os.ReadFile(terraform + "/.terraform.lock.hcl")
	if err != nil {
		t.Fatal(err)
	}
	pinned := regexp.MustCompile(`(?s)^provider "registry\.terraform\.io/hashicorp/google" \{\n  version     = "(\S+)"\n  constraints = "(\S+)"\n  hashes = \[\n((?:    "zh:[0-9a-f]{64}",\n)+)`).
		FindSubmatch(regexp.MustCompile(`(?m)^(#.*)?\n`).ReplaceAll(lock, nil))
	if pinned == nil {
		t.Fatalf("the lock file does not pin the provider's checksums:\n%s", lock)
	}
	if string(pinned[1]) != w.schema.Version || string(pinned[2]) != w.schema.Version {
		t.Errorf("the lock file is of google %s (%s), want %s", pinned[1], pinned[2], w.schema.Version)
	}
}

// Every variable with a validation refuses bad values with a message that names the
// variable.
func TestTerraform_RefusesBadValues(t *testing.T) {
	bad := map[string][]cty.Value{
		"project":            {cty.StringVal("X"), cty.StringVal("")},
		"region":             {cty.StringVal("paris")},
		"firestore_location": {cty.StringVal("eu")},
		"firestore_database": {cty.StringVal("A"), cty.StringVal("")},
		"runtime":            {cty.StringVal("vm")},
		"firestore_edition":  {cty.StringVal("enterprise"), cty.StringVal("")},
		"statemanager_image": {cty.StringVal(""), cty.StringVal("a/b"), cty.StringVal("a/b:latest")},
		"optimizer_image":    {cty.StringVal(""), cty.StringVal("localhost:5000/b"), cty.StringVal("a/b:latest")},
		"statemanager_instances": {
			cty.ObjectVal(map[string]cty.Value{"min": cty.NumberIntVal(0), "max": cty.NumberIntVal(2)}),
			cty.ObjectVal(map[string]cty.Value{"min": cty.NumberIntVal(3), "max": cty.NumberIntVal(2)}),
		},
		"gateway_image": {cty.StringVal("a/b"), cty.StringVal("a/b:latest")},
		"gateway_instances": {
			cty.ObjectVal(map[string]cty.Value{"min": cty.NumberIntVal(0), "max": cty.NumberIntVal(2)}),
			cty.ObjectVal(map[string]cty.Value{"min": cty.NumberIntVal(3), "max": cty.NumberIntVal(2)}),
		},
		"gateway_oidc":          {droneTokens("https://accounts.example.com", "*", "sub")}, // gateway_image is missing; see below
		"optimizer_mode":        {cty.StringVal("cron")},
		"optimizer_instances":   {cty.NumberIntVal(0), cty.NumberFloatVal(1.5)},
		"optimizer_schedule":    {cty.StringVal("every minute")},
		"ingress":               {cty.StringVal("public")},
		"api_invokers":          {textSet("allUsers"), textSet("allAuthenticatedUsers")},
		"drone_publishers":      {textSet("allUsers")},
		"hospital_publishers":   {textSet("someone@example.com")},
		"operators":             {textSet("allUsers")},
		"auditors":              {textSet("allUsers"), textSet("ann@example.com")},
		"telemetry_archive":     {cty.StringVal("telemetry"), cty.StringVal("p.d"), cty.StringVal("p:d.t")},
		"history":               {bigquery("fleet", "EU", 30), bigquery("1", "eu", 30), bigquery("1", "EU", 0.5)},
		"retention":             {cty.StringVal("events"), cty.StringVal("events=30"), cty.StringVal("events=30h"), cty.StringVal("events=30y;cycles=9d")},
		"mission_subscriptions": {textSet("telemetry-statemanager"), textSet("missions-"), textSet("missions-a b")},
		"alert_emails":          {textSet("on-call")},
		"alert_channels":        {textSet("pager")},
		"log_level":             {cty.StringVal("loud")},
		"metrics_sidecar_image": {cty.StringVal("collector")},
		"oidc": {
			tokens("http://accounts.example.com", "fleet", "*", ""), tokens("https://accounts.example.com", "", "*", ""),
			tokens("https://accounts.example.com", "fleet", "", ""),
		},
		"api_keys":            {cty.StringVal("on"), cty.StringVal("")},
		"sign_in":             {signIn("c", "https://fleet.example.com", "s", "k")}, // oidc is missing; see below
		"iap":                 {proxied("fleet", "*"), proxied("/projects/1/apps/fleet")},
		"http_hosts":          {textList("*"), textList("https://fleet.example.com"), textList("fleet.example.com:80")},
		"rate_limits":         {rates(-1, 2, 20), rates(20, -2, 20), rates(20, 2, 1.5)},
		"trusted_proxies":     {textList("proxy.example.com"), textList("10.0.0.0/8/1"), textList("*")},
		"cors_origins":        {textList("*"), textList("https://board.example.com/"), textList("board.example.com"), textList("https://Board.example.com")},
		"otlp_endpoint":       {cty.StringVal("collector:4317")},
		"webhook_key_secret":  {cty.StringVal("projects/p/secrets/s")},
		"otlp_headers_secret": {cty.StringVal("projects/p/secrets/s")},
		"gke_namespace":       {cty.StringVal("Fleet")},
		"lock_url": {
			cty.StringVal("10.0.0.3:6379"), cty.StringVal("mysql://db/locks"), cty.StringVal("redis://:hunter2@10.0.0.3:6379/0"),
			cty.StringVal("postgres://app:hunter2@10.0.0.3/locks"), cty.StringVal("postgres://app@10.0.0.3/locks?password=hunter2"),
		},
		"lock_password_secret": {cty.StringVal("projects/p/secrets/s"), cty.StringVal("lock-password")}, // the second without lock_url
		"lock_network":         {lockNetwork},                                                           // likewise
	}
	files := deployFiles(t)
	m, err := tfmodule.Parse(files, terraform)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range m.Variables() {
		values, ok := bad[name]
		if !ok && !slices.Contains([]string{"protect", "live_telemetry", "ramp", "require_sender", "sharded_indexes"}, name) { // true or false
			t.Errorf("variable %s has no rule that is tested here", name)
		}
		for _, v := range values {
			_, err := m.Evaluate(settings(map[string]cty.Value{name: v}), computed)
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s = %#v is answered with: %v", name, v, err)
			}
		}
	}
	for _, v := range []cty.Value{
		signIn("", "https://fleet.example.com", "", "k"), signIn("c", "http://fleet.example.com", "", "k"),
		signIn("c", "https://fleet.example.com", "projects/p/secrets/s", "k"), signIn("c", "https://fleet.example.com", "", ""),
	} {
		with := map[string]cty.Value{"oidc": tokens("https://accounts.example.com", "fleet", "*", ""), "sign_in": v}
		if _, err := m.Evaluate(settings(with), computed); err == nil || !strings.Contains(err.Error(), "sign_in") {
			t.Errorf("sign_in = %#v is answered with: %v", v, err)
		}
	}
	for _, v := range []cty.Value{droneTokens("http://accounts.example.com", "*", "sub"), droneTokens("https://accounts.example.com", "*", "")} {
		with := map[string]cty.Value{"gateway_image": cty.StringVal("a/b:v1"), "gateway_oidc": v}
		if _, err := m.Evaluate(settings(with), computed); err == nil || !strings.Contains(err.Error(), "gateway_oidc") {
			t.Errorf("gateway_oidc = %#v is answered with: %v", v, err)
		}
	}
	both := map[string]cty.Value{"oidc": tokens("https://accounts.example.com", "fleet", "groups=a", ""), "iap": proxied("/projects/1/apps/fleet", "*")}
	if _, err := m.Evaluate(settings(both), computed); err == nil || !strings.Contains(err.Error(), "iap") {
		t.Errorf("* beside oidc and iap is answered with: %v", err)
	}
	if _, err := m.Evaluate(settings(map[string]cty.Value{"otlp_endpoint": cty.StringVal("")}), computed); err == nil {
		t.Error("otlp_headers_secret without otlp_endpoint is taken")
	}
}

// terraform.tfvars.example is copied by readers, so it must be valid.
func TestTerraform_ExampleValuesAreTaken(t *testing.T) {
	files := deployFiles(t)
	values, err := tfmodule.ReadValues(files["terraform/terraform.tfvars.example"])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan(files, values); err != nil {
		t.Error(err)
	}
}

// The module works without any of the optional variables.
func TestTerraform_NeedsFewValues(t *testing.T) {
	few := map[string]cty.Value{}
	for _, name := range []string{"project", "region", "firestore_location", "statemanager_image", "optimizer_image"} {
		few[name] = settings(nil)[name]
	}
	p, err := plan(deployFiles(t), few)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.Of(service)); n != 2 {
		t.Errorf("%d Cloud Run services, want 2", n)
	}
}
