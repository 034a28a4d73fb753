package deploy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/testkit/longtest"
	"github.com/dronefleet/dronefleet/testkit/tfmodule"
)

const manifests = "k8s/base"

// manifestFolders hold the manifests; the second is for overlays that want gateways.
var manifestFolders = []string{manifests, "k8s/gateway"}

// cluster is what the manifests describe.
type cluster struct {
	objects     []object
	config      map[string]configMap
	accounts    map[string]serviceAccount
	deployments map[string]deployment
	services    map[string]kubeService
	budgets     map[string]disruptionBudget
	autoscalers map[string]autoscaler
	monitoring  map[string]podMonitoring
	policies    map[string]networkPolicy
	files       []string // that the kustomization names
}

// readCluster reads every manifest among files, and refuses fields that
// Kubernetes would not know.
func readCluster(files tfmodule.Files) (*cluster, error) {
	c := &cluster{
		config: map[string]configMap{}, accounts: map[string]serviceAccount{}, deployments: map[string]deployment{},
		services: map[string]kubeService{}, budgets: map[string]disruptionBudget{}, autoscalers: map[string]autoscaler{},
		monitoring: map[string]podMonitoring{}, policies: map[string]networkPolicy{},
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !slices.Contains(manifestFolders, path.Dir(name)) {
			continue
		}
		if path.Base(name) == "kustomization.yaml" {
			var k struct{ Resources []string }
			if err := yaml.Unmarshal(files[name], &k); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			c.files = append(c.files, k.Resources...)
			continue
		}
		if err := c.readFile(files[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return c, nil
}

func (c *cluster) readFile(text []byte) error {
	for documents := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var node yaml.Node
		if err := documents.Decode(&node); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := c.add(&node); err != nil {
			return err
		}
	}
}

func (c *cluster) add(node *yaml.Node) error {
	var o object
	if err := node.Decode(&o); err != nil {
		return err
	}
	c.objects = append(c.objects, o)
	switch o.APIVersion + " " + o.Kind {
	case "v1 Namespace":
		var discard namespace
		return strict(node, &discard)
	case "v1 ConfigMap":
		return into(c.config, node, o)
	case "v1 ServiceAccount":
		return into(c.accounts, node, o)
	case "apps/v1 Deployment":
		return into(c.deployments, node, o)
	case "v1 Service":
		return into(c.services, node, o)
	case "policy/v1 PodDisruptionBudget":
		return into(c.budgets, node, o)
	case "autoscaling/v2 HorizontalPodAutoscaler":
		return into(c.autoscalers, node, o)
	case "monitoring.googleapis.com/v1 PodMonitoring":
		return into(c.monitoring, node, o)
	case "networking.k8s.io/v1 NetworkPolicy":
		return into(c.policies, node, o)
	}
	return fmt.Errorf("%s %s is of no kind that we use", o.APIVersion, o.Kind)
}

func into[T any](m map[string]T, node *yaml.Node, o object) error {
	if _, twice := m[o.Metadata.Name]; twice {
		return fmt.Errorf("%s %s is there twice", o.Kind, o.Metadata.Name)
	}
	var v T
	if err := strict(node, &v); err != nil {
		return fmt.Errorf("%s %s: %w", o.Kind, o.Metadata.Name, err)
	}
	m[o.Metadata.Name] = v
	return nil
}

// strict decodes a node, refusing fields that v has not.
func strict(node *yaml.Node, v any) error {
	text, err := yaml.Marshal(node)
	if err != nil {
		return err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	return decoder.Decode(v)
}

// clusterProblems lists what is wrong with the manifests among files.
func clusterProblems(files tfmodule.Files, w *world) []string {
	c, err := readCluster(files)
	if err != nil {
		return []string{err.Error()}
	}
	var names []string
	for name := range files {
		if slices.Contains(manifestFolders, path.Dir(name)) && path.Base(name) != "kustomization.yaml" {
			names = append(names, path.Base(name))
		}
	}
	found := compare("manifest in kustomization.yaml", names, c.files)
	found = append(found, compare("deployment", []string{"statemanager", "optimizer", "gateway"}, slices.Collect(maps.Keys(c.deployments)))...)
	for _, name := range slices.Sorted(maps.Keys(c.deployments)) {
		d := c.deployments[name]
		found = append(found, checkPod(name, d)...)
		found = append(found, checkProbes(name, d)...)
		found = append(found, checkNeighbours(name, d, c)...)
		found = append(found, checkStart(name, d, c, w)...)
		found = append(found, checkFiles(name, d)...)
	}
	found = append(found, checkAutoscaler(c, w)...)
	return append(found, checkPolicies(c)...)
}

// checkPod looks at the rights of a pod and at its share of the machine.
func checkPod(name string, d deployment) []string {
	var found []string
	complain := complaints(&found, "deployment "+name)
	pod := d.Spec.Template.Spec
	complain(len(pod.Containers) != 1, "has not one container")
	if len(pod.Containers) != 1 {
		return found
	}
	s := pod.SecurityContext
	complain(!s.RunAsNonRoot || s.RunAsUser == 0 || s.RunAsGroup == 0, "may run as root")
	complain(s.SeccompProfile.Type != "RuntimeDefault", "has no seccomp profile")
	complain(pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken, "gets a token of Kubernetes that it does not need")
	complain(len(pod.TopologySpreadConstraints) == 0, "may have all its pods on one node")
	for _, t := range pod.TopologySpreadConstraints {
		complain(!maps.Equal(t.LabelSelector.MatchLabels, d.Spec.Selector.MatchLabels), "spreads pods that are not its own")
	}
	c := pod.Containers[0]
	complain(!c.SecurityContext.ReadOnlyRootFilesystem, "may write its root file system")
	complain(c.SecurityContext.AllowPrivilegeEscalation == nil || *c.SecurityContext.AllowPrivilegeEscalation, "may gain privileges")
	complain(!slices.Equal(c.SecurityContext.Capabilities.Drop, []string{"ALL"}), "keeps capabilities")
	for _, resource := range []string{"cpu", "memory"} {
		complain(c.Resources.Requests[resource] == "" || c.Resources.Limits[resource] == "", "has no request or no limit of "+resource)
	}
	for key, value := range d.Spec.Selector.MatchLabels {
		complain(d.Spec.Template.Metadata.Labels[key] != value, "does not select its own pods")
	}
	return found
}

func complaints(found *[]string, who string) func(bool, string) {
	return func(bad bool, what string) {
		if bad {
			*found = append(*found, who+" "+what)
		}
	}
}

func checkProbes(name string, d deployment) []string {
	var found []string
	complain := complaints(&found, "deployment "+name)
	pod := d.Spec.Template.Spec
	unavailable := d.Spec.Strategy.RollingUpdate.MaxUnavailable
	complain(unavailable == nil || *unavailable != 0, "takes pods away before new ones are ready")
	for _, c := range pod.Containers {
		ports := map[string]bool{}
		for _, p := range c.Ports {
			ports[p.Name] = true
		}
		for kind, want := range map[string]struct {
			probe *probe
			path  string
		}{
			"startup": {c.StartupProbe, "/healthz"}, "readiness": {c.ReadinessProbe, "/readyz"}, "liveness": {c.LivenessProbe, "/healthz"},
		} {
			if want.probe == nil {
				complain(true, "has no "+kind+" probe")
				continue
			}
			complain(want.probe.HTTPGet.Path != want.path, fmt.Sprintf("has a %s probe of %s, want %s", kind, want.probe.HTTPGet.Path, want.path))
			complain(!ports[want.probe.HTTPGet.Port], fmt.Sprintf("has a %s probe of port %q, which it has not", kind, want.probe.HTTPGet.Port))
		}
	}
	return found
}

// checkFiles looks for the file of each variable that names one among the pod's secrets, which the
// pod's user must be able to read.
func checkFiles(name string, d deployment) []string {
	var found []string
	complain := complaints(&found, "deployment "+name)
	pod := d.Spec.Template.Spec
	secrets := map[string]bool{}
	for _, v := range pod.Volumes {
		secrets[v.Name] = v.Secret.SecretName != ""
		complain(v.Secret.DefaultMode != 0o440 || pod.SecurityContext.FSGroup != pod.SecurityContext.RunAsGroup, "cannot read volume "+v.Name+", or others can")
	}
	for _, c := range pod.Containers {
		folders := map[string]bool{}
		for _, m := range c.VolumeMounts {
			folders[m.MountPath] = true
			complain(!secrets[m.Name] || !m.ReadOnly, "mounts "+m.Name+", which is not a secret or not read-only")
		}
		for _, e := range c.Env {
			complain(strings.HasPrefix(e.Value, "/") && !folders[path.Dir(e.Value)], "has no file "+e.Value+" of "+e.Name)
		}
	}
	return found
}

// jobs are the names under which alerts know what is scraped.
var jobs = map[string]string{"statemanager": "dronefleet-statemanager", "optimizer": "dronefleet-optimizer", "gateway": "dronefleet-gateway"}

// checkNeighbours checks the objects that belong to a deployment.
func checkNeighbours(name string, d deployment, c *cluster) []string {
	var found []string
	complain := complaints(&found, "deployment "+name)
	labels := d.Spec.Template.Metadata.Labels
	selects := func(s map[string]string) bool {
		for key, value := range s {
			if labels[key] != value {
				return false
			}
		}
		return len(s) > 0
	}
	account, ok := c.accounts[d.Spec.Template.Spec.ServiceAccountName]
	complain(!ok || d.Spec.Template.Spec.ServiceAccountName != name, "has no service account of its own")
	google := account.Metadata.Annotations["iam.gke.io/gcp-service-account"]
	complain(!strings.HasPrefix(google, name+"@") || !strings.HasSuffix(google, ".iam.gserviceaccount.com"),
		fmt.Sprintf("acts as %q, which Terraform does not make", google))
	budget, ok := c.budgets[name]
	complain(!ok || budget.Spec.MinAvailable < 1 || !selects(budget.Spec.Selector.MatchLabels), "may be drained to nothing")
	monitored, ok := c.monitoring[jobs[name]]
	complain(!ok || !selects(monitored.Spec.Selector.MatchLabels), "is not scraped as job "+jobs[name])
	for _, e := range monitored.Spec.Endpoints {
		complain(e.Path != "/metrics" || e.Port != "http", "is scraped at "+e.Port+e.Path)
	}
	complain(!selects(c.policies["dronefleet"].Spec.PodSelector.MatchLabels), "is under no network policy that lets it work")
	if service, ok := c.services[name]; ok {
		complain(!selects(service.Spec.Selector), "is not behind its service")
		for _, p := range service.Spec.Ports {
			complain(!slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c container) bool { return c.port(p.TargetPort) != 0 }), "has no port "+p.TargetPort+", which its service calls")
		}
		outside := slices.ContainsFunc(c.policies[name].Spec.Ingress, func(i ingress) bool { return slices.Contains(i.Ports, policyPort{Port: "link"}) })
		complain(service.Spec.Type == "LoadBalancer" && !outside, "is not reached through its service: no network policy lets callers in")
	}
	return found
}

// checkStart runs the binary with the deployment's settings, which only prints them.
func checkStart(name string, d deployment, c *cluster, w *world) []string {
	if len(d.Spec.Template.Spec.Containers) != 1 {
		return nil
	}
	container := d.Spec.Template.Spec.Containers[0]
	var found, environment []string
	complain := complaints(&found, "deployment "+name)
	known, ok := w.settings[name+" "+strings.Join(container.Args[:min(1, len(container.Args))], " ")]
	complain(!ok, fmt.Sprintf("starts %s with %v", name, container.Args))
	add := func(variable, value string) {
		complain(!known[variable], "sets "+variable+", which it does not know")
		environment = append(environment, variable+"="+value)
	}
	for _, from := range container.EnvFrom {
		config, ok := c.config[from.ConfigMapRef.Name]
		complain(!ok, "takes its settings from ConfigMap "+from.ConfigMapRef.Name+", which does not exist")
		for _, variable := range slices.Sorted(maps.Keys(config.Data)) {
			add(variable, config.Data[variable])
		}
	}
	for _, e := range container.Env {
		add(e.Name, e.Value)
	}
	config, err := w.start(container.Image, container.Args, environment)
	complain(err != nil, fmt.Sprintf("cannot start: %v", err))
	grace := time.Duration(d.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	complain(name != "optimizer" && err == nil && endsAfter(name, config) >= grace, "is killed before it has settled what it holds")
	for _, p := range container.Ports {
		complain(!strings.Contains(config, p.Name+"-addr: :"+strconv.Itoa(p.ContainerPort)), "does not listen where its port "+p.Name+" is")
	}
	var api struct {
		Metrics string   `yaml:"metrics-access"`
		Hosts   []string `yaml:"http-hosts"`
	}
	complain(yaml.Unmarshal([]byte(config), &api) != nil, "has settings that cannot be read")
	_, scraped := c.monitoring["dronefleet-"+name]
	complain(scraped && api.Metrics != "open", "keeps its metrics from the collector")
	for service, s := range c.services {
		if s.Spec.Ports[0].TargetPort != "http" {
			continue
		}
		for _, host := range []string{service, service + ".dronefleet", service + ".dronefleet.svc", service + ".dronefleet.svc.cluster.local"} {
			complain(service == name && !slices.Contains(api.Hosts, host), "refuses callers of its service "+host)
		}
	}
	return found
}

func checkAutoscaler(c *cluster, w *world) []string {
	var found []string
	a := c.autoscalers["statemanager"]
	complain := complaints(&found, "autoscaler")
	complain(a.Spec.ScaleTargetRef.Kind != "Deployment" || c.deployments[a.Spec.ScaleTargetRef.Name].Metadata.Name == "", "scales "+a.Spec.ScaleTargetRef.Name)
	complain(c.deployments[a.Spec.ScaleTargetRef.Name].Spec.Replicas != nil, "fights with the deployment's own number of replicas")
	complain(a.Spec.MinReplicas < 2 || a.Spec.MaxReplicas < a.Spec.MinReplicas, "may leave one State Manager alone")
	complain(len(a.Spec.Metrics) == 0, "goes by nothing")
	for _, m := range a.Spec.Metrics {
		metric := strings.NewReplacer(".", "_", "|subscription|", ":subscription_").Replace(strings.Replace(m.External.Metric.Name, "pubsub.googleapis.com", "pubsub_googleapis_com", 1))
		complain(!pubsubMetrics[metric], "goes by "+m.External.Metric.Name)
		subscription := m.External.Metric.Selector.MatchLabels["resource.labels.subscription_id"]
		complain(w.subscriptions[subscription] == nil, "looks at subscription "+subscription)
		complain(subscription == pubsubio.DeadLetterSubscription(pubsubio.TopicTelemetry), "looks at dead letters")
	}
	return found
}

func checkPolicies(c *cluster) []string {
	var found []string
	complain := complaints(&found, "network policy")
	closed := c.policies["closed"]
	complain(len(closed.Spec.PodSelector.MatchLabels) != 0 || len(closed.Spec.PolicyTypes) != 2 || len(closed.Spec.Ingress)+len(closed.Spec.Egress) != 0,
		"closed lets something through")
	open := c.policies["dronefleet"]
	complain(len(open.Spec.PolicyTypes) != 2, "dronefleet leaves a direction open")
	for _, rule := range open.Spec.Ingress {
		complain(len(rule.From) == 0 || len(rule.Ports) == 0, "dronefleet lets everybody in")
	}
	for _, rule := range open.Spec.Egress {
		complain(len(rule.To) == 0 || len(rule.Ports) == 0, "dronefleet lets everything out")
	}
	// Names are resolved by pods of the cluster, by the node, or, with Cloud DNS, by
	// the metadata server: https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-dns
	for _, server := range []string{"kube-system", "169.254.20.10/32", "169.254.169.254/32"} {
		for _, protocol := range []string{"UDP", "TCP"} {
			complain(!slices.ContainsFunc(open.Spec.Egress, func(rule egress) bool {
				return slices.Contains(rule.Ports, policyPort{"53", protocol}) && slices.ContainsFunc(rule.To, func(p peer) bool {
					return p.IPBlock != nil && p.IPBlock.CIDR == server ||
						p.NamespaceSelector != nil && p.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] == server
				})
			}), "dronefleet asks "+server+" for no name by "+protocol)
		}
	}
	return found
}

// The manifests describe a fleet whose binaries start, that follows the rules of a
// restricted namespace, and that matches the alerts and Terraform.
func TestKubernetes_DescribesAFleet(t *testing.T) {
	for _, p := range clusterProblems(deployFiles(t), newWorld(t)) {
		t.Error(p)
	}
}

// Each of these mistakes in the manifests is found and named.
func TestKubernetes_MistakesAreFound(t *testing.T) {
	longtest.Only(t, "starts the binaries many times")
	w, files := newWorld(t), deployFiles(t)
	for _, m := range []struct{ file, right, wrong, says string }{
		{"../gateway/gateway.yaml", "args: [link]", "args: [links]", "starts gateway with [links]"},
		{"../gateway/gateway.yaml", `value: ":8443"`, `value: ":8444"`, "does not listen where its port link is"},
		{"../gateway/gateway.yaml", "/etc/gateway/tls.key", "/etc/gatewy/tls.key", "has no file /etc/gatewy/tls.key"},
		{"../gateway/gateway.yaml", "DRONEFLEET_TLS_KEY", "DRONEFLEET_CLIENT_CERT", "sets DRONEFLEET_CLIENT_CERT"},
		{"../gateway/gateway.yaml", "terminationGracePeriodSeconds: 40", "terminationGracePeriodSeconds: 20", "killed before"},
		{"../gateway/gateway.yaml", "fsGroup: 65532", "fsGroup: 1000", "cannot read volume certificate"},
		{"../gateway/gateway.yaml", "name: drones\n              mountPath", "name: dones\n              mountPath", "mounts dones"},
		{"../gateway/service.yaml", "targetPort: link", "targetPort: links", "has no port links"},
		{"../gateway/service.yaml", "- port: link", "- port: http", "no network policy lets callers in"},
		{"../gateway/identity.yaml", "gateway@my-project", "gate@my-project", "which Terraform does not make"},
		{"../gateway/kustomization.yaml", "  - identity.yaml\n", "", "identity.yaml is missing"},
		{"statemanager.yaml", "args: [serve]", "args: [server]", "starts statemanager with [server]"},
		{"statemanager.yaml", "args: [serve]", "args: [serve, --shards=2]", "cannot start"},
		{"statemanager.yaml", "HTTP_ADDR", "HTTP_ADDRESS", "sets HTTP_ADDRESS"},
		{"statemanager.yaml", `value: ":8080"`, `value: ":8081"`, "does not listen"},
		{"statemanager.yaml", "value: open", "value: local", "keeps its metrics from the collector"},
		{"optimizer.yaml", "DRONEFLEET_METRICS_ACCESS", "DRONEFLEET_LOG_LEVEL", "cannot start"},
		{"statemanager.yaml", "statemanager.dronefleet.svc,", "", "refuses callers of its service statemanager.dronefleet.svc"},
		{"statemanager.yaml", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "may write"},
		{"statemanager.yaml", "runAsNonRoot: true", "runAsNonRoot: false", "run as root"},
		{"statemanager.yaml", "runAsUser: 65532", "runAsUser: 0", "run as root"},
		{"statemanager.yaml", "drop: [ALL]", "drop: [NET_RAW]", "keeps capabilities"},
		{"statemanager.yaml", "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "gain privileges"},
		{"statemanager.yaml", "type: RuntimeDefault", "type: Unconfined", "seccomp"},
		{"statemanager.yaml", "path: /readyz", "path: /ready", "readiness probe of /ready,"},
		{"statemanager.yaml", "livenessProbe:", "livenesProbe:", "livenesProbe not found"},
		{"statemanager.yaml", "terminationGracePeriodSeconds: 40", "terminationGracePeriodSeconds: 10", "killed before"},
		{"statemanager.yaml", "maxUnavailable: 0", "maxUnavailable: 1", "takes pods away"},
		{"statemanager.yaml", "memory: 1Gi", "storage: 1Gi", "limit of memory"},
		{"optimizer.yaml", "serviceAccountName: optimizer", "serviceAccountName: statemanager", "service account of its own"},
		{"serviceaccounts.yaml", "statemanager@my-project", "manager@my-project", "which Terraform does not make"},
		{"configmap.yaml", "LOG_LEVEL: info", "LOG_LEVEL: loud", "cannot start"},
		{"configmap.yaml", "name: dronefleet", "name: fleet", "which does not exist"},
		{"monitoring.yaml", "name: dronefleet-optimizer", "name: optimizer", "is not scraped as job dronefleet-optimizer"},
		{"autoscaling.yaml", "telemetry-statemanager", "telemetry-manager", "telemetry-manager"},
		{"autoscaling.yaml", "num_undelivered_messages", "undelivered_messages", "goes by"},
		{"disruption.yaml", "minAvailable: 1", "minAvailable: 0", "drained to nothing"},
		{"networkpolicy.yaml", "app.kubernetes.io/part-of: dronefleet", "app: dronefleet", "under no network policy"},
		{"networkpolicy.yaml", "policyTypes: [Ingress, Egress]", "policyTypes: [Ingress]", "network policy"},
		{"networkpolicy.yaml", "kubernetes.io/metadata.name: kube-system", "kubernetes.io/metadata.name: kube-dns", "for no name by UDP"},
		{"kustomization.yaml", "  - networkpolicy.yaml\n", "", "networkpolicy.yaml is missing"},
	} {
		name := path.Join(manifests, m.file)
		if !strings.Contains(string(files[name]), m.right) {
			t.Errorf("%s does not hold %q any more", name, m.right)
			continue
		}
		changed := maps.Clone(files)
		changed[name] = []byte(strings.ReplaceAll(string(files[name]), m.right, m.wrong))
		if found := strings.Join(clusterProblems(changed, w), "\n"); !strings.Contains(found, m.says) {
			t.Errorf("%s: %q instead of %q: want a problem with %q, found:\n%s", m.file, m.wrong, m.right, m.says, found)
		}
	}
}

// The example overlay sets project and images everywhere, and kustomize applies it, with gateways
// or without.
func TestKubernetes_ExampleOverlay(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	for images, more := range map[int]func(string) string{
		2: func(text string) string { return text },
		3: strings.NewReplacer("# components:", "components:", "#   - ../../gateway\n", "  - ../../gateway\n").Replace,
	} {
		// Another project than the one the base happens to name.
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("k8s")); err != nil {
			t.Fatal(err)
		}
		overlay := filepath.Join(dir, "overlays/example/kustomization.yaml")
		text, err := os.ReadFile(overlay)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(overlay, []byte(more(strings.ReplaceAll(string(text), "my-project", "another-one"))), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), kubectl, "kustomize", filepath.Dir(overlay))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("kubectl kustomize: %v\n%s", err, stderr.String())
		}
		if strings.Contains(string(out), "my-project") {
			t.Error("the overlay leaves the project of the base somewhere")
		}
		if n := len(regexp.MustCompile(`(?m)^ +image: \S+-docker\.pkg\.dev/another-one/dronefleet/\w+:\S+$`).FindAll(out, -1)); n != images {
			t.Errorf("%d of %d images are named", n, images)
		}
	}
}
