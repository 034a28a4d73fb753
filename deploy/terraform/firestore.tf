# The single source of truth. Point-in-time recovery keeps every version for
# seven days, to the minute. "optimizer solve" reads it with --at, and disaster
# recovery needs it.
resource "google_firestore_database" "fleet" {
  name                              = var.firestore_database
  location_id                       = var.firestore_location
  type                              = "FIRESTORE_NATIVE"
  database_edition                  = var.firestore_edition
  concurrency_mode                  = "PESSIMISTIC" # not Enterprise's default
  app_engine_integration_mode       = "DISABLED"
  point_in_time_recovery_enablement = "POINT_IN_TIME_RECOVERY_ENABLED"
  delete_protection_state           = var.protect ? "DELETE_PROTECTION_ENABLED" : "DELETE_PROTECTION_DISABLED"
  deletion_policy                   = var.protect ? "ABANDON" : "DELETE"

  depends_on = [google_project_service.api]
}

# Backups outlive the database; point-in-time recovery does not.
resource "google_firestore_backup_schedule" "daily" {
  database  = google_firestore_database.fleet.name
  retention = "604800s" # 7 days

  daily_recurrence {}
}

resource "google_firestore_backup_schedule" "weekly" {
  database  = google_firestore_database.fleet.name
  retention = "8467200s" # 14 weeks, the longest there is

  weekly_recurrence {
    day = "SUNDAY"
  }
}

# One source of indexes for this database and for the embedded server that every
# test runs on: a query without its index fails there first.
locals {
  index_file = jsondecode(file(
    var.sharded_indexes ? "${path.module}/../firestore.indexes.sharded.json" : "${path.module}/../firestore.indexes.json"
  ))

  # Keyed by content, so that a new index in the file does not recreate the others.
  indexes = {
    for index in local.index_file.indexes :
    join("/", concat(
      [index.collectionGroup, index.queryScope],
      [for f in index.fields : join(":", [f.fieldPath, try(f.order, f.arrayConfig)])],
    )) => index
  }

  fields = { for field in local.index_file.fieldOverrides : "${field.collectionGroup}/${field.fieldPath}" => field }

  # Standard indexes every field by itself, but for those exempted above. Enterprise
  # indexes none and would scan the whole collection: these serve the queries of the
  # binaries, and those of docs/auditing.md.
  enterprise = var.firestore_edition == "ENTERPRISE"
  queried = [
    ["alertAcks", "at"],
    ["alertAcks", "by"],
    ["cycles", "startedAt"],
    ["decisions", "appliedAt"],
    ["decisions", "warning"],
    ["discards", "discardedAt"],
    ["discards", "discardedBy"],
    ["drones", "currentMissionId"],
    ["drones", "homeDepotId", "status"],
    ["drones", "status"],
    ["drones", "unregistered"],
    ["events", "reason"],
    ["events", "time"],
    ["keys", "createdAt"],
    ["keys", "createdBy"],
    ["keys", "revokedAt"],
    ["keys", "revokedBy"],
    ["learned", "speedKmh"],
    ["lockBreaks", "brokenAt"],
    ["lockBreaks", "brokenBy"],
    ["locks", "lockId"],
    ["maintenance", "at"],
    ["maintenance", "by"],
    ["missions", "commandPending"],
    ["missions", "revokePending"],
    ["missions", "endTime"],
    ["missions", "startTime"],
    ["orders", "createdAt"],
    ["orders", "deliveredAt"],
    ["orders", "requesterId"],
    ["orders", "status", "held"],
    ["orders", "status", "late"],
    ["placeChanges", "changedAt"],
    ["refusals", "orderId"],
    ["refusals", "outcome"],
    ["refusals", "refusedAt"],
    ["replays", "replayedAt"],
    ["replays", "replayedBy"],
    ["webhookDeliveries", "webhookId", "status"],
  ]
  by_hand = {
    for index in local.queried : join("/", index) => index
    if local.enterprise && !(var.sharded_indexes && contains(["events/time", "orders/createdAt", "orders/deliveredAt"], join("/", index)))
  }
}

resource "google_firestore_index" "by_hand" {
  for_each = local.by_hand

  database    = google_firestore_database.fleet.name
  collection  = each.value[0]
  query_scope = "COLLECTION"

  dynamic "fields" {
    for_each = slice(each.value, 1, length(each.value))
    content {
      field_path = fields.value
      order      = "ASCENDING"
    }
  }
}

resource "google_firestore_index" "composite" {
  for_each = local.indexes

  database    = google_firestore_database.fleet.name
  collection  = each.value.collectionGroup
  query_scope = each.value.queryScope

  dynamic "fields" {
    for_each = each.value.fields
    content {
      field_path   = fields.value.fieldPath
      order        = try(fields.value.order, null)
      array_config = try(fields.value.arrayConfig, null)
    }
  }
}

# Exemptions: an index on sequential values would cap its collection at 500
# writes a second. A field with "ttl" is the one its documents expire by. Enterprise
# has nothing to exempt. Indexes that serve a field's queries instead are built first.
resource "google_firestore_field" "override" {
  for_each = { for name, field in local.fields : name => field if !local.enterprise || try(field.ttl, false) }

  database   = google_firestore_database.fleet.name
  collection = each.value.collectionGroup
  field      = each.value.fieldPath
  depends_on = [google_firestore_index.composite]

  dynamic "index_config" {
    for_each = local.enterprise ? [] : [true]
    content {
      dynamic "indexes" {
        for_each = each.value.indexes
        content {
          query_scope  = try(indexes.value.queryScope, "COLLECTION")
          order        = try(indexes.value.order, null)
          array_config = try(indexes.value.arrayConfig, null)
        }
      }
    }
  }

  dynamic "ttl_config" {
    for_each = try(each.value.ttl, false) ? [true] : []
    content {}
  }
}

# These rules bind client libraries for browsers and phones, and deny everything.
# The binaries are bound by IAM instead.
resource "google_firebaserules_ruleset" "closed" {
  source {
    files {
      name    = "firestore.rules"
      content = file("${path.module}/../firestore.rules")
    }
  }

  depends_on = [google_firestore_database.fleet]
}

resource "google_firebaserules_release" "closed" {
  name         = var.firestore_database == "(default)" ? "cloud.firestore" : "cloud.firestore/${var.firestore_database}"
  ruleset_name = google_firebaserules_ruleset.closed.name
}
