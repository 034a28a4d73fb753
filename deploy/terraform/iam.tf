# One account per kind of program, with the least rights it needs. Topics and
# subscriptions are granted one by one, documents only for this database.
locals {
  service_accounts = {
    statemanager = "State Manager: applies telemetry, orders and decisions"
    optimizer    = "Optimizer: reads snapshots, publishes decisions"
    # It speaks for every drone and requester, so it must authenticate each of them. They have
    # no accounts here.
    gateway = "Gateway: publishes the reports and orders of those whom it has authenticated, receives missions"
  }

  members = { for name, account in google_service_account.fleet : name => account.member }

  database_condition = {
    title      = "only the fleet's database"
    expression = "resource.type == \"firestore.googleapis.com/Database\" && resource.name == \"projects/${var.project}/databases/${var.firestore_database}\""
  }

  # Who replays and discards dead letters: operators, and the State Manager for
  # operators whom its API identifies. It publishes orders for requesters by the same right.
  # Keyed by a name known before the account exists.
  replayers = merge({ for m in var.operators : m => m }, var.oidc == null && var.iap == null && var.api_keys == "off" ? {} : { statemanager = local.members.statemanager })

  # Who publishes to which topic.
  publishers = merge(
    # Commands to drones, and dead letters.
    { for t in setunion(["missions"], [for t in local.inbound : "${t}-dead-letter"]) : "statemanager/${t}" => { topic = t, member = local.members.statemanager } },
    {
      "optimizer/decisions" = { topic = "decisions", member = local.members.optimizer }
      "gateway/telemetry"   = { topic = "telemetry", member = local.members.gateway }
      "gateway/orders"      = { topic = "orders", member = local.members.gateway }
      "gateway/links"       = { topic = "links", member = local.members.gateway }
    },
    { for m in var.drone_publishers : "${m}/telemetry" => { topic = "telemetry", member = m } },
    { for m in var.hospital_publishers : "${m}/orders" => { topic = "orders", member = m } },
    # Replay of dead letters.
    { for pair in setproduct(keys(local.replayers), local.inbound) : "replay ${pair[0]}/${pair[1]}" => { topic = pair[1], member = local.replayers[pair[0]] } },
  )

  # Who consumes which subscription.
  subscribers = merge(
    { for t in local.inbound : "statemanager/${t}-statemanager" => { subscription = "${t}-statemanager", member = local.members.statemanager } },
    { for s in var.mission_subscriptions : "gateway/${s}" => { subscription = s, member = local.members.gateway } },
    { for pair in setproduct(var.drone_publishers, var.mission_subscriptions) : join("/", pair) => { subscription = pair[1], member = pair[0] } },
    { for pair in setproduct(keys(local.replayers), local.inbound) : "replay ${pair[0]}/${pair[1]}" => { subscription = "${pair[1]}-dead-letter-review", member = local.replayers[pair[0]] } },
  )

  # Who reads and writes documents.
  writers = merge(
    { for name in ["statemanager", "optimizer"] : name => local.members[name] },
    { for m in var.operators : "operator ${m}" => m },
  )

  # Other rights: the collector beside a Cloud Run instance acts as the instance's
  # account, operators read metrics and logs, and auditors the audit logs.
  project_roles = merge(
    {
      for pair in setproduct(local.scraped, ["roles/monitoring.metricWriter", "roles/logging.logWriter"]) :
      join("/", pair) => { member = local.members[pair[0]], role = pair[1] }
    },
    {
      for pair in setproduct(var.operators, ["roles/monitoring.viewer", "roles/logging.viewer"]) :
      "operator ${join("/", pair)}" => { member = pair[0], role = pair[1] }
    },
    { for m in var.auditors : "auditor ${m}" => { member = m, role = "roles/logging.privateLogViewer" } },
  )
}

resource "google_service_account" "fleet" {
  for_each = local.service_accounts

  account_id   = each.key
  display_name = each.value

  depends_on = [google_project_service.api]
}

resource "google_pubsub_topic_iam_member" "publisher" {
  for_each = local.publishers

  topic  = google_pubsub_topic.fleet[each.value.topic].name
  role   = "roles/pubsub.publisher"
  member = each.value.member
}

resource "google_pubsub_subscription_iam_member" "subscriber" {
  for_each = local.subscribers

  subscription = google_pubsub_subscription.fleet[each.value.subscription].name
  role         = "roles/pubsub.subscriber"
  member       = each.value.member
}

# The subscription of telemetry that a State Manager creates while somebody looks at the
# console, reads and deletes. Google has no role with so little.
resource "google_project_iam_custom_role" "live" {
  for_each = { for role, permissions in {
    dronefleetLiveSubscription = ["pubsub.subscriptions.consume", "pubsub.subscriptions.create", "pubsub.subscriptions.delete"]
    dronefleetLiveTopic        = ["pubsub.topics.attachSubscription"]
  } : role => permissions if var.live_telemetry }

  role_id     = each.key
  title       = "DroneFleet console, ${each.key == "dronefleetLiveTopic" ? "topic" : "subscription"}"
  description = "The temporary subscription of telemetry for the console."
  permissions = each.value

  depends_on = [google_project_service.api]
}

resource "google_project_iam_member" "live" {
  count = var.live_telemetry ? 1 : 0

  project = var.project
  role    = google_project_iam_custom_role.live["dronefleetLiveSubscription"].id
  member  = local.members.statemanager
}

resource "google_pubsub_topic_iam_member" "live" {
  count = var.live_telemetry ? 1 : 0

  topic  = google_pubsub_topic.fleet["telemetry"].name
  role   = google_project_iam_custom_role.live["dronefleetLiveTopic"].id
  member = local.members.statemanager
}

# The subscriptions that each gateway creates for itself, follows and deletes: of commands, and
# of the sessions of other gateways.
resource "google_project_iam_custom_role" "gateway" {
  for_each = {
    dronefleetGatewaySubscription = ["pubsub.subscriptions.consume", "pubsub.subscriptions.create", "pubsub.subscriptions.delete"]
    dronefleetGatewayTopic        = ["pubsub.topics.attachSubscription"]
  }

  role_id     = each.key
  title       = "DroneFleet gateway, ${each.key == "dronefleetGatewayTopic" ? "topic" : "subscription"}"
  description = "The temporary subscriptions of gateways."
  permissions = each.value

  depends_on = [google_project_service.api]
}

resource "google_project_iam_member" "gateway" {
  project = var.project
  role    = google_project_iam_custom_role.gateway["dronefleetGatewaySubscription"].id
  member  = local.members.gateway
}

resource "google_pubsub_topic_iam_member" "gateway" {
  for_each = toset(["missions", "links"])

  topic  = google_pubsub_topic.fleet[each.key].name
  role   = google_project_iam_custom_role.gateway["dronefleetGatewayTopic"].id
  member = local.members.gateway
}

# A gateway reads missions and API keys, and writes nothing.
resource "google_project_iam_member" "reader" {
  project = var.project
  role    = "roles/datastore.viewer"
  member  = local.members.gateway

  condition {
    title      = local.database_condition.title
    expression = local.database_condition.expression
  }
}

resource "google_project_iam_member" "documents" {
  for_each = local.writers

  project = var.project
  role    = "roles/datastore.user"
  member  = each.value

  condition {
    title      = local.database_condition.title
    expression = local.database_condition.expression
  }
}

resource "google_project_iam_member" "auditors" {
  for_each = var.auditors

  project = var.project
  role    = "roles/datastore.viewer"
  member  = each.value

  condition {
    title      = local.database_condition.title
    expression = local.database_condition.expression
  }
}

# Who changes documents by hand leaves a trace in the Data Access logs. The fleet's own writes
# are in the documents, and would fill the logs. This replaces any setting of the project for
# this service.
resource "google_project_iam_audit_config" "documents" {
  project = var.project
  service = "datastore.googleapis.com"

  audit_log_config {
    log_type         = "DATA_WRITE"
    exempted_members = [local.members.statemanager, local.members.optimizer]
  }
}

resource "google_project_iam_member" "other" {
  for_each = local.project_roles

  project = var.project
  role    = each.value.role
  member  = each.value.member
}

# On GKE the pods' service accounts of deploy/k8s act as ours.
resource "google_service_account_iam_member" "gke" {
  for_each = var.runtime == "gke" ? toset(["statemanager", "optimizer", "gateway"]) : toset([])

  service_account_id = google_service_account.fleet[each.key].name
  role               = "roles/iam.workloadIdentityUser"
  member             = "serviceAccount:${var.project}.svc.id.goog[${var.gke_namespace}/${each.key}]"
}
