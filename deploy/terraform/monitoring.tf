# Alerts. Those on the fleet's own metrics are the Prometheus rules of
# deploy/observability, one source for every kind of deployment; Managed Service
# for Prometheus keeps their names (prometheus.googleapis.com/NAME/counter,
# /gauge, /histogram in the Metrics Explorer). They are PromQL and not threshold
# conditions because Cloud Monitoring refuses a threshold on a metric that has
# never been written, as at the first apply. Those on Pub/Sub work even if none of
# our processes runs.
locals {
  rule_groups = yamldecode(file("${path.module}/../observability/alerts.yaml")).groups
  # A job is not scraped: with optimizer_mode job, the State Managers' zero counts of
  # cycles would fire NoCycles for ever. The alert at the end replaces it.
  rules = {
    for rule in flatten([for g in local.rule_groups : [for r in g.rules : merge(r, { group = g.name })]]) : rule.alert => rule
    if !(local.optimizer_job && rule.alert == "NoCycles")
  }

  # On Cloud Run the collector names what it scrapes by the service:
  # https://github.com/GoogleCloudPlatform/run-gmp-sidecar
  queries = {
    for name, rule in local.rules : name => local.cloud_run ? replace(
      rule.expr, "/\\bjob=\"dronefleet-(\\w+)\"/", "cluster=\"__run__\",namespace=\"$1\"",
    ) : rule.expr
  }

  # Cloud Monitoring has its own notation for labels, and none for values.
  summaries = {
    for name, rule in local.rules : name => replace(
      replace(rule.annotations.summary, "/{{ \\$labels\\.(\\w+) }}/", "$${metric.label.$1}"),
      "/{{ \\$value[^}]*}}/", "N",
    )
  }

  severities = { critical = "CRITICAL", error = "ERROR", warning = "WARNING", info = "WARNING" }
  unit       = { s = 1, m = 60, h = 3600 }

  channels = setunion(var.alert_channels, toset([for c in google_monitoring_notification_channel.email : c.id]))

  # Pub/Sub measures a message's age from its publication, whatever is down.
  backlogs = merge(
    { for t in local.inbound : "${t}-statemanager" => { seconds = t == "telemetry" ? 60 : 120, severity = "CRITICAL" } },
    # A command's life is 20 s.
    { for s in var.mission_subscriptions : s => { seconds = 60, severity = "CRITICAL" } },
  )
}

resource "google_monitoring_notification_channel" "email" {
  for_each = var.alert_emails

  display_name = each.value
  type         = "email"
  labels       = { email_address = each.value }

  depends_on = [google_project_service.api]
}

resource "google_monitoring_alert_policy" "rule" {
  for_each = local.rules

  display_name          = "DroneFleet ${each.key}"
  combiner              = "OR"
  severity              = local.severities[each.value.labels.severity]
  notification_channels = local.channels

  documentation {
    content   = "${local.summaries[each.key]}\n\n${each.value.annotations.runbook_url}"
    mime_type = "text/markdown"
  }

  conditions {
    display_name = each.key

    condition_prometheus_query_language {
      query                     = local.queries[each.key]
      duration                  = "${tonumber(regex("^[0-9]+", try(each.value.for, "0s"))) * local.unit[regex("[smh]$", try(each.value.for, "0s"))]}s"
      evaluation_interval       = "30s"
      rule_group                = each.value.group
      alert_rule                = each.key
      labels                    = { severity = each.value.labels.severity }
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "1800s"
  }

  depends_on = [google_project_service.api]
}

resource "google_monitoring_alert_policy" "backlog" {
  for_each = local.backlogs

  display_name          = "DroneFleet backlog of ${each.key}"
  combiner              = "OR"
  severity              = each.value.severity
  notification_channels = local.channels

  documentation {
    subject   = "The oldest message of ${each.key} waits for more than ${each.value.seconds} s"
    content   = "The oldest unacked message is older than ${each.value.seconds} s: its consumers are down or too few, or Firestore refuses their commits. Messages are kept for seven days. See docs/runbook.md."
    mime_type = "text/markdown"
  }

  conditions {
    display_name = "oldest unacked message"

    condition_threshold {
      filter          = "metric.type = \"pubsub.googleapis.com/subscription/oldest_unacked_message_age\" AND resource.type = \"pubsub_subscription\" AND resource.label.subscription_id = \"${google_pubsub_subscription.fleet[each.key].name}\""
      comparison      = "COMPARISON_GT"
      threshold_value = each.value.seconds
      duration        = "120s"

      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_MAX"
      }
    }
  }

  alert_strategy {
    auto_close = "1800s"
  }
}

resource "google_monitoring_alert_policy" "dead_letters" {
  for_each = local.inbound

  display_name          = "DroneFleet dead letters of ${each.key}"
  combiner              = "OR"
  severity              = "WARNING"
  notification_channels = local.channels

  documentation {
    subject   = "Messages of ${each.key} were refused for good"
    content   = "See them with `statemanager deadletters list --topic ${each.key} --project ${var.project}`. Fix the cause, then replay them; discard those that will not be fixed. They are kept for seven days. See docs/runbook.md."
    mime_type = "text/markdown"
  }

  conditions {
    display_name = "dead letters wait for an operator"

    condition_threshold {
      filter          = "metric.type = \"pubsub.googleapis.com/subscription/num_undelivered_messages\" AND resource.type = \"pubsub_subscription\" AND resource.label.subscription_id = \"${google_pubsub_subscription.fleet["${each.key}-dead-letter-review"].name}\""
      comparison      = "COMPARISON_GT"
      threshold_value = 0
      duration        = "300s"

      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_MAX"
      }
    }
  }

  alert_strategy {
    auto_close = "1800s"
  }
}

# Replaces NoCycles where a job plans.
resource "google_monitoring_alert_policy" "job" {
  count = local.optimizer_job ? 1 : 0

  display_name          = "DroneFleet optimizer's job"
  combiner              = "OR"
  severity              = "CRITICAL"
  notification_channels = local.channels

  documentation {
    subject   = "No run of \"optimizer once\" has succeeded for minutes"
    content   = "No cycle runs, so orders wait. Check the executions and logs of the Cloud Run job optimizer, and whether Cloud Scheduler still starts it. See docs/runbook.md, NoCycles."
    mime_type = "text/markdown"
  }

  conditions {
    display_name = "no execution succeeded"

    condition_absent {
      filter   = "metric.type = \"run.googleapis.com/job/completed_execution_count\" AND metric.label.result = \"succeeded\" AND resource.type = \"cloud_run_job\" AND resource.label.job_name = \"${google_cloud_run_v2_job.optimizer[0].name}\""
      duration = "300s"

      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_DELTA"
      }
    }
  }

  alert_strategy {
    auto_close = "1800s"
  }
}
