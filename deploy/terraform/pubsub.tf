# Topics and subscriptions exactly as "statemanager serve --create-topics" creates
# them; a test compares the two.
#
# No subscription has a dead-letter policy of Pub/Sub, on purpose: during an outage
# of Firestore it would dead-letter good messages. The State Manager itself
# publishes messages that can never be applied to the topic's dead-letter topic,
# with the reason, before it acks.
locals {
  inbound = toset(["telemetry", "orders", "decisions", "links"])

  topics = setunion(local.inbound, toset(["missions"]), toset([for t in local.inbound : "${t}-dead-letter"]))

  subscriptions = merge(
    { for t in local.inbound : "${t}-statemanager" => { topic = t, kind = "work" } },
    { for t in local.inbound : "${t}-dead-letter-review" => { topic = "${t}-dead-letter", kind = "review" } },
    { for s in var.mission_subscriptions : s => { topic = "missions", kind = "work" } },
  )

  subscription_kinds = {
    # Consumed by processes. Ordering keys are used when publishers set them.
    work = { ack_deadline_seconds = 30, ordered = true, retry = { minimum_backoff = "1s", maximum_backoff = "30s" } }
    # Reviewed by operators. A reviewed message must be available again at once, so
    # there is no backoff.
    review = { ack_deadline_seconds = 60, ordered = false, retry = null }
  }
}

resource "google_pubsub_topic" "fleet" {
  for_each = local.topics

  name = each.value

  depends_on = [google_project_service.api]
}

# Where each drone flew. The reports go to BigQuery without a process of ours.
resource "google_pubsub_subscription" "archive" {
  count = var.telemetry_archive == "" ? 0 : 1

  name                       = "telemetry-archive"
  topic                      = google_pubsub_topic.fleet["telemetry"].id
  message_retention_duration = "604800s" # 7 days

  expiration_policy {
    ttl = "" # never
  }

  bigquery_config {
    table          = var.telemetry_archive
    write_metadata = true
  }
}

resource "google_pubsub_subscription" "fleet" {
  for_each = local.subscriptions

  name                       = each.key
  topic                      = google_pubsub_topic.fleet[each.value.topic].id
  ack_deadline_seconds       = local.subscription_kinds[each.value.kind].ack_deadline_seconds
  enable_message_ordering    = local.subscription_kinds[each.value.kind].ordered
  message_retention_duration = "604800s" # 7 days

  expiration_policy {
    ttl = "" # never
  }

  dynamic "retry_policy" {
    for_each = local.subscription_kinds[each.value.kind].retry[*]
    content {
      minimum_backoff = retry_policy.value.minimum_backoff
      maximum_backoff = retry_policy.value.maximum_backoff
    }
  }
}
