package deploy_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/testkit/tfmodule"
)

// checkAccess compares the module's grants with what each kind of program needs. A grant
// that is not listed here is an error.
func checkAccess(p *tfmodule.Plan, way map[string]cty.Value) []string {
	account := func(name string) string {
		return fmt.Sprintf("serviceAccount:%s@%s.iam.gserviceaccount.com", name, testProject)
	}
	members := func(variable string) []string {
		var list []string
		for _, v := range way[variable].AsValueSlice() {
			list = append(list, v.AsString())
		}
		return list
	}
	const publish, consume = "publishes to", "consumes"
	var want []string
	grant := func(member, what, object string) { want = append(want, fmt.Sprintf("%s %s %s", member, what, object)) }
	for _, topic := range pubsubio.InboundTopics {
		grant(account("statemanager"), consume, pubsubio.Subscription(topic))
		grant(account("statemanager"), publish, pubsubio.DeadLetterTopic(topic))
		replayers := members("operators")
		_, tokens := way["oidc"]
		_, keys := way["api_keys"]
		if _, proxy := way["iap"]; tokens || proxy || keys { // the API replays, and publishes, for whom it identifies
			replayers = append(replayers, account("statemanager"))
		}
		for _, m := range replayers {
			grant(m, consume, pubsubio.DeadLetterSubscription(topic))
			grant(m, publish, topic)
		}
	}
	grant(account("statemanager"), publish, pubsubio.TopicMissions)
	grant(account("optimizer"), publish, pubsubio.TopicDecisions)
	if _, history := way["history"]; history {
		for _, table := range pubsubio.HistoryTables {
			grant(account("statemanager"), publish, pubsubio.HistoryTopic(table))
		}
	}
	// F-SND-04
	for _, m := range append(members("drone_publishers"), account("gateway")) {
		grant(m, publish, pubsubio.TopicTelemetry)
		for _, s := range members("mission_subscriptions") {
			grant(m, consume, s)
		}
	}
	for _, m := range append(members("hospital_publishers"), account("gateway")) {
		grant(m, publish, pubsubio.TopicOrders)
	}
	// F-GW-04, F-GW-05: gateways follow commands and each other's sessions, and read documents.
	grant(account("gateway"), publish, pubsubio.TopicLinks)
	grant(account("gateway"), "has roles/datastore.viewer in", fleetDatabase(way))
	grant(account("gateway"), "has projects/"+testProject+"/roles/dronefleetGatewaySubscription in", "the project")
	for _, topic := range []string{pubsubio.TopicMissions, pubsubio.TopicLinks} {
		grant(account("gateway"), "has projects/"+testProject+"/roles/dronefleetGatewayTopic on", topic)
	}
	for _, m := range append(members("operators"), account("statemanager"), account("optimizer")) {
		grant(m, "has roles/datastore.user in", fleetDatabase(way))
	}
	for _, m := range members("operators") {
		grant(m, "has roles/monitoring.viewer in", "the project")
		grant(m, "has roles/logging.viewer in", "the project")
	}
	for _, m := range members("auditors") { // F-REC-13
		grant(m, "has roles/datastore.viewer in", fleetDatabase(way))
		grant(m, "has roles/logging.privateLogViewer in", "the project")
	}
	for _, name := range scrapedServices(way) {
		grant(account(name), "has roles/monitoring.metricWriter in", "the project")
		grant(account(name), "has roles/logging.logWriter in", "the project")
	}
	permissions := map[string][]string{
		"dronefleetGatewaySubscription": {"pubsub.subscriptions.consume", "pubsub.subscriptions.create", "pubsub.subscriptions.delete"},
		"dronefleetGatewayTopic":        {"pubsub.topics.attachSubscription"},
	}
	if v, ok := way["live_telemetry"]; !ok || v.True() { // see pubsubio.Tap
		permissions["dronefleetLiveSubscription"] = []string{"pubsub.subscriptions.consume", "pubsub.subscriptions.create", "pubsub.subscriptions.delete"}
		permissions["dronefleetLiveTopic"] = []string{"pubsub.topics.attachSubscription"}
		grant(account("statemanager"), "has projects/"+testProject+"/roles/dronefleetLiveSubscription in", "the project")
		grant(account("statemanager"), "has projects/"+testProject+"/roles/dronefleetLiveTopic on", pubsubio.TopicTelemetry)
	}
	found := compare("grant:", want, grants(p, publish, consume))
	found = append(found, checkDataAccessLogs(p, account("statemanager"), account("optimizer"))...)
	var wanted, got []string
	for role, list := range permissions {
		wanted = append(wanted, fmt.Sprint(role, " ", list))
	}
	for _, i := range p.Of("google_project_iam_custom_role") {
		got = append(got, fmt.Sprint(i.Text("role_id"), " ", texts(i.Attributes["permissions"])))
	}
	return append(found, compare("role:", wanted, got)...)
}

// checkDataAccessLogs wants writes of documents logged, but for the fleet's own. // F-REC-14
func checkDataAccessLogs(p *tfmodule.Plan, exempt ...string) []string {
	var want, got []string
	want = append(want, fmt.Sprintf("datastore.googleapis.com DATA_WRITE but for %q", exempt))
	for _, i := range p.Of("google_project_iam_audit_config") {
		for _, log := range i.Blocks["audit_log_config"] {
			got = append(got, fmt.Sprintf("%s %s but for %q", i.Text("service"), log.Text("log_type"), texts(log.Attributes["exempted_members"])))
		}
	}
	return compare("Data Access log", want, got)
}

// fleetDatabase is the condition that binds a role to the fleet's database.
func fleetDatabase(way map[string]cty.Value) string {
	database := "(default)"
	if v, ok := way["firestore_database"]; ok {
		database = v.AsString()
	}
	return fmt.Sprintf(`resource.type == "firestore.googleapis.com/Database" && resource.name == "projects/%s/databases/%s"`, testProject, database)
}

func is(way map[string]cty.Value, variable, value string) bool {
	v, ok := way[variable]
	return ok && v.AsString() == value
}

func scrapedServices(way map[string]cty.Value) (names []string) {
	if is(way, "runtime", "gke") {
		return nil
	}
	if names = []string{"statemanager"}; !is(way, "optimizer_mode", "job") {
		names = append(names, "optimizer")
	}
	if hasGateway(way) {
		names = append(names, "gateway")
	}
	return names
}

// grants lists who may do what, of messages and documents.
func grants(p *tfmodule.Plan, publish, consume string) []string {
	var list []string
	add := func(i tfmodule.Instance, role, what, object string) {
		if got := i.Text("role"); role != "" && got != role {
			what = "has " + got + " on"
		}
		list = append(list, fmt.Sprintf("%s %s %s", i.Text("member"), what, object))
	}
	for _, i := range p.Instances {
		switch {
		case i.Type == "google_pubsub_topic_iam_member":
			add(i, "roles/pubsub.publisher", publish, i.Text("topic"))
		case i.Type == "google_pubsub_subscription_iam_member":
			add(i, "roles/pubsub.subscriber", consume, i.Text("subscription"))
		case i.Type == "google_project_iam_member":
			object := "the project"
			if condition, ok := i.Only("condition"); ok {
				object = condition.Text("expression")
			}
			add(i, "", "has "+i.Text("role")+" in", object)
		case i.Type == "google_project_iam_custom_role", i.Type == "google_project_iam_audit_config": // grant nothing by themselves
		case strings.Contains(i.Type, "_iam_") && !slices.Contains(knownGrants, i.Type+" "+i.Text("role")):
			list = append(list, i.Address()+" grants "+i.Text("role"))
		case strings.Contains(i.Type, "_iam_") && strings.HasPrefix(i.Text("member"), "all"):
			list = append(list, i.Address()+" is for "+i.Text("member"))
		}
	}
	return list
}

// knownGrants are those on single services, jobs, secrets and accounts.
var knownGrants = []string{
	"google_bigquery_dataset_iam_member roles/bigquery.dataEditor", // to Pub/Sub's own account; see checkHistory
	"google_cloud_run_v2_service_iam_member roles/run.invoker",
	"google_cloud_run_v2_job_iam_member roles/run.invoker",
	"google_secret_manager_secret_iam_member roles/secretmanager.secretAccessor",
	"google_service_account_iam_member roles/iam.workloadIdentityUser",
}
