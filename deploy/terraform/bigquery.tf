# The history, if asked for: Pub/Sub writes every report to BigQuery, and the rows that State Managers
# publish. docs/history.md has questions to ask it. Columns, views and the function that reads reports are
# made from the .proto by a test.
locals {
  # What each table is partitioned by and clustered on.
  history = var.history == null ? {} : {
    events    = { time = "time", cluster = ["entity", "entity_id"] }
    orders    = { time = "created_at", cluster = ["requester_id"] }
    missions  = { time = "start_time", cluster = ["drone_id"] }
    decisions = { time = "applied_at", cluster = ["drone_id"] }
    refusals  = { time = "refused_at", cluster = ["topic"] }
  }
  raw = merge(local.history, var.history == null ? {} : { reports = { time = "publish_time", cluster = [] } })
}

resource "google_bigquery_dataset" "history" {
  count = var.history == null ? 0 : 1

  dataset_id  = "fleet"
  location    = var.history.location
  description = "What has happened in the fleet."

  depends_on = [google_project_service.api]
}

# Messages come at least once, so a row can be here twice.
resource "google_bigquery_table" "raw" {
  for_each = local.raw

  dataset_id          = "fleet"
  table_id            = "${each.key}_raw"
  schema              = file("${path.module}/../bigquery/${each.key == "reports" ? "reports_raw" : each.key}.json")
  clustering          = length(each.value.cluster) > 0 ? each.value.cluster : null
  deletion_protection = var.protect

  time_partitioning {
    type          = "DAY"
    field         = each.value.time
    expiration_ms = var.history.days * 86400000
  }

  depends_on = [google_bigquery_dataset.history]
}

resource "google_bigquery_routine" "report" {
  count = var.history == null ? 0 : 1

  dataset_id      = "fleet"
  routine_id      = "report"
  routine_type    = "SCALAR_FUNCTION"
  language        = "JAVASCRIPT"
  definition_body = replace(file("${path.module}/../bigquery/report.js"), "FIELDS", file("${path.module}/../bigquery/report.fields.json"))
  return_type     = file("${path.module}/../bigquery/report.type.json")

  arguments {
    name      = "data"
    data_type = jsonencode({ typeKind = "BYTES" })
  }

  depends_on = [google_bigquery_dataset.history]
}

# Each row once, and the reports in columns.
resource "google_bigquery_table" "view" {
  for_each = local.raw

  dataset_id          = "fleet"
  table_id            = each.key
  deletion_protection = false

  view {
    query          = replace(file("${path.module}/../bigquery/${each.key}.sql"), "`fleet.", "`${var.project}.fleet.")
    use_legacy_sql = false
  }

  depends_on = [google_bigquery_table.raw, google_bigquery_routine.report]
}

resource "google_bigquery_dataset_iam_member" "pubsub" {
  count = var.history == null ? 0 : 1

  dataset_id = "fleet"
  role       = "roles/bigquery.dataEditor"
  member     = "serviceAccount:service-${var.history.project_number}@gcp-sa-pubsub.iam.gserviceaccount.com"

  depends_on = [google_bigquery_dataset.history]
}

resource "google_pubsub_topic" "history" {
  for_each = local.history

  name = "history-${each.key}"

  depends_on = [google_project_service.api]
}

resource "google_pubsub_topic_iam_member" "history" {
  for_each = local.history

  topic  = google_pubsub_topic.history[each.key].name
  role   = "roles/pubsub.publisher"
  member = local.members.statemanager
}

# What cannot be written stays for a week, and holds up nothing else. A column that a table lacks, because
# the State Managers are newer, is left out.
resource "google_pubsub_subscription" "history" {
  for_each = local.raw

  name                       = "${each.key}-bigquery"
  topic                      = each.key == "reports" ? google_pubsub_topic.fleet["telemetry"].id : google_pubsub_topic.history[each.key].id
  message_retention_duration = "604800s" # 7 days

  expiration_policy {
    ttl = "" # never
  }

  bigquery_config {
    table               = "${var.project}.fleet.${each.key}_raw"
    use_table_schema    = each.key != "reports"
    drop_unknown_fields = each.key != "reports"
    write_metadata      = each.key == "reports"
  }

  depends_on = [google_bigquery_table.raw, google_bigquery_dataset_iam_member.pubsub]
}
