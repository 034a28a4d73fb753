# Providers are pinned to the version this configuration was checked against;
# .terraform.lock.hcl pins their checksums.
terraform {
  required_version = ">= 1.9.0, < 2.0.0"

  # Partial: terraform init -backend-config="bucket=BUCKET". State belongs in a
  # bucket with object versioning; Terraform locks it during an apply.
  backend "gcs" {
    prefix = "dronefleet"
  }

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "6.50.0"
    }
  }
}

provider "google" {
  project = var.project
  region  = var.region
}
