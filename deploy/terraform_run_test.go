package deploy_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/zclconf/go-cty/cty"
	"go.yaml.in/yaml/v3"

	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/shutdown"
	"github.com/dronefleet/dronefleet/testkit/tfmodule"
)

// checkCloudRun looks at what runs: how many, as whom, with which flags and
// environment, and how they are probed.
func checkCloudRun(p *tfmodule.Plan, way map[string]cty.Value, w *world) []string {
	want := map[string][]string{"service statemanager": {"serve"}, "service optimizer": {"run"}}
	switch {
	case is(way, "runtime", "gke"):
		want = nil
	case is(way, "optimizer_mode", "job"):
		want = map[string][]string{"service statemanager": {"serve"}, "job optimizer": {"once"}}
	}
	if hasGateway(way) {
		want["service gateway"] = []string{"link"}
	}
	var found, names []string
	for _, i := range p.Of(service) {
		name := "service " + i.Text("name")
		names = append(names, name)
		template, ok := i.Only("template")
		if !ok || len(template.Blocks["containers"]) == 0 {
			found = append(found, name+" has no container")
			continue
		}
		found = append(found, checkContainer(name, template, template.Blocks["containers"][0], want[name], way, w)...)
		found = append(found, checkService(name, i, template)...)
		_, signIn := way["sign_in"]
		signIn = signIn || apiKeys(way) == "require"
		if i.Attributes["invoker_iam_disabled"].True() != (signIn && i.Text("name") == "statemanager" || i.Text("name") == "gateway") {
			found = append(found, name+" is open to callers without Google's credentials, or closed to browsers that sign in")
		}
	}
	for _, i := range slices.Concat(p.Of(service), p.Of("google_cloud_run_v2_job")) {
		// Terraform deletes only what is not protected, and one optimizer_mode
		// takes the place of the other.
		set := i.Attributes["deletion_protection"]
		protected := set == cty.NilVal || set.True()
		switch name := i.Text("name"); {
		case protected && name == "optimizer":
			found = append(found, "optimizer_mode cannot be changed: Terraform may not delete what runs")
		case protected && name == "gateway":
			found = append(found, "gateway_image cannot be taken away: Terraform may not delete what runs")
		case !protected && name == "statemanager":
			found = append(found, i.Text("name")+" may be deleted")
		}
	}
	for _, i := range p.Of("google_cloud_run_v2_job") {
		name := "job " + i.Text("name")
		names = append(names, name)
		outer, _ := i.Only("template")
		template, ok := outer.Only("template")
		if !ok || len(template.Blocks["containers"]) != 1 {
			found = append(found, name+" has not one container")
			continue
		}
		found = append(found, checkContainer(name, template, template.Blocks["containers"][0], want[name], way, w)...)
		if n := len(p.Of("google_cloud_scheduler_job")); n != 1 {
			found = append(found, fmt.Sprintf("%d schedules start the job, want 1", n))
		}
	}
	return append(found, compare("Cloud Run", slices.Sorted(maps.Keys(want)), names)...)
}

// checkContainer holds a container to the binary it runs.
func checkContainer(name string, template, c tfmodule.Block, args []string, way map[string]cty.Value, w *world) []string {
	var found []string
	_, short, _ := strings.Cut(name, " ")
	if want := fmt.Sprintf("%s@%s.iam.gserviceaccount.com", short, testProject); template.Text("service_account") != want {
		found = append(found, fmt.Sprintf("%s runs as %q, want %s", name, template.Text("service_account"), want))
	}
	got := texts(c.Attributes["args"])
	if !slices.Equal(got, args) {
		found = append(found, fmt.Sprintf("%s is started with %v, want %v", name, got, args))
	}
	known := w.settings[short+" "+strings.Join(args, " ")]
	given := map[string]string{}
	var environment []string
	for _, e := range c.Blocks["env"] {
		given[e.Text("name")] = e.Text("value")
		environment = append(environment, e.Text("name")+"="+e.Text("value"))
		if !known[e.Text("name")] {
			found = append(found, fmt.Sprintf("%s: %s %s knows no variable %s", name, short, strings.Join(args, " "), e.Text("name")))
		}
	}
	config, err := w.start(short, got, environment)
	if err != nil {
		found = append(found, fmt.Sprintf("%s cannot start: %v", name, err))
	}
	if short == "statemanager" && err == nil && endsAfter(short, config) >= cloudRunGrace { // a gateway's drones send again what is not acked
		found = append(found, name+" is killed before it has settled what it holds")
	}
	if short == "statemanager" && err == nil {
		found = append(found, checkTokens(name, config, way)...)
		found = append(found, checkSecrets(name, c, way)...)
	}
	for _, p := range c.Blocks["ports"] {
		port, _ := p.Attributes["container_port"].AsBigFloat().Int64()
		listens := "http-addr"
		if short == "gateway" {
			listens = "link-addr"
		}
		if !strings.Contains(config, fmt.Sprintf("%s: :%d", listens, port)) {
			found = append(found, fmt.Sprintf("%s does not listen on port %d, which Cloud Run calls", name, port))
		}
	}
	if short == "gateway" {
		found = append(found, checkGateway(template, c, config, way)...)
		way = nil // a gateway holds no lock
	}
	found = append(found, checkLockStore(name, template, c, way)...)
	if given["GOOGLE_CLOUD_PROJECT"] != testProject {
		found = append(found, name+" does not know its project")
	}
	return found
}

// hasGateway reports whether a gateway runs on Cloud Run.
func hasGateway(way map[string]cty.Value) bool {
	image, given := way["gateway_image"]
	return given && image.AsString() != ""
}

// checkGateway looks at what long streams of gRPC need, and at who may open them. F-GW-02, F-GW-07
func checkGateway(template, c tfmodule.Block, config string, way map[string]cty.Value) []string {
	var found []string
	complain := complaints(&found, "service gateway")
	port, _ := c.Only("ports")
	complain(port.Text("name") != "h2c", "gets HTTP/1, over which there is no gRPC")
	complain(template.Text("timeout") != "3600s", "ends streams before Cloud Run must")
	resources, _ := c.Only("resources")
	idle := resources.Attributes["cpu_idle"]
	complain(idle == cty.NilVal || idle.True(), "has its CPU taken away while it sends commands")
	type settings struct {
		Drones    int      `yaml:"max-drones"`
		Keys      bool     `yaml:"drone-keys"`
		Issuer    string   `yaml:"oidc-issuer"`
		Audiences []string `yaml:"oidc-audience"`
		Grants    []string `yaml:"oidc-drone"`
		Claim     string   `yaml:"oidc-drone-claim"`
		Metrics   string   `yaml:"metrics-access"`
	}
	most, _ := template.Attributes["max_instance_request_concurrency"].AsBigFloat().Int64()
	want := settings{Drones: int(most), Keys: true, Claim: "sub", Metrics: "local"}
	if oidc, given := way["gateway_oidc"]; given {
		want.Issuer, want.Claim = oidc.GetAttr("issuer").AsString(), oidc.GetAttr("drone_claim").AsString()
		want.Audiences, want.Grants = texts(oidc.GetAttr("audiences")), texts(oidc.GetAttr("drones"))
	}
	var got settings
	complain(yaml.Unmarshal([]byte(config), &got) != nil, "has settings that cannot be read")
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		complain(true, "does not take what the variables say (-variables +taken):\n"+diff)
	}
	return found
}

// checkLockStore holds a container to the variables of the lock store: its address, the
// secret of its password, and the network to reach it by.
func checkLockStore(name string, template, c tfmodule.Block, way map[string]cty.Value) []string {
	var address, secret, network string
	for _, e := range c.Blocks["env"] {
		switch e.Text("name") {
		case "LOCK_STORE":
			address = e.Text("value")
		case connect.LockPassword:
			source, _ := e.Only("value_source")
			ref, _ := source.Only("secret_key_ref")
			secret = ref.Text("secret")
		}
	}
	if access, ok := template.Only("vpc_access"); ok {
		through, _ := access.Only("network_interfaces")
		network = through.Text("subnetwork")
	}
	var found []string
	want := func(what, got, variable string) {
		expected := ""
		switch v, given := way[variable]; {
		case given && v.Type() == cty.String:
			expected = v.AsString()
		case given:
			expected = v.GetAttr("subnetwork").AsString()
		}
		if got != expected {
			found = append(found, fmt.Sprintf("%s has %s %q, want %q of variable %s", name, what, got, expected, variable))
		}
	}
	want("the lock store", address, "lock_url")
	want("its password from secret", secret, "lock_password_secret")
	want("the subnetwork", network, "lock_network")
	return found
}

// apiKeys is the variable api_keys.
func apiKeys(way map[string]cty.Value) string {
	if v, given := way["api_keys"]; given {
		return v.AsString()
	}
	return "off"
}

// checkTokens holds the settings of a State Manager's API to the module's variables.
func checkTokens(name, config string, way map[string]cty.Value) []string {
	type settings struct {
		Audiences []string `yaml:"oidc-audience"`
		Viewers   []string `yaml:"oidc-viewer"`
		Operators []string `yaml:"oidc-operator"`
		Auditors  []string `yaml:"oidc-auditor"`
		Requests  []string `yaml:"oidc-requester"`
		Claim     string   `yaml:"requester-claim"`
		Keys      string   `yaml:"api-keys"`
		Insecure  bool     `yaml:"insecure-http"`
		ClientID  string   `yaml:"oidc-client-id"`
		PublicURL string   `yaml:"public-url"`
		IAP       string   `yaml:"iap-audience"`
		ByProxy   []string `yaml:"iap-viewer"`
		Proxied   []string `yaml:"iap-operator"`
		ProxyRead []string `yaml:"iap-auditor"`
		ProxyAsks []string `yaml:"iap-requester"`
		Hosts     []string `yaml:"http-hosts"`
		Reads     float64  `yaml:"rate-reads"`
		Commands  float64  `yaml:"rate-commands"`
		Streams   int      `yaml:"max-streams"`
		Proxies   []string `yaml:"trusted-proxies"`
		Origins   []string `yaml:"cors-origins"`
		Metrics   string   `yaml:"metrics-access"`
	}
	optional := func(way cty.Value, name string) (list []string) {
		if way.Type().HasAttribute(name) {
			list = texts(way.GetAttr(name))
		}
		return list
	}
	_, issuer := way["oidc"]
	_, proxy := way["iap"]
	want := settings{Claim: "requester", Keys: apiKeys(way), Insecure: !issuer && !proxy && apiKeys(way) != "require", Metrics: "local", Hosts: []string{"*.run.app"}, Reads: 20, Commands: 2, Streams: 20, Proxies: []string{"169.254.0.0/16"}}
	if oidc, given := way["oidc"]; given {
		want.Audiences, want.Viewers, want.Operators = texts(oidc.GetAttr("audiences")), texts(oidc.GetAttr("viewers")), texts(oidc.GetAttr("operators"))
		want.Auditors, want.Requests = optional(oidc, "auditors"), optional(oidc, "requesters")
		if oidc.Type().HasAttribute("requester_claim") {
			want.Claim = oidc.GetAttr("requester_claim").AsString()
		}
	}
	if iap, given := way["iap"]; given {
		want.IAP = iap.GetAttr("audience").AsString()
		want.ByProxy, want.Proxied = texts(iap.GetAttr("viewers")), texts(iap.GetAttr("operators"))
		want.ProxyRead, want.ProxyAsks = optional(iap, "auditors"), optional(iap, "requesters")
	}
	if hosts, given := way["http_hosts"]; given {
		want.Hosts = append(want.Hosts, texts(hosts)...)
	}
	if browsers, given := way["sign_in"]; given {
		want.ClientID, want.PublicURL = browsers.GetAttr("client_id").AsString(), browsers.GetAttr("public_url").AsString()
	}
	if rates, given := way["rate_limits"]; given {
		want.Reads, _ = rates.GetAttr("reads").AsBigFloat().Float64()
		want.Commands, _ = rates.GetAttr("commands").AsBigFloat().Float64()
		streams, _ := rates.GetAttr("streams").AsBigFloat().Int64()
		want.Streams = int(streams)
	}
	if proxies, given := way["trusted_proxies"]; given {
		want.Proxies = nil
		for _, p := range texts(proxies) {
			if !strings.Contains(p, "/") {
				p += "/32"
			}
			want.Proxies = append(want.Proxies, p)
		}
	}
	if origins, given := way["cors_origins"]; given {
		want.Origins = texts(origins)
	}
	var got settings
	if err := yaml.Unmarshal([]byte(config), &got); err != nil {
		return []string{fmt.Sprintf("%s has settings that cannot be read: %v", name, err)}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		return []string{fmt.Sprintf("%s does not take what the variables say (-variables +taken):\n%s", name, diff)}
	}
	return nil
}

// checkSecrets holds the secrets that a container gets to the variables that name them.
func checkSecrets(name string, c tfmodule.Block, way map[string]cty.Value) []string {
	want := []string{"OTEL_EXPORTER_OTLP_HEADERS collector-headers"}
	if browsers, given := way["sign_in"]; given {
		want = append(want, "DRONEFLEET_SESSION_KEY "+browsers.GetAttr("session_key").AsString(), "DRONEFLEET_OIDC_CLIENT_SECRET "+browsers.GetAttr("client_secret").AsString())
	}
	if key, given := way["webhook_key_secret"]; given {
		want = append(want, "DRONEFLEET_WEBHOOK_KEY "+key.AsString())
	}
	if password, given := way["lock_password_secret"]; given {
		want = append(want, connect.LockPassword+" "+password.AsString())
	}
	var got []string
	for _, e := range c.Blocks["env"] {
		if source, ok := e.Only("value_source"); ok {
			ref, _ := source.Only("secret_key_ref")
			got = append(got, e.Text("name")+" "+ref.Text("secret"))
		}
	}
	return compare(name+" gets the secret", want, got)
}

// checkReaders holds the accounts that may read secrets to the containers that get them.
func checkReaders(p *tfmodule.Plan) []string {
	var found []string
	for _, i := range p.Of(service) {
		template, _ := i.Only("template")
		member := "serviceAccount:" + template.Text("service_account")
		for _, c := range template.Blocks["containers"] {
			for _, e := range c.Blocks["env"] {
				source, _ := e.Only("value_source")
				ref, is := source.Only("secret_key_ref")
				if is && !slices.ContainsFunc(p.Of("google_secret_manager_secret_iam_member"), func(g tfmodule.Instance) bool {
					return g.Text("secret_id") == ref.Text("secret") && g.Text("member") == member
				}) {
					found = append(found, fmt.Sprintf("service %s may not read the secret %s", i.Text("name"), ref.Text("secret")))
				}
			}
		}
	}
	return found
}

// cloudRunGrace is how long after SIGTERM Cloud Run kills.
// https://cloud.google.com/run/docs/container-contract#instance-shutdown
const cloudRunGrace = 10 * time.Second

// endsAfter is how long after SIGTERM a State Manager or gateway of that configuration
// has ended. F-FLOW-01, F-GW-07
func endsAfter(program, config string) time.Duration {
	_, rest, _ := strings.Cut(config, "drain-timeout: ")
	text, _, _ := strings.Cut(rest, " ")
	drain, err := time.ParseDuration(text)
	if err != nil {
		return math.MaxInt64 / 2 // nobody knows when
	}
	if program == "gateway" {
		return shutdown.Gateway(drain).Total()
	}
	return shutdown.StateManager(drain).Total()
}

// checkService looks at what keeps a service that pulls at work.
func checkService(name string, i tfmodule.Instance, template tfmodule.Block) []string {
	var found []string
	complain := func(bad bool, what string) {
		if bad {
			found = append(found, name+" "+what)
		}
	}
	scaling, _ := template.Only("scaling")
	least := scaling.Attributes["min_instance_count"]
	complain(least == cty.NilVal || least.LessThan(cty.NumberIntVal(1)).True(), "may have no instance, and then nobody works")
	c := template.Blocks["containers"][0]
	resources, _ := c.Only("resources")
	idle := resources.Attributes["cpu_idle"]
	complain(idle == cty.NilVal || idle.True(), "has its CPU taken away between requests, of which there are none")
	startup, _ := c.Only("startup_probe")
	ready, _ := startup.Only("http_get")
	complain(ready.Text("path") != "/readyz", "takes over before it is ready")
	host, _ := ready.Only("http_headers")
	complain(host.Text("name") != "Host" || host.Text("value") != "localhost", "has a probe that does not name the host localhost, and is refused")
	liveness, _ := c.Only("liveness_probe")
	alive, _ := liveness.Only("http_get")
	complain(alive.Text("path") != "/healthz", "is not restarted when it hangs, or is restarted in every outage of Firestore")
	if name == "service gateway" {
		complain(i.Text("ingress") != "INGRESS_TRAFFIC_ALL", "is out of reach of drones")
	} else {
		complain(i.Text("ingress") != "INGRESS_TRAFFIC_INTERNAL_ONLY", "is reached from everywhere unless told otherwise")
	}
	return found
}

// texts are the strings of a list; nil if there is none.
func texts(list cty.Value) []string {
	if list == cty.NilVal || list.IsNull() {
		return nil
	}
	var out []string
	for _, v := range list.AsValueSlice() {
		out = append(out, v.AsString())
	}
	return out
}
