# The Google APIs the fleet needs. They stay on when this configuration is
# destroyed: others in the project may use them.
locals {
  apis = setunion(
    toset([
      "artifactregistry.googleapis.com",
      "cloudresourcemanager.googleapis.com",
      "firebaserules.googleapis.com",
      "firestore.googleapis.com",
      "iam.googleapis.com",
      "iamcredentials.googleapis.com",
      "monitoring.googleapis.com",
      "pubsub.googleapis.com",
    ]),
    var.history == null ? toset([]) : toset(["bigquery.googleapis.com"]),
    var.runtime == "cloud_run" ? toset(["run.googleapis.com"]) : toset([]),
    var.runtime == "cloud_run" && var.optimizer_mode == "job" ? toset(["cloudscheduler.googleapis.com"]) : toset([]),
    var.otlp_headers_secret != "" || length(local.scraped) > 0 ? toset(["secretmanager.googleapis.com"]) : toset([]),
  )
}

resource "google_project_service" "api" {
  for_each = local.apis

  service            = each.value
  disable_on_destroy = false
}

# Images of the binaries. A tag, once pushed, never moves.
resource "google_artifact_registry_repository" "images" {
  repository_id = "dronefleet"
  location      = var.region
  format        = "DOCKER"
  description   = "Images of the fleet's programs."

  docker_config {
    immutable_tags = true
  }

  depends_on = [google_project_service.api]
}
