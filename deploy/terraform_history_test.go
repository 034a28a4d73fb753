package deploy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/testkit/tfmodule"
)

// checkHistory holds what goes to BigQuery to the rows that State Managers publish: each topic has a
// subscription that writes to its table, which is partitioned by day, and a view. Without the variable
// there is none of it. // F-HIS-01
func checkHistory(p *tfmodule.Plan, way map[string]cty.Value, files tfmodule.Files) []string {
	want := map[string]string{}
	history, on := way["history"]
	if on {
		want["reports"] = pubsubio.TopicTelemetry
		for _, table := range pubsubio.HistoryTables {
			want[table] = pubsubio.HistoryTopic(table)
		}
	}
	found := checkHistorySubscriptions(p, want)
	var raw, views []string
	for _, i := range p.Of("google_bigquery_table") {
		table := strings.TrimSuffix(i.Text("table_id"), "_raw")
		partitions, partitioned := i.Only("time_partitioning")
		if view, ok := i.Only("view"); ok {
			views = append(views, table)
			if query := view.Text("query"); strings.Contains(query, "`fleet.") || !strings.Contains(query, "`"+testProject+".fleet."+table+"_raw`") {
				found = append(found, fmt.Sprintf("view %s does not read its table: %s", table, query))
			}
			continue
		}
		raw = append(raw, table)
		var columns []column
		if err := json.Unmarshal([]byte(i.Text("schema")), &columns); err != nil {
			found = append(found, i.Address()+": "+err.Error())
		}
		types := map[string]string{}
		for _, c := range columns {
			types[c.Name] = c.Type
		}
		if !partitioned || partitions.Text("type") != "DAY" || types[partitions.Text("field")] != "TIMESTAMP" {
			found = append(found, i.Address()+" is not partitioned by the day of one of its times")
		}
		if days, _ := history.GetAttr("days").AsBigFloat().Int64(); !partitioned || !partitions.Attributes["expiration_ms"].RawEquals(cty.NumberIntVal(days*86_400_000)) {
			found = append(found, i.Address()+" does not keep its rows as long as asked for")
		}
		for _, c := range texts(i.Attributes["clustering"]) {
			if types[c] != "STRING" {
				found = append(found, fmt.Sprintf("%s is clustered on %s, which is no column", i.Address(), c))
			}
		}
	}
	tables := slices.Sorted(maps.Keys(want))
	found = append(found, compare("table", tables, raw)...)
	found = append(found, compare("view", tables, views)...)
	for _, i := range p.Of("google_bigquery_routine") {
		if body := i.Text("definition_body"); !strings.Contains(body, "const fields = "+string(files["bigquery/report.fields.json"])+";") {
			found = append(found, "the function that reads reports does not know their fields")
		}
	}
	for _, i := range p.Of("google_bigquery_dataset_iam_member") {
		if want := "serviceAccount:service-" + history.GetAttr("project_number").AsString() + "@gcp-sa-pubsub.iam.gserviceaccount.com"; i.Text("member") != want {
			found = append(found, fmt.Sprintf("%s writes to BigQuery, want %s", i.Text("member"), want))
		}
	}
	return found
}

// checkHistorySubscriptions wants one subscription for each table, by its topic.
func checkHistorySubscriptions(p *tfmodule.Plan, topics map[string]string) (found []string) {
	var want, got []string
	for table, topic := range topics {
		want = append(want, fmt.Sprintf("%s to %s.fleet.%s_raw, in columns: %t", topic, testProject, table, table != "reports"))
	}
	for _, i := range p.Of("google_pubsub_subscription") {
		config, ok := i.Only("bigquery_config")
		if !ok || !strings.HasSuffix(i.Text("name"), "-bigquery") {
			continue
		}
		columns := config.Attributes["use_table_schema"].True()
		got = append(got, fmt.Sprintf("%s to %s, in columns: %t", path.Base(i.Text("topic")), config.Text("table"), columns))
		if columns != config.Attributes["drop_unknown_fields"].True() || columns == config.Attributes["write_metadata"].True() {
			found = append(found, i.Address()+" does not fit its table")
		}
		if expiration, ok := i.Only("expiration_policy"); !ok || expiration.Text("ttl") != "" || i.Text("message_retention_duration") != "604800s" {
			found = append(found, i.Address()+" may lose rows")
		}
	}
	return append(found, compare("subscription of the history:", want, got)...)
}
