package deploy_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/dronefleet/dronefleet/testkit/longtest"
	"github.com/dronefleet/dronefleet/testkit/tfmodule"
)

// The checks must be able to fail: each of these mistakes, made in the module or in a file
// that it reads, is found and named.
func TestTerraform_MistakesAreFound(t *testing.T) {
	longtest.Only(t, "evaluates the module a hundred times")
	w, files := newWorld(t), deployFiles(t)
	for _, m := range []struct {
		file, right, wrong string
		says               string
	}{
		// Topics and subscriptions.
		{"pubsub.tf", `["telemetry", "orders", "decisions", "links"]`, `["telemetry", "orders", "links"]`, "Invalid index"},
		{"pubsub.tf", `toset(["missions"])`, `toset(["mission"])`, "Invalid index"},
		{"pubsub.tf", `  name = each.value`, `  name = "${each.value}-v2"`, "topic telemetry is missing"},
		{"pubsub.tf", `  name = each.value`, `  name = "${each.value}-v2"`, "topic orders-dead-letter-v2 is of no use"},
		{"pubsub.tf", `  name                       = each.key`, `  name                       = replace(each.key, "telemetry-s", "telemetry.s")`, "subscription telemetry-statemanager is missing"},
		{"pubsub.tf", `"${t}-dead-letter"`, `"${t}-deadletter"`, "Invalid index"},
		{"pubsub.tf", `"${t}-statemanager" =>`, `"${t}-manager" =>`, "Invalid index"},
		{"pubsub.tf", `ack_deadline_seconds = 30`, `ack_deadline_seconds = 20`, "telemetry-statemanager (-code +terraform)"},
		{"pubsub.tf", `ack_deadline_seconds = 60`, `ack_deadline_seconds = 30`, "orders-dead-letter-review (-code +terraform)"},
		{"pubsub.tf", `ordered = true`, `ordered = false`, "enable_message_ordering"},
		{"pubsub.tf", `maximum_backoff = "30s"`, `maximum_backoff = "600s"`, "retry_policy"},
		{"pubsub.tf", `ordered = false, retry = null`, `ordered = false, retry = { minimum_backoff = "1s", maximum_backoff = "30s" }`, "retry_policy"},
		{"pubsub.tf", `"604800s"`, `"86400s"`, "message_retention_duration"},
		{"pubsub.tf", `ttl = ""`, `ttl = "2678400s"`, "expiration_policy"},
		{"pubsub.tf", `  dynamic "retry_policy" {`, "  dead_letter_policy {\n dead_letter_topic = \"x\"\n }\n dynamic \"retry_policy\" {", "dead_letter_policy"},
		{"pubsub.tf", `google_pubsub_topic.fleet["telemetry"].id`, `google_pubsub_topic.fleet["orders"].id`, "telemetry-archive archives"},
		{"bigquery.tf", `history-${each.key}`, `history.${each.key}`, "topic history-events is missing"},
		{"bigquery.tf", `fleet.${each.key}_raw"`, `fleet.${each.key}"`, "subscription of the history:"},
		{"bigquery.tf", `= each.key != "reports"`, `= true`, "in columns: false is missing"},
		{"bigquery.tf", `google_pubsub_topic.fleet["telemetry"].id`, `google_pubsub_topic.fleet["orders"].id`, "telemetry to"},
		{"bigquery.tf", `time = "applied_at"`, `time = "published_at"`, "not partitioned by the day"},
		{"bigquery.tf", `cluster = ["topic"]`, `cluster = ["subject"]`, "clustered on subject"},
		{"bigquery.tf", `86400000`, `86400`, "does not keep its rows"},
		{"bigquery.tf", `"FIELDS"`, `"FIELD"`, "does not know their fields"},
		{"bigquery.tf", "\"`fleet.\"", "\"`flee.\"", "does not read its table"},
		{"bigquery.tf", `service-${var.history.project_number}`, `service-${var.project}`, "writes to BigQuery"},
		// Documents.
		{"firestore.tf", `FIRESTORE_NATIVE`, `DATASTORE_MODE`, "the database's type"},
		{"firestore.tf", `= "POINT_IN_TIME_RECOVERY_ENABLED"`, `= "POINT_IN_TIME_RECOVERY_DISABLED"`, "point_in_time_recovery"},
		{"firestore.tf", `? "DELETE_PROTECTION_ENABLED"`, `? "DELETE_PROTECTION_DISABLED"`, "delete_protection"},
		{"firestore.tf", `try(each.value.ttl, false)`, `try(each.value.tll, false)`, "TTL policy of events is missing"},
		{"firestore.tf", `  field      = each.value.fieldPath`, `  field      = lower(each.value.fieldPath)`, "drones.lastUpdate"},
		{"firestore.tf", `"${path.module}/../firestore.indexes.json"`, `"${path.module}/firestore.indexes.json"`, "there is no file"},
		{"../firestore.indexes.json", `{"collectionGroup": "drones", "fieldPath": "lastUpdate"`, `{"collectionGroup": "drone", "fieldPath": "lastUpdate"`, "no collection drone"},
		{"../firestore.rules", `if false`, `if request.auth != null`, "let somebody in"},
		{"../firestore.rules", `/{document=**}`, `/{document}`, "let somebody in"},
		// Access.
		{"iam.tf", `topic = "decisions", member = local.members.optimizer`, `topic = "missions", member = local.members.optimizer`, "optimizer@"},
		{"iam.tf", `"gateway/orders"      = { topic = "orders"`, `"gateway/orders"      = { topic = "decisions"`, "gateway@"},
		{"iam.tf", `"roles/pubsub.publisher"`, `"roles/pubsub.admin"`, "roles/pubsub.admin"},
		{"iam.tf", `role    = "roles/datastore.user"`, `role    = "roles/owner"`, "roles/owner"},
		{"iam.tf", `role    = "roles/datastore.viewer"`, `role    = "roles/datastore.user"`, "roles/datastore.viewer"},
		{"iam.tf", `"roles/logging.privateLogViewer"`, `"roles/logging.viewer"`, "roles/logging.privateLogViewer"},
		{"iam.tf", `"DATA_WRITE"`, `"DATA_READ"`, "Data Access log"},
		{"iam.tf", `[local.members.statemanager, local.members.optimizer]`, `[local.members.statemanager]`, "Data Access log"},
		{"iam.tf", `databases/${var.firestore_database}\""`, `databases/other\""`, "databases/other"},
		{"iam.tf", `["statemanager", "optimizer"] : name`, `["statemanager", "optimizer", "gateway"] : name`, "gateway@"},
		{"iam.tf", `"roles/iam.workloadIdentityUser"`, `"roles/iam.serviceAccountAdmin"`, "serviceAccountAdmin"},
		// What runs.
		{"run.tf", `? "h2c" : null`, `? "http1" : null`, "gets HTTP/1"},
		{"run.tf", `? 8443 : 8080`, `? 8080 : 8080`, "service gateway does not listen on port 8080"},
		{"run.tf", `DRONEFLEET_INSECURE_LINK  = "true"`, `DRONEFLEET_INSECURE_LINK  = "false"`, "service gateway cannot start"},
		{"run.tf", `DRONEFLEET_OIDC_DRONE_CLAIM = var.gateway_oidc.drone_claim`, `DRONEFLEET_OIDC_DRONE_CLAIM = "sub"`, "service gateway does not take"},
		{"run.tf", `|| each.key == "gateway" ? "INGRESS`, `? "INGRESS`, "out of reach of drones"},
		{"run.tf", `drones_per_gateway = 1000`, `drones_per_gateway = 0`, "service gateway cannot start"},
		{"run.tf", `each.key == "gateway" ? "3600s"`, `each.key == "gateway" ? "300s"`, "ends streams"},
		{"secrets.tf", `var.gateway_image != "" ? ["gateway"] : []`, `[]`, "service gateway may not read the secret collector-headers"},
		{"run.tf", `args   = ["serve"]`, `args   = ["server"]`, "started with [server]"},
		{"run.tf", `DRONEFLEET_DRAIN_TIMEOUT = "3s"`, `DRONEFLEET_DRAIN_TIMEOUT = "15s"`, "killed before it has settled"},
		{"run.tf", `LOG_LEVEL            = var.log_level`, `LOGLEVEL            = var.log_level`, "knows no variable LOGLEVEL"},
		{"run.tf", `DRONEFLEET_OIDC_AUDIENCE  = join(",", [for a in var.oidc.audiences : replace(a, ",", "\\,")])`, `DRONEFLEET_OIDC_AUDIENCE = ""`, "service statemanager cannot start"},
		{"run.tf", `replace(v, ",", "\\,")`, `v`, "does not take what the variables say"},
		{"run.tf", `DRONEFLEET_IAP_AUDIENCE  = var.iap.audience`, `DRONEFLEET_IAP_AUDIENCE = "x"`, "does not take what the variables say"},
		{"run.tf", `for a in var.oidc.auditors`, `for a in var.oidc.operators`, "does not take what the variables say"},
		{"run.tf", `for r in var.iap.requesters`, `for r in var.iap.auditors`, "does not take what the variables say"},
		{"run.tf", `DRONEFLEET_API_KEYS = var.api_keys`, `DRONEFLEET_API_KEYS = "accept"`, "does not take what the variables say"},
		{"iam.tf", `&& var.api_keys == "off"`, ``, "grant:"},
		{"run.tf", `for v in var.iap.viewers`, `for v in try(var.oidc.viewers, [])`, "service statemanager cannot start"},
		{"run.tf", `["*.run.app"], var.http_hosts`, `["*.run.app"]`, "does not take what the variables say"},
		{"run.tf", `value = "localhost"`, `value = "statemanager"`, "does not name the host localhost"},
		{"run.tf", `DRONEFLEET_RATE_READS    = tostring(var.rate_limits.reads)`, `DRONEFLEET_RATE_READS    = tostring(var.rate_limits.commands)`, "does not take what the variables say"},
		{"run.tf", `DRONEFLEET_CORS_ORIGINS = join(",", var.cors_origins)`, `DRONEFLEET_CORS_ORIGINS = "*"`, "service statemanager cannot start"},
		{"run.tf", `DRONEFLEET_METRICS_ACCESS = "local"`, `DRONEFLEET_METRICS_ACCESS = "open"`, "does not take what the variables say"},
		{"run.tf", `{ DRONEFLEET_WEBHOOK_KEY = var.webhook_key_secret }`, `{}`, "gets the secret DRONEFLEET_WEBHOOK_KEY webhook-key is missing"},
		{"run.tf", `{ DRONEFLEET_SESSION_KEY = var.sign_in.session_key }`, `{ DRONEFLEET_SESSION_KEY = var.sign_in.client_id }`, "gets the secret DRONEFLEET_SESSION_KEY session-key is missing"},
		{"run.tf", `each.key == "statemanager" && (var.sign_in != null || var.api_keys == "require")`, `true`, "open to callers without Google's credentials"},
		{"secrets.tf", `toset(values(local.own_secrets))`, `toset([])`, "may not read the secret session-key"},
		{"iam.tf", `"pubsub.subscriptions.delete"]`, `"pubsub.subscriptions.update"]`, "role: dronefleetLiveSubscription"},
		{"iam.tf", `google_project_iam_custom_role.live["dronefleetLiveTopic"].id`, `"roles/pubsub.editor"`, "roles/pubsub.editor"},
		{"run.tf", `? 8443 : 8080`, `? 8443 : 8081`, "does not listen on port 8081"},
		{"run.tf", `cpu_idle          = false`, `cpu_idle          = true`, "CPU taken away"},
		{"run.tf", `min    = var.statemanager_instances.min`, `min    = 0`, "may have no instance"},
		{"run.tf", `path = "/readyz"`, `path = "/"`, "before it is ready"},
		{"run.tf", `path = "/healthz"`, `path = "/readyz"`, "in every outage of Firestore"},
		{"run.tf", `service_account       = google_service_account.fleet[each.key].email`, `service_account       = google_service_account.fleet["gateway"].email`, "runs as"},
		{"run.tf", `: "INGRESS_TRAFFIC_INTERNAL_ONLY"`, `: "INGRESS_TRAFFIC_ALL"`, "reached from everywhere"},
		{"run.tf", `var.protect && each.key == "statemanager"`, `var.protect`, "optimizer_mode cannot be changed"},
		{"run.tf", `deletion_protection = false`, `deletion_protection = var.protect`, "optimizer_mode cannot be changed"},
		{"run.tf", `var.protect && each.key == "statemanager"`, `false`, "statemanager may be deleted"},
		{"run.tf", `{ LOCK_STORE = var.lock_url }`, `{ LOCK_STORE = "redis://other" }`, "has the lock store"},
		{"run.tf", `{ LOCK_PASSWORD = var.lock_password_secret }`, `{ LOCK_PASSWORD = "other" }`, "its password from secret"},
		{"run.tf", `vpc_access.value.subnetwork`, `vpc_access.value.network`, "has the subnetwork"},
		// Alerts and dashboard.
		{"dashboard.tf", `dronefleet_cycles_total`, `dronefleet_cycle_total`, "nobody exports dronefleet_cycle_total"},
		{"dashboard.tf", `rate(dronefleet_commit_retries_total[5m])`, `rate(dronefleet_commit_retries_total[5m]`, "chart Commits tried again"},
		{"../observability/alerts.yaml", `dronefleet_backlog_age_seconds`, `dronefleet_backlog_seconds`, "nobody exports dronefleet_backlog_seconds"},
		{"monitoring.tf", `subscription/oldest_unacked_message_age`, `subscription/oldest_message_age`, "no alert watches oldest_unacked_message_age"},
		{"monitoring.tf", `{ for t in local.inbound : "${t}-statemanager" => { seconds`, `{ for t in ["telemetry"] : "${t}-statemanager" => { seconds`, "no alert watches oldest_unacked_message_age orders-statemanager"},
		{"monitoring.tf", `job_name = \"${google_cloud_run_v2_job.optimizer[0].name}\"`, `job_name = \"planner\"`, "no alert watches job optimizer"},
		{"monitoring.tf", `local.optimizer_job && rule.alert`, `rule.alert`, "cycles are counted: true; but an alert watches their count: false"},
		{"monitoring.tf", `unit       = { s = 1, m = 60`, `unit       = { s = 1, m = 1`, "no multiple of half a minute"},
		{"monitoring.tf", `namespace=\"$1\"`, `namespace=\"dronefleet\"`, `no service is called namespace="dronefleet"`},
		{"monitoring.tf", `local.cloud_run ? replace(`, `local.cloud_run == false ? replace(`, `no service is called job="dronefleet-statemanager"`},
		{"../observability/alerts.yaml", `job="dronefleet-statemanager"`, `job="statemanager"`, `no collector knows job="statemanager"`},
		// The provider's schema and Terraform's language.
		{"pubsub.tf", `  ack_deadline_seconds       =`, `  ack_deadline       =`, "no argument ack_deadline"},
		{"pubsub.tf", `expiration_policy {`, `expiry_policy {`, "no block expiry_policy"},
		{"run.tf", `  location            = var.region`, ``, "location is missing"},
		{"run.tf", `google_service_account.scheduler[0].email`, `google_service_account.schedule[0].email`, `named "schedule"`},
		{"run.tf", `google_firestore_field.override,`, `google_firestore_field.overrides,`, "does not exist"},
		{"variables.tf", `variable "log_level"`, `variable "loglevel"`, "log_level"},
	} {
		path := strings.TrimPrefix(terraform+"/"+m.file, terraform+"/../")
		if n := strings.Count(string(files[path]), m.right); n == 0 {
			t.Errorf("%s does not hold %q any more", path, m.right)
			continue
		}
		changed := maps.Clone(files)
		changed[path] = []byte(strings.ReplaceAll(string(files[path]), m.right, m.wrong))
		if found, ok := anyProblem(changed, w, m.says); !ok {
			t.Errorf("%s: %q instead of %q: want a problem with %q, found:\n%s", path, m.wrong, m.right, m.says, found)
		}
	}
}

// anyProblem reports whether a problem that says something is found in any way to
// deploy, and what was found up to then.
func anyProblem(files tfmodule.Files, w *world, says string) (string, bool) {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(ways)) {
		list = append(list, problems(files, ways[name], w)...)
		if strings.Contains(strings.Join(list, "\n"), says) {
			return "", true
		}
	}
	return strings.Join(list, "\n"), false
}

// Every index of the index file is planned, one on an array included, which the
// file has none of today.
func TestTerraform_CompositeIndexesComeFromTheIndexFile(t *testing.T) {
	w, files := newWorld(t), maps.Clone(deployFiles(t))
	const with = `"indexes": [{"collectionGroup": "orders", "queryScope": "COLLECTION", "fields": [
		{"fieldPath": "status", "order": "ASCENDING"}, {"fieldPath": "tags", "arrayConfig": "CONTAINS"}]},`
	files["firestore.indexes.json"] = []byte(strings.Replace(string(files["firestore.indexes.json"]), `"indexes": [`, with, 1))
	p, err := plan(files, ways["Cloud Run"])
	if err != nil {
		t.Fatal(err)
	}
	indexes := slices.DeleteFunc(p.Of("google_firestore_index"), func(i tfmodule.Instance) bool {
		return !strings.Contains(i.Address(), "tags:CONTAINS")
	})
	if len(indexes) != 1 || len(indexes[0].Blocks["fields"]) != 2 || indexes[0].Text("collection") != "orders" {
		t.Fatalf("planned %d indexes on tags", len(indexes))
	}
	for _, problem := range problems(files, ways["Cloud Run"], w) {
		t.Error(problem)
	}
	if got := indexes[0].Blocks["fields"][0].Attributes["array_config"]; got != cty.NullVal(cty.DynamicPseudoType) && !got.IsNull() {
		t.Errorf("a field with an order has array_config %#v", got)
	}
}
