package deploy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/zclconf/go-cty/cty"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/testkit/tfmodule"
)

// pubsubMetrics are the metrics of Pub/Sub that we look at, in the names that
// Cloud Monitoring's PromQL gives them.
// https://cloud.google.com/monitoring/api/metrics_gcp_p_z#gcp-pubsub
var pubsubMetrics = map[string]bool{
	"pubsub_googleapis_com:subscription_oldest_unacked_message_age": true,
	"pubsub_googleapis_com:subscription_num_undelivered_messages":   true,
}

// checkMonitoring holds alerts and dashboard to metrics that exist.
func checkMonitoring(p *tfmodule.Plan, w *world) []string {
	found := checkAlerts(p, w)
	dashboards := p.Of("google_monitoring_dashboard")
	if len(dashboards) != 1 {
		return append(found, fmt.Sprintf("%d dashboards, want 1", len(dashboards)))
	}
	var dashboard struct {
		MosaicLayout struct {
			Tiles []struct {
				XPos, YPos, Width, Height int
				Widget                    struct {
					Title   string
					XyChart struct {
						DataSets []struct {
							TimeSeriesQuery struct{ PrometheusQuery string }
						}
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(dashboards[0].Text("dashboard_json")), &dashboard); err != nil {
		return append(found, fmt.Sprintf("dashboard: %v", err))
	}
	taken := map[string]bool{}
	for _, tile := range dashboard.MosaicLayout.Tiles {
		if corner := fmt.Sprint(tile.XPos, tile.YPos); taken[corner] {
			found = append(found, fmt.Sprintf("chart %q covers another one", tile.Widget.Title))
		} else {
			taken[corner] = true
		}
		if len(tile.Widget.XyChart.DataSets) == 0 {
			found = append(found, fmt.Sprintf("chart %q shows nothing", tile.Widget.Title))
		}
		for _, set := range tile.Widget.XyChart.DataSets {
			found = append(found, checkQuery("chart "+tile.Widget.Title, set.TimeSeriesQuery.PrometheusQuery, w)...)
		}
	}
	if len(taken) == 0 {
		found = append(found, "the dashboard is empty")
	}
	return found
}

// checkQuery parses a query and looks its metrics up.
func checkQuery(where, query string, w *world) []string {
	expr, err := metricsql.Parse(query)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", where, err)}
	}
	var found []string
	metricsql.VisitAll(expr, func(e metricsql.Expr) {
		m, ok := e.(*metricsql.MetricExpr)
		if !ok {
			return
		}
		for _, filters := range m.LabelFilterss {
			for _, f := range filters {
				if f.Label == "__name__" && !w.exports(f.Value) {
					found = append(found, fmt.Sprintf("%s: nobody exports %s", where, f.Value))
				}
			}
		}
	})
	return found
}

// exports reports whether a series of this name exists. A histogram has three.
func (w *world) exports(series string) bool {
	name := series
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if short, ok := strings.CutSuffix(series, suffix); ok && w.metrics[short] {
			name = short
		}
	}
	return w.metrics[name] || pubsubMetrics[name] || name == "up"
}

// checkJobs holds the processes that a query asks for to what collectors call
// them: on Cloud Run services are namespaces, elsewhere there are jobs.
func checkJobs(where, query string, p *tfmodule.Plan) []string {
	services := map[string]bool{}
	for _, s := range p.Of(service) {
		services[s.Text("name")] = true
	}
	var found []string
	for _, m := range jobInQuery.FindAllStringSubmatch(query, -1) {
		known := slices.Contains(slices.Collect(maps.Values(jobs)), m[2])
		switch {
		case len(services) > 0 && (m[1] != "namespace" || !services[m[2]]):
			found = append(found, fmt.Sprintf("%s: no service is called %s by its collector", where, m[0]))
		case len(services) == 0 && (m[1] != "job" || !known):
			found = append(found, fmt.Sprintf("%s: no collector knows %s", where, m[0]))
		}
	}
	return found
}

var jobInQuery = regexp.MustCompile(`\b(job|namespace)="([^"]*)"`)

var subscriptionInFilter = regexp.MustCompile(`resource\.label\.subscription_id = "([^"]+)"`)

func checkAlerts(p *tfmodule.Plan, w *world) []string {
	var found []string
	var names []string
	watched := map[string]bool{} // metric and subscription
	for _, policy := range p.Of("google_monitoring_alert_policy") {
		where := policy.Text("display_name")
		names = append(names, where)
		if documentation, ok := policy.Only("documentation"); !ok || documentation.Text("content") == "" {
			found = append(found, where+" says nothing to who is woken by it")
		}
		if channels := policy.Attributes["notification_channels"]; channels == cty.NilVal || channels.LengthInt() == 0 {
			found = append(found, where+" tells nobody")
		}
		for _, condition := range policy.Blocks["conditions"] {
			if query, ok := condition.Only("condition_prometheus_query_language"); ok {
				found = append(found, checkQuery(where, query.Text("query"), w)...)
				found = append(found, checkJobs(where, query.Text("query"), p)...)
				if d, err := time.ParseDuration(query.Text("duration")); err != nil || d%(30*time.Second) != 0 {
					found = append(found, fmt.Sprintf("%s: %s is no multiple of half a minute, in which Cloud Monitoring counts", where, query.Text("duration")))
				}
			}
			if absent, ok := condition.Only("condition_absent"); ok {
				watched[absent.Text("filter")] = true
			}
			threshold, ok := condition.Only("condition_threshold")
			if !ok {
				continue
			}
			filter := threshold.Text("filter")
			metric := regexp.MustCompile(`metric\.type = "pubsub\.googleapis\.com/subscription/(\w+)"`).FindStringSubmatch(filter)
			subscription := subscriptionInFilter.FindStringSubmatch(filter)
			if metric == nil || subscription == nil || !pubsubMetrics["pubsub_googleapis_com:subscription_"+metric[1]] {
				found = append(found, fmt.Sprintf("%s watches %s", where, filter))
				continue
			}
			watched[metric[1]+" "+subscription[1]] = true
		}
	}
	// Nobody counts the cycles of a job; State Managers count none either, but say so.
	planned := len(p.Of("google_cloud_run_v2_job")) == 0
	if slices.Contains(names, "DroneFleet NoCycles") != planned {
		found = append(found, fmt.Sprintf("cycles are counted: %v; but an alert watches their count: %v", planned, !planned))
	}
	for _, job := range p.Of("google_cloud_run_v2_job") {
		name := fmt.Sprintf("resource.label.job_name = %q", job.Text("name"))
		if !slices.ContainsFunc(slices.Collect(maps.Keys(watched)), func(filter string) bool {
			return strings.Contains(filter, name) && strings.Contains(filter, "run.googleapis.com/job/completed_execution_count")
		}) {
			found = append(found, "no alert watches job "+job.Text("name"))
		}
	}
	for _, topic := range pubsubio.InboundTopics {
		for _, what := range []string{
			"oldest_unacked_message_age " + pubsubio.Subscription(topic),
			"num_undelivered_messages " + pubsubio.DeadLetterSubscription(topic),
		} {
			if !watched[what] {
				found = append(found, "no alert watches "+what)
			}
		}
	}
	return found
}
