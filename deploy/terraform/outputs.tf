output "service_accounts" {
  description = "E-mail address of each account, by kind of program."
  value       = { for name, account in google_service_account.fleet : name => account.email }
}

output "image_repository" {
  description = "Where images are pushed: REPOSITORY/PROGRAM:VERSION."
  value       = "${var.region}-docker.pkg.dev/${var.project}/${google_artifact_registry_repository.images.repository_id}"
}

output "topics" {
  description = "Full names of the topics."
  value       = { for name, topic in google_pubsub_topic.fleet : name => topic.id }
}

output "api_url" {
  description = "Address of the State Manager's HTTP API; null when it runs on GKE."
  value       = local.cloud_run ? google_cloud_run_v2_service.fleet["statemanager"].uri : null
}

output "gateway_url" {
  description = "Address at which drones connect, port 443; null without a gateway on Cloud Run."
  value       = local.cloud_run && var.gateway_image != "" ? google_cloud_run_v2_service.fleet["gateway"].uri : null
}

output "environment" {
  description = "Settings that every process of the fleet needs, wherever it runs."
  value       = local.environment
}
