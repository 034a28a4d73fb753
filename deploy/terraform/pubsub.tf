# Topics and subscriptions exactly as "statemanager serve --create-topics" makes
# them; a test holds the two together.
#
# No subscription has a dead-letter policy of Pub/Sub's own, on purpose. It would
# give up good messages while Firestore is out of reach: nothing then tells them
# from bad ones. The State Manager sends what nobody can ever apply to the
# topic's own dead-letter topic, with its reason, before it acks.
locals {
  inbound = toset(["telemetry", "orders", "decisions"])

  topics = setunion(local.inbound, toset(["missions"]), toset([for t in local.inbound : "${t}-dead-letter"]))

  subscriptions = merge(
    { for t in local.inbound : "${t}-statemanager" => { topic = t, kind = "work" } },
    { for t in local.inbound : "${t}-dead-letter-review" => { topic = "${t}-dead-letter", kind = "review" } },
    { for s in var.mission_subscriptions : s => { topic = "missions", kind = "work" } },
  )

  subscription_kinds = {
    # Worked on by processes. Ordering keys are used when publishers set them.
    work = { ack_deadline_seconds = 30, ordered = true, retry = { minimum_backoff = "1s", maximum_backoff = "30s" } }
    # Looked at by operators. What one looked at shall be there again at once,
    # so there is no backoff.
    review = { ack_deadline_seconds = 60, ordered = false, retry = null }
  }
}

resource "google_pubsub_topic" "fleet" {
  for_each = local.topics

  name = each.value

  depends_on = [google_project_service.api]
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
