# Cloud Run, when runtime is cloud_run.
#
# State Manager and optimizer pull: they work without requests, so their CPU is always allocated
# and the minimum number of instances counts. Cloud Run kills an instance 10 s
# after SIGTERM. A State Manager nacks messages that it cannot settle within
# DRONEFLEET_DRAIN_TIMEOUT; everything is settled 5 s later, and the process ends
# within another second. On GKE it gets more time.
locals {
  cloud_run     = var.runtime == "cloud_run"
  optimizer_run = local.cloud_run && var.optimizer_mode == "service"
  optimizer_job = local.cloud_run && var.optimizer_mode == "job"

  # Services whose /metrics a collector scrapes; a job ends before it could be.
  scraped = toset(local.cloud_run && var.metrics_sidecar_image != "" ? keys(local.services) : [])

  common_environment = merge(
    {
      GOOGLE_CLOUD_PROJECT = var.project
      FIRESTORE_DATABASE   = var.firestore_database
      LOG_LEVEL            = var.log_level
      GOMEMLIMIT           = "850MiB" # of the 1 GiB that each container gets
    },
    var.otlp_endpoint != "" ? { OTEL_EXPORTER_OTLP_ENDPOINT = var.otlp_endpoint } : {},
  )
  environment = merge(
    local.common_environment,
    var.lock_url != "" ? { LOCK_STORE = var.lock_url } : {},
    var.retention != "" ? { DRONEFLEET_RETENTION = var.retention } : {},
  )

  # Without a token issuer, the Identity-Aware Proxy and required keys the API relies on
  # Cloud Run, which admits only api_invokers. Commas are escaped because they separate
  # the entries of a list, and names of directory groups contain some.
  api_environment = merge(
    { DRONEFLEET_API_KEYS = var.api_keys },
    var.oidc != null || var.iap != null || var.api_keys == "require" ? {} : { DRONEFLEET_INSECURE_HTTP = "true" },
    var.oidc == null ? {} : {
      DRONEFLEET_OIDC_ISSUER    = var.oidc.issuer
      DRONEFLEET_OIDC_AUDIENCE  = join(",", [for a in var.oidc.audiences : replace(a, ",", "\\,")])
      DRONEFLEET_OIDC_VIEWER    = join(",", [for v in var.oidc.viewers : replace(v, ",", "\\,")])
      DRONEFLEET_OIDC_AUDITOR   = join(",", [for a in var.oidc.auditors : replace(a, ",", "\\,")])
      DRONEFLEET_OIDC_OPERATOR  = join(",", [for o in var.oidc.operators : replace(o, ",", "\\,")])
      DRONEFLEET_OIDC_REQUESTER = join(",", [for r in var.oidc.requesters : replace(r, ",", "\\,")])
    },
    var.oidc == null && var.iap == null ? {} : {
      DRONEFLEET_REQUESTER_CLAIM = var.oidc != null ? var.oidc.requester_claim : var.iap.requester_claim
    },
    var.sign_in == null ? {} : {
      DRONEFLEET_OIDC_CLIENT_ID = var.sign_in.client_id
      DRONEFLEET_PUBLIC_URL     = var.sign_in.public_url
    },
    var.iap == null ? {} : {
      DRONEFLEET_IAP_AUDIENCE  = var.iap.audience
      DRONEFLEET_IAP_VIEWER    = join(",", [for v in var.iap.viewers : replace(v, ",", "\\,")])
      DRONEFLEET_IAP_AUDITOR   = join(",", [for a in var.iap.auditors : replace(a, ",", "\\,")])
      DRONEFLEET_IAP_OPERATOR  = join(",", [for o in var.iap.operators : replace(o, ",", "\\,")])
      DRONEFLEET_IAP_REQUESTER = join(",", [for r in var.iap.requesters : replace(r, ",", "\\,")])
    },
    {
      # The service's own names, whose hash nobody knows before it exists. All of
      # run.app is Google's, so no page can point one of them elsewhere.
      DRONEFLEET_HTTP_HOSTS    = join(",", concat(["*.run.app"], var.http_hosts))
      DRONEFLEET_RATE_READS    = tostring(var.rate_limits.reads)
      DRONEFLEET_RATE_COMMANDS = tostring(var.rate_limits.commands)
      DRONEFLEET_MAX_STREAMS   = tostring(var.rate_limits.streams)
    },
    length(var.trusted_proxies) == 0 ? {} : { DRONEFLEET_TRUSTED_PROXIES = join(",", var.trusted_proxies) },
    length(var.cors_origins) == 0 ? {} : { DRONEFLEET_CORS_ORIGINS = join(",", var.cors_origins) },
  )
  # The State Manager's, by the variable that each is for.
  own_secrets = merge(
    var.sign_in == null ? {} : { DRONEFLEET_SESSION_KEY = var.sign_in.session_key },
    var.sign_in == null || try(var.sign_in.client_secret, "") == "" ? {} : { DRONEFLEET_OIDC_CLIENT_SECRET = var.sign_in.client_secret },
    var.webhook_key_secret == "" ? {} : { DRONEFLEET_WEBHOOK_KEY = var.webhook_key_secret },
  )
  history_environment = var.history == null ? {} : { DRONEFLEET_HISTORY = "true" }
  shard_environment   = var.sharded_indexes ? { DRONEFLEET_SHARDED_INDEXES = "true" } : {}
  # The instances share the 500 writes a second that a new database takes.
  ramp_environment = { DRONEFLEET_RAMP = var.ramp ? tostring(floor(500 / var.statemanager_instances.min)) : "off" }

  sender_environment = var.require_sender ? { DRONEFLEET_REQUIRE_SENDER = "true" } : {}
  # A job plans at best once a minute. Three times this is how long the alert on its
  # runs waits.
  watch_environment = local.optimizer_job ? { DRONEFLEET_CYCLE_INTERVAL = "100s" } : {}
  trace_secrets     = var.otlp_headers_secret != "" ? { OTEL_EXPORTER_OTLP_HEADERS = var.otlp_headers_secret } : {}
  secret_environment = merge(
    local.trace_secrets,
    var.lock_password_secret != "" ? { LOCK_PASSWORD = var.lock_password_secret } : {},
  )

  # Cloud Run ends TLS, so drones prove who they are by an API key or a token, not by a
  # certificate. An instance takes as many drones as Cloud Run sends requests. When one is
  # killed 10 s after SIGTERM, drones send again what it has not acked.
  gateway_environment = merge(
    local.common_environment,
    {
      DRONEFLEET_INSECURE_LINK  = "true"
      DRONEFLEET_LINK_ADDR      = ":8443"
      DRONEFLEET_MAX_DRONES     = tostring(local.drones_per_gateway)
      DRONEFLEET_DRAIN_TIMEOUT  = "3s"
      DRONEFLEET_METRICS_ACCESS = "local"
      HTTP_ADDR                 = ":8080"
    },
    var.gateway_oidc == null ? {} : {
      DRONEFLEET_OIDC_ISSUER      = var.gateway_oidc.issuer
      DRONEFLEET_OIDC_AUDIENCE    = join(",", [for a in var.gateway_oidc.audiences : replace(a, ",", "\\,")])
      DRONEFLEET_OIDC_DRONE       = join(",", [for d in var.gateway_oidc.drones : replace(d, ",", "\\,")])
      DRONEFLEET_OIDC_DRONE_CLAIM = var.gateway_oidc.drone_claim
    },
  )
  drones_per_gateway = 1000 # the most that Cloud Run allows

  services = merge(
    local.cloud_run && var.gateway_image != "" ? {
      gateway = {
        image  = var.gateway_image
        args   = ["link"]
        env    = local.gateway_environment
        secret = local.trace_secrets
        min    = var.gateway_instances.min
        max    = var.gateway_instances.max
        cpu    = "1"
        memory = "1Gi"
      }
    } : {},
    local.cloud_run ? {
      statemanager = {
        image  = var.statemanager_image
        args   = ["serve"]
        env    = merge(local.environment, { HTTP_ADDR = ":8080", DRONEFLEET_METRICS_ACCESS = "local", DRONEFLEET_DRAIN_TIMEOUT = "3s" }, local.api_environment, local.shard_environment, local.history_environment, local.ramp_environment, local.sender_environment, local.watch_environment)
        secret = merge(local.secret_environment, local.own_secrets)
        min    = var.statemanager_instances.min
        max    = var.statemanager_instances.max
        cpu    = "2"
        memory = "1Gi"
      }
    } : {},
    local.optimizer_run ? {
      optimizer = {
        image  = var.optimizer_image
        args   = ["run"]
        env    = merge(local.environment, { HTTP_ADDR = ":8080", DRONEFLEET_METRICS_ACCESS = "local" })
        secret = local.secret_environment
        min    = var.optimizer_instances
        max    = var.optimizer_instances
        cpu    = "2"
        memory = "1Gi"
      }
    } : {},
  )
}

resource "google_cloud_run_v2_service" "fleet" {
  for_each = local.services

  name     = each.key
  location = var.region
  # Drones are outside, and have no credentials of Google: the gateway knows each by its key.
  ingress = var.ingress == "all" || each.key == "gateway" ? "INGRESS_TRAFFIC_ALL" : "INGRESS_TRAFFIC_INTERNAL_ONLY"
  # Another optimizer_mode deletes the optimizer's service, to pause planning for
  # instance; protected, it would stay, and the apply fail.
  deletion_protection = var.protect && each.key == "statemanager"
  # Browsers reach the sign-in, and machines with a key the API, without Google's
  # credentials; the State Manager then admits only who signed in, or has a token or key.
  invoker_iam_disabled = each.key == "gateway" || each.key == "statemanager" && (var.sign_in != null || var.api_keys == "require")

  template {
    service_account       = google_service_account.fleet[each.key].email
    execution_environment = "EXECUTION_ENVIRONMENT_GEN2"
    # A session of a drone is a request; Cloud Run ends it after an hour, and the drone reconnects.
    timeout                          = each.key == "gateway" ? "3600s" : null
    max_instance_request_concurrency = each.key == "gateway" ? local.drones_per_gateway : null

    scaling {
      min_instance_count = each.value.min
      max_instance_count = each.value.max
    }

    dynamic "vpc_access" {
      for_each = var.lock_network == null || each.key == "gateway" ? [] : [var.lock_network]
      content {
        egress = "PRIVATE_RANGES_ONLY"
        network_interfaces {
          network    = vpc_access.value.network
          subnetwork = vpc_access.value.subnetwork
        }
      }
    }

    containers {
      name  = each.key
      image = each.value.image
      args  = each.value.args

      # gRPC needs HTTP/2 up to the gateway.
      ports {
        name           = each.key == "gateway" ? "h2c" : null
        container_port = each.key == "gateway" ? 8443 : 8080
      }

      resources {
        limits            = { cpu = each.value.cpu, memory = each.value.memory }
        cpu_idle          = false # always allocated
        startup_cpu_boost = true
      }

      dynamic "env" {
        for_each = each.value.env
        content {
          name  = env.key
          value = env.value
        }
      }

      dynamic "env" {
        for_each = each.value.secret
        content {
          name = env.key
          value_source {
            secret_key_ref {
              secret  = env.value
              version = "latest"
            }
          }
        }
      }

      # A revision that cannot reach Firestore and Pub/Sub never takes over. Only
      # /healthz answers to every host.
      startup_probe {
        period_seconds    = 5
        timeout_seconds   = 5
        failure_threshold = 24
        http_get {
          path = "/readyz"
          port = 8080
          http_headers {
            name  = "Host"
            value = "localhost"
          }
        }
      }

      # Not /readyz: a restart does not help while Firestore is down.
      liveness_probe {
        period_seconds    = 10
        timeout_seconds   = 5
        failure_threshold = 6
        http_get {
          path = "/healthz"
          port = 8080
        }
      }
    }

    dynamic "containers" {
      for_each = contains(local.scraped, each.key) ? [var.metrics_sidecar_image] : []
      content {
        name       = "collector"
        image      = containers.value
        depends_on = [each.key]

        resources {
          limits   = { cpu = "1", memory = "512Mi" }
          cpu_idle = false
        }

        volume_mounts {
          name       = "collector"
          mount_path = "/etc/rungmp/"
        }
      }
    }

    dynamic "volumes" {
      for_each = contains(local.scraped, each.key) ? [google_secret_manager_secret_version.collector[each.key]] : []
      content {
        name = "collector"
        secret {
          secret = google_secret_manager_secret.collector[each.key].secret_id
          items {
            path    = "config.yaml"
            version = volumes.value.version
          }
        }
      }
    }
  }

  traffic {
    type    = "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST"
    percent = 100
  }

  depends_on = [
    google_firestore_field.override,
    google_firestore_index.composite,
    google_project_iam_member.documents,
    google_project_iam_member.gateway,
    google_project_iam_member.other,
    google_project_iam_member.reader,
    google_pubsub_subscription_iam_member.subscriber,
    google_pubsub_topic_iam_member.gateway,
    google_pubsub_topic_iam_member.publisher,
    google_secret_manager_secret_iam_member.collector,
    google_secret_manager_secret_iam_member.lock,
    google_secret_manager_secret_iam_member.reader,
    google_secret_manager_secret_iam_member.own,
  ]
}

resource "google_cloud_run_v2_service_iam_member" "invoker" {
  for_each = local.cloud_run ? var.api_invokers : toset([])

  name     = google_cloud_run_v2_service.fleet["statemanager"].name
  location = var.region
  role     = "roles/run.invoker"
  member   = each.value
}

# The other way to plan: one cycle per execution. Cloud Scheduler starts it at most
# once a minute, whereas "optimizer run" plans every ten seconds.
resource "google_cloud_run_v2_job" "optimizer" {
  count = local.optimizer_job ? 1 : 0

  name                = "optimizer"
  location            = var.region
  deletion_protection = false # as the service that takes its place

  template {
    template {
      service_account = google_service_account.fleet["optimizer"].email
      timeout         = "120s"
      max_retries     = 0 # the next minute tries again, with a newer snapshot

      dynamic "vpc_access" {
        for_each = var.lock_network == null ? [] : [var.lock_network]
        content {
          egress = "PRIVATE_RANGES_ONLY"
          network_interfaces {
            network    = vpc_access.value.network
            subnetwork = vpc_access.value.subnetwork
          }
        }
      }

      containers {
        name  = "optimizer"
        image = var.optimizer_image
        args  = ["once"]

        resources {
          limits = { cpu = "2", memory = "1Gi" }
        }

        dynamic "env" {
          for_each = local.environment
          content {
            name  = env.key
            value = env.value
          }
        }

        dynamic "env" {
          for_each = local.secret_environment
          content {
            name = env.key
            value_source {
              secret_key_ref {
                secret  = env.value
                version = "latest"
              }
            }
          }
        }
      }
    }
  }

  depends_on = [
    google_project_iam_member.documents,
    google_pubsub_topic_iam_member.publisher,
    google_secret_manager_secret_iam_member.lock,
    google_secret_manager_secret_iam_member.reader,
  ]
}

# Cloud Scheduler's own account, which may only start this job.
resource "google_service_account" "scheduler" {
  count = local.optimizer_job ? 1 : 0

  account_id   = "optimizer-scheduler"
  display_name = "Cloud Scheduler: starts the optimizer's job"

  depends_on = [google_project_service.api]
}

resource "google_cloud_run_v2_job_iam_member" "scheduler" {
  count = local.optimizer_job ? 1 : 0

  name     = google_cloud_run_v2_job.optimizer[0].name
  location = var.region
  role     = "roles/run.invoker"
  member   = google_service_account.scheduler[0].member
}

resource "google_cloud_scheduler_job" "optimizer" {
  count = local.optimizer_job ? 1 : 0

  name             = "optimizer"
  description      = "Starts one solve cycle of every depot."
  region           = var.region
  schedule         = var.optimizer_schedule
  time_zone        = "Etc/UTC"
  attempt_deadline = "60s"

  retry_config {
    retry_count = 0
  }

  http_target {
    http_method = "POST"
    uri         = "https://run.googleapis.com/v2/${google_cloud_run_v2_job.optimizer[0].id}:run"

    oauth_token {
      service_account_email = google_service_account.scheduler[0].email
    }
  }
}
