package deploy_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	"go.yaml.in/yaml/v3"

	"github.com/dronefleet/dronefleet/deploy/internal/tfmodule"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/shutdown"
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
	}
	for _, i := range slices.Concat(p.Of(service), p.Of("google_cloud_run_v2_job")) {
		// Terraform deletes only what is not protected, and one optimizer_mode
		// takes the place of the other.
		set := i.Attributes["deletion_protection"]
		protected := set == cty.NilVal || set.True()
		switch optimizer := i.Text("name") == "optimizer"; {
		case protected && optimizer:
			found = append(found, "optimizer_mode cannot be changed: Terraform may not delete what runs")
		case !protected && !optimizer:
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
	if short == "statemanager" && err == nil && endsAfter(config) >= cloudRunGrace {
		found = append(found, name+" is killed before it has settled what it holds")
	}
	if oidc, given := way["oidc"]; given && short == "statemanager" && err == nil {
		found = append(found, checkTokens(name, config, oidc)...)
	}
	for _, p := range c.Blocks["ports"] {
		port, _ := p.Attributes["container_port"].AsBigFloat().Int64()
		if !strings.Contains(config, fmt.Sprintf("http-addr: :%d", port)) {
			found = append(found, fmt.Sprintf("%s does not listen on port %d, which Cloud Run calls", name, port))
		}
	}
	found = append(found, checkLockStore(name, template, c, way)...)
	if given["GOOGLE_CLOUD_PROJECT"] != testProject {
		found = append(found, name+" does not know its project")
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

// checkTokens holds the settings of a State Manager to the variable oidc.
func checkTokens(name, config string, oidc cty.Value) []string {
	var got struct {
		Audiences []string `yaml:"oidc-audience"`
		Viewers   []string `yaml:"oidc-viewer"`
		Operators []string `yaml:"oidc-operator"`
	}
	if err := yaml.Unmarshal([]byte(config), &got); err != nil {
		return []string{fmt.Sprintf("%s has settings that cannot be read: %v", name, err)}
	}
	var found []string
	for attribute, list := range map[string][]string{"audiences": got.Audiences, "viewers": got.Viewers, "operators": got.Operators} {
		if want := texts(oidc.GetAttr(attribute)); !slices.Equal(list, want) {
			found = append(found, fmt.Sprintf("%s takes as %s %v, want %v", name, attribute, list, want))
		}
	}
	return found
}

// cloudRunGrace is how long after SIGTERM Cloud Run kills.
// https://cloud.google.com/run/docs/container-contract#instance-shutdown
const cloudRunGrace = 10 * time.Second

// endsAfter is how long after SIGTERM a State Manager of that configuration has
// ended. F-FLOW-01
func endsAfter(config string) time.Duration {
	_, rest, _ := strings.Cut(config, "drain-timeout: ")
	text, _, _ := strings.Cut(rest, " ")
	drain, err := time.ParseDuration(text)
	if err != nil {
		return math.MaxInt64 / 2 // nobody knows when
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
	liveness, _ := c.Only("liveness_probe")
	alive, _ := liveness.Only("http_get")
	complain(alive.Text("path") != "/healthz", "is not restarted when it hangs, or is restarted in every outage of Firestore")
	complain(i.Text("ingress") != "INGRESS_TRAFFIC_INTERNAL_ONLY", "is reached from everywhere unless told otherwise")
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
