package observability

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/VictoriaMetrics/metricsql"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
)

// ofPrometheus are the series that Prometheus itself provides.
var ofPrometheus = []meter.Description{{Name: "up", Type: "gauge"}}

// ofTargets are the labels that Prometheus adds to everything it scrapes.
var ofTargets = []string{"job", "instance"}

// values are the possible values of some labels. Other labels may have any value.
var values = map[string][]string{
	"job":      {"dronefleet-statemanager", "dronefleet-optimizer", "dronefleet-gateway"}, // as in scrape.yaml, see TestScrapeConfig_HasTheJobsOfTheAlerts
	"priority": priorities(),
	"lock":     {"cycle", "sweeper"},
	"method":   {"Commit", "BatchGetDocuments", "RunQuery", "BeginTransaction", "Rollback"},
	"kind":     append([]string{pubsubio.LatencyPosition, pubsubio.LatencyStatus, pubsubio.LatencySent}, pubsubio.InboundTopics...),
	"outcome":  {meter.Applied, meter.Rejected, meter.DeadLetter, meter.Nacked, "run", "skipped", "failed", meter.OnTime, meter.Late},
	"reason": {string(policy.ReasonStaleTelemetry), string(policy.ReasonFutureTimestamp), string(policy.ReasonFenceUnknown),
		string(lock.ReasonLocked), string(lock.ReasonExpired), string(lock.ReasonNotFound), meter.LinkDisconnected},
	"type":   {string(lock.EventAcquire), string(lock.EventRelease), string(lock.EventExtend), string(lock.EventIsLocked), string(lock.EventLookup)},
	"result": {string(lock.ResultOK), string(lock.ResultFail)},
}

func priorities() (names []string) {
	for _, p := range domain.Priorities {
		names = append(names, p.String())
	}
	return names
}

// find looks up the metric of a series; a histogram has three series.
func find(series string) (meter.Description, bool) {
	for _, d := range slices.Concat(meter.Descriptions(), ofPrometheus) {
		if d.Name == series && d.Type != "histogram" {
			return d, true
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if d.Type == "histogram" && d.Name+suffix == series {
				d.Name, d.Type = series, "counter"
				if suffix == "_bucket" {
					d.Labels = append(slices.Clone(d.Labels), "le")
				}
				return d, true
			}
		}
	}
	return meter.Description{}, false
}

// grafana replaces Grafana's variables by durations.
var variables = strings.NewReplacer("$__rate_interval", "1m", "$__interval", "1m", "$__range", "1h")

// check reports what is wrong with an expression: bad syntax, a metric or label that the
// code does not export, or a wrong function for the metric's type.
func check(expression string) error {
	parsed, err := metricsql.Parse(variables.Replace(expression))
	if err != nil {
		return err
	}
	c := &checker{known: slices.Clone(ofTargets)}
	c.visit(parsed, false)
	for _, label := range c.grouped {
		c.refuse(!slices.Contains(c.known, label), "label %s is grouped by, but none of the metrics has it", label)
	}
	c.refuse(c.metrics == 0, "no metric is asked for")
	if len(c.problems) > 0 {
		return fmt.Errorf("%s", strings.Join(c.problems, "; "))
	}
	return nil
}

type checker struct {
	metrics  int
	known    []string // labels of the metrics met
	grouped  []string // labels that by, without and on name
	problems []string
}

func (c *checker) refuse(bad bool, format string, args ...any) {
	if bad {
		c.problems = append(c.problems, fmt.Sprintf(format, args...))
	}
}

// overTime are the functions that must be applied to counters and must not be applied to
// gauges.
var overTime = []string{"rate", "irate", "increase"}

// visit walks an expression; over is true for the argument of a function for counters.
func (c *checker) visit(e metricsql.Expr, over bool) {
	switch e := e.(type) {
	case *metricsql.MetricExpr:
		c.metric(e, over)
	case *metricsql.RollupExpr:
		c.visit(e.Expr, over)
	case *metricsql.FuncExpr:
		c.refuse(!slices.Contains(functions, e.Name), "%s is no function of Prometheus that is used here", e.Name)
		over := slices.Contains(overTime, e.Name)
		for _, a := range e.Args {
			rollup, is := a.(*metricsql.RollupExpr)
			c.refuse(over && (!is || rollup.Window == nil), "%s lacks its [window]", a.AppendString(nil))
			c.visit(a, over)
		}
	case *metricsql.AggrFuncExpr:
		c.grouped = append(c.grouped, e.Modifier.Args...)
		c.refuse(e.Limit != 0, "limit is not of Prometheus")
		for _, a := range e.Args {
			c.visit(a, false)
		}
	case *metricsql.BinaryOpExpr:
		c.grouped = append(c.grouped, e.GroupModifier.Args...)
		c.grouped = append(c.grouped, e.JoinModifier.Args...)
		c.refuse(slices.Contains([]string{"default", "if", "ifnot"}, e.Op), "%s is not of Prometheus", e.Op)
		c.visit(e.Left, false)
		c.visit(e.Right, false)
	case *metricsql.NumberExpr, *metricsql.StringExpr:
	default:
		c.refuse(true, "%T is not understood here", e)
	}
}

// functions are the functions of Prometheus that expressions may use. The parser also
// accepts functions that only VictoriaMetrics has.
var functions = append([]string{"histogram_quantile", "abs", "absent", "vector", "max_over_time", "last_over_time"}, overTime...)

func (c *checker) metric(e *metricsql.MetricExpr, over bool) {
	c.refuse(len(e.LabelFilterss) != 1, "%s is no plain selector", e.AppendString(nil))
	for _, filters := range e.LabelFilterss {
		if len(filters) == 0 || filters[0].Label != "__name__" {
			c.refuse(true, "%s names no metric", e.AppendString(nil))
			continue
		}
		name := filters[0].Value
		d, exists := find(name)
		if !exists {
			c.refuse(true, "nothing exports %s", name)
			continue
		}
		c.metrics++
		c.known = append(c.known, d.Labels...)
		c.refuse(over && d.Type == "gauge", "%s is a gauge and has no rate", name)
		for _, f := range filters[1:] {
			c.filter(d, f)
		}
	}
}

func (c *checker) filter(d meter.Description, f metricsql.LabelFilter) {
	if !slices.Contains(slices.Concat(d.Labels, ofTargets), f.Label) {
		c.refuse(true, "%s has no label %s", d.Name, f.Label)
		return
	}
	possible, limited := values[f.Label]
	if !limited {
		return
	}
	if !f.IsRegexp {
		c.refuse(!slices.Contains(possible, f.Value), "%s of %s is never %q", f.Label, d.Name, f.Value)
		return
	}
	matches := regexp.MustCompile("^(?:" + f.Value + ")$") // the parser has compiled it
	c.refuse(!slices.ContainsFunc(possible, matches.MatchString), "%s of %s never matches %q", f.Label, d.Name, f.Value)
}
