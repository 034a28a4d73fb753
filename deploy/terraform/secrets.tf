# The fleet's binaries authenticate to Google Cloud by the accounts they run as, without
# passwords and keys. A trace collector outside Google Cloud may need a token, a lock store
# a password, browsers sign in with a client's secret and a session key, and a key seals
# webhooks' secrets; create these beforehand, so that their values are in no state file.
resource "google_secret_manager_secret_iam_member" "reader" {
  for_each = var.otlp_headers_secret != "" && local.cloud_run ? setunion(["statemanager", "optimizer"], var.gateway_image != "" ? ["gateway"] : []) : toset([])

  project   = var.project
  secret_id = var.otlp_headers_secret
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.fleet[each.key].member

  depends_on = [google_project_service.api]
}

resource "google_secret_manager_secret_iam_member" "lock" {
  for_each = var.lock_password_secret != "" && local.cloud_run ? toset(["statemanager", "optimizer"]) : toset([])

  project   = var.project
  secret_id = var.lock_password_secret
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.fleet[each.key].member

  depends_on = [google_project_service.api]
}

resource "google_secret_manager_secret_iam_member" "own" {
  for_each = local.cloud_run ? toset(values(local.own_secrets)) : toset([])

  project   = var.project
  secret_id = each.value
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.fleet["statemanager"].member

  depends_on = [google_project_service.api]
}

# The configuration of the collector beside a Cloud Run instance. It is not secret,
# but a mounted secret is how Cloud Run gives a container a file.
resource "google_secret_manager_secret" "collector" {
  for_each = local.scraped

  secret_id = "dronefleet-${each.key}-collector"

  replication {
    auto {}
  }

  depends_on = [google_project_service.api]
}

resource "google_secret_manager_secret_version" "collector" {
  for_each = local.scraped

  secret = google_secret_manager_secret.collector[each.key].id
  secret_data = jsonencode({ # which is YAML, too
    apiVersion = "monitoring.googleapis.com/v1beta"
    kind       = "RunMonitoring"
    metadata   = { name = "dronefleet-${each.key}" }
    spec       = { endpoints = [{ port = 8080, path = "/metrics", interval = "30s", timeout = "10s" }] }
  })
}

resource "google_secret_manager_secret_iam_member" "collector" {
  for_each = local.scraped

  project   = var.project
  secret_id = google_secret_manager_secret.collector[each.key].secret_id
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.fleet[each.key].member
}
