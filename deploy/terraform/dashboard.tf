# An overview dashboard. The Grafana dashboard in deploy/observability shows more.
locals {
  charts = [
    { title = "Messages settled per second", unit = "1/s", queries = ["sum by (kind, outcome) (rate(dronefleet_messages_settled_total[1m]))"] },
    { title = "Publish to commit, p50 and p99", unit = "s", queries = [
      "histogram_quantile(0.5, sum by (le, kind) (rate(dronefleet_publish_to_commit_seconds_bucket[5m])))",
      "histogram_quantile(0.99, sum by (le, kind) (rate(dronefleet_publish_to_commit_seconds_bucket[5m])))",
    ] },
    { title = "Oldest message not acked, as Pub/Sub sees it", unit = "s", queries = ["max by (subscription_id) (pubsub_googleapis_com:subscription_oldest_unacked_message_age{monitored_resource=\"pubsub_subscription\"})"] },
    { title = "Oldest message held", unit = "s", queries = ["max by (kind) (dronefleet_backlog_age_seconds)"] },
    { title = "Refused, by reason, per second", unit = "1/s", queries = ["sum by (kind, reason) (rate(dronefleet_messages_settled_total{outcome=~\"rejected|dead_letter|nacked\"}[5m]))"] },
    { title = "Dead letters that wait", unit = "1", queries = ["max by (subscription_id) (pubsub_googleapis_com:subscription_num_undelivered_messages{monitored_resource=\"pubsub_subscription\",subscription_id=~\".*-dead-letter-review\"})"] },
    { title = "Solve cycles per minute, by outcome", unit = "1", queries = ["60 * sum by (outcome) (rate(dronefleet_cycles_total[5m]))"] },
    { title = "Time of a solve cycle, p99", unit = "s", queries = ["histogram_quantile(0.99, sum by (le) (rate(dronefleet_cycle_seconds_bucket[5m])))"] },
    { title = "Orders unserved for three intervals", unit = "1", queries = ["max by (priority) (dronefleet_orders_unserved)"] },
    { title = "Oldest order that waits for a drone, by priority", unit = "s", queries = ["max by (priority) (dronefleet_oldest_waiting_order_seconds)"] },
    { title = "Orders by status", unit = "1", queries = ["max by (status) (dronefleet_orders)"] },
    { title = "Waiting for locks, p99", unit = "s", queries = ["histogram_quantile(0.99, sum by (le, lock) (rate(dronefleet_lock_wait_seconds_bucket[5m])))"] },
    { title = "Firestore reads and writes per second", unit = "1/s", queries = [
      "sum by (operation) (rate(dronefleet_firestore_reads_total[5m]))",
      "sum by (operation) (rate(dronefleet_firestore_writes_total[5m]))",
    ] },
    { title = "Commits tried again per second", unit = "1/s", queries = ["sum by (operation) (rate(dronefleet_commit_retries_total[5m]))"] },
    { title = "Firestore calls that failed per second", unit = "1/s", queries = ["sum by (operation, method) (rate(dronefleet_firestore_rpcs_failed_total[5m]))"] },
    { title = "Clock: server's time minus ours", unit = "s", queries = ["max by (instance) (abs(dronefleet_clock_offset_seconds))"] },
  ]
}

resource "google_monitoring_dashboard" "fleet" {
  dashboard_json = jsonencode({
    displayName = "DroneFleet"
    mosaicLayout = {
      columns = 48
      tiles = [
        for i, chart in local.charts : {
          xPos   = (i % 2) * 24
          yPos   = floor(i / 2) * 16
          width  = 24
          height = 16
          widget = {
            title = chart.title
            xyChart = {
              dataSets = [
                for query in chart.queries : {
                  plotType        = "LINE"
                  targetAxis      = "Y1"
                  timeSeriesQuery = { prometheusQuery = query, unitOverride = chart.unit }
                }
              ]
              yAxis = { scale = "LINEAR" }
            }
          }
        }
      ]
    }
  })

  depends_on = [google_project_service.api]
}
