variable "project" {
  description = "Google Cloud project that holds the fleet."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "project is not a project id: 6 to 30 lower-case letters, digits and hyphens, beginning with a letter."
  }
}

variable "region" {
  description = "Region of Cloud Run and of the image repository; choose one near the Firestore location."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "region is not a region, such as europe-west9."
  }
}

variable "firestore_location" {
  description = "Location of the database, which cannot be changed later: a region (europe-west9) or a multi-region (eur3, nam5)."
  type        = string

  validation {
    condition     = can(regex("^([a-z]+-[a-z]+[0-9]+|eur3|nam5|nam7)$", var.firestore_location))
    error_message = "firestore_location is neither a region, such as europe-west9, nor one of eur3, nam5, nam7."
  }
}

variable "firestore_database" {
  description = "Firestore database id; the binaries' --database."
  type        = string
  default     = "(default)"

  validation {
    condition     = var.firestore_database == "(default)" || can(regex("^[a-z][a-z0-9-]{2,61}[a-z0-9]$", var.firestore_database))
    error_message = "firestore_database is neither \"(default)\" nor 4 to 63 lower-case letters, digits and hyphens, beginning with a letter."
  }
}

variable "firestore_edition" {
  description = "Edition of the Firestore database, for good: STANDARD, or ENTERPRISE, which makes no index by itself. See docs/deploy.md."
  type        = string
  default     = "STANDARD"

  validation {
    condition     = contains(["STANDARD", "ENTERPRISE"], var.firestore_edition)
    error_message = "firestore_edition is neither STANDARD nor ENTERPRISE."
  }
}

variable "sharded_indexes" {
  description = "Whether the indexes on the times of events and orders begin with the field shard. Set it for fleets that write more than 500 events a second, see docs/auditing.md."
  type        = bool
  default     = false
}

variable "retention" {
  description = "How long new documents are kept, as --retention has it: events=30y,decisions=30y,cycles=30d. Empty: 90 days, orders and missions for ever."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^([a-zA-Z]+=[0-9]+[dy](,|$))*$", var.retention))
    error_message = "retention is not a list such as events=30y,cycles=30d."
  }
}

variable "telemetry_archive" {
  description = "BigQuery table, as PROJECT.DATASET.TABLE, that every report is written to; empty for none. Its own expiration says how long reports are kept, see docs/auditing.md."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^([a-z0-9-]+\\.[A-Za-z0-9_]+\\.[A-Za-z0-9_]+)?$", var.telemetry_archive))
    error_message = "telemetry_archive is not a table such as project.dataset.table."
  }
}

variable "history" {
  description = "Write reports, events, decisions, and orders and missions that have ended to BigQuery, see docs/history.md: the number of this project, the location of the dataset, and how many days rows are kept. null writes none."
  type        = object({ project_number = string, location = string, days = optional(number, 400) })
  default     = null

  validation {
    condition     = var.history == null || can(regex("^[0-9]+$", var.history.project_number))
    error_message = "history.project_number is not a number; \"gcloud projects describe PROJECT\" shows it."
  }

  validation {
    condition     = var.history == null || can(regex("^([a-z]+-[a-z]+[0-9]+|EU|US)$", var.history.location))
    error_message = "history.location is neither a region, such as europe-west9, nor EU or US."
  }

  validation {
    condition     = var.history == null || try(var.history.days >= 1 && floor(var.history.days) == var.history.days, false)
    error_message = "history.days is not a whole number of at least 1."
  }
}

variable "ramp" {
  description = "Let the load of a large fleet on a new database rise slowly; a small fleet does not notice. Turn it off for a database that is used to its fleet. See docs/capacity.md."
  type        = bool
  default     = true
}

variable "protect" {
  description = "Refuse to delete the database and the State Manager's service. Turn it off, apply, and only then destroy."
  type        = bool
  default     = true
}

variable "runtime" {
  description = "Where the binaries run: cloud_run creates services here; gke leaves them to deploy/k8s and lets its service accounts act as ours."
  type        = string
  default     = "cloud_run"

  validation {
    condition     = contains(["cloud_run", "gke"], var.runtime)
    error_message = "runtime is neither cloud_run nor gke."
  }
}

variable "statemanager_image" {
  description = "Image of the State Manager, with a tag that never moves or a digest. Required on cloud_run."
  type        = string
  default     = ""

  validation {
    condition     = var.runtime != "cloud_run" || can(regex("(:[^:/]+|@sha256:[0-9a-f]{64})$", var.statemanager_image))
    error_message = "statemanager_image needs a tag or a digest when runtime is cloud_run."
  }

  validation {
    condition     = !endswith(var.statemanager_image, ":latest")
    error_message = "statemanager_image ends with :latest, which nobody can roll back to; name a version."
  }
}

variable "optimizer_image" {
  description = "Image of the optimizer, with a tag that never moves or a digest. Required on cloud_run."
  type        = string
  default     = ""

  validation {
    condition     = var.runtime != "cloud_run" || can(regex("(:[^:/]+|@sha256:[0-9a-f]{64})$", var.optimizer_image))
    error_message = "optimizer_image needs a tag or a digest when runtime is cloud_run."
  }

  validation {
    condition     = !endswith(var.optimizer_image, ":latest")
    error_message = "optimizer_image ends with :latest, which nobody can roll back to; name a version."
  }
}

variable "statemanager_instances" {
  description = "Instances of the State Manager. They pull, so no request makes Cloud Run start more; min is the number that works."
  type        = object({ min = number, max = number })
  default     = { min = 2, max = 4 }

  validation {
    condition     = var.statemanager_instances.min >= 1 && var.statemanager_instances.min <= var.statemanager_instances.max
    error_message = "statemanager_instances.min is below 1 or above max: with none, nothing consumes telemetry."
  }
}

variable "optimizer_mode" {
  description = "service keeps \"optimizer run\" running, with a cycle every ten seconds; job lets Cloud Scheduler start \"optimizer once\", at most once a minute."
  type        = string
  default     = "service"

  validation {
    condition     = contains(["service", "job"], var.optimizer_mode)
    error_message = "optimizer_mode is neither service nor job."
  }
}

variable "optimizer_instances" {
  description = "Instances of \"optimizer run\". The cycle lock lets one plan while the others stand by."
  type        = number
  default     = 2

  validation {
    condition     = var.optimizer_instances >= 1 && floor(var.optimizer_instances) == var.optimizer_instances
    error_message = "optimizer_instances is not a whole number of at least 1."
  }
}

variable "optimizer_schedule" {
  description = "When Cloud Scheduler starts \"optimizer once\", as a cron expression in UTC. An alert fires when no run has succeeded for five minutes."
  type        = string
  default     = "* * * * *"

  validation {
    condition     = can(regex("^(\\S+\\s+){4}\\S+$", var.optimizer_schedule))
    error_message = "optimizer_schedule is not a cron expression of five fields."
  }
}

variable "gateway_image" {
  description = "Image of the gateway, with a tag that never moves or a digest, for drones that connect over gRPC and prove who they are by an API key or a token. Empty for no gateway on cloud_run: those that take drones' certificates or WebSocket run on gke."
  type        = string
  default     = ""

  validation {
    condition     = var.gateway_image == "" || can(regex("(:[^:/]+|@sha256:[0-9a-f]{64})$", var.gateway_image)) && !endswith(var.gateway_image, ":latest")
    error_message = "gateway_image needs a tag other than latest, or a digest."
  }
}

variable "gateway_instances" {
  description = "Instances of the gateway. Each takes up to 1,000 drones, and Cloud Run starts more as drones connect."
  type        = object({ min = number, max = number })
  default     = { min = 2, max = 10 }

  validation {
    condition     = var.gateway_instances.min >= 1 && var.gateway_instances.min <= var.gateway_instances.max
    error_message = "gateway_instances.min is below 1 or above max: with none, a drone that reconnects waits for one to start."
  }
}

variable "gateway_oidc" {
  description = "Token issuer of drones, accepted audiences, which tokens are drones' (CLAIM=VALUE, or * for all), and the claim that holds the drone's id. With null drones have API keys only."
  type        = object({ issuer = string, audiences = list(string), drones = list(string), drone_claim = optional(string, "sub") })
  default     = null

  validation {
    condition     = var.gateway_oidc == null || try(startswith(var.gateway_oidc.issuer, "https://") && length(var.gateway_oidc.audiences) > 0 && length(var.gateway_oidc.drones) > 0 && var.gateway_oidc.drone_claim != "", false)
    error_message = "gateway_oidc needs an issuer that begins with https://, at least one audience, at least one entry of drones, and a drone_claim that is not empty."
  }

  validation {
    condition     = var.gateway_oidc == null || var.gateway_image != ""
    error_message = "gateway_oidc is given without gateway_image."
  }
}

variable "ingress" {
  description = "Who can reach the HTTP API's address: internal (this project's networks) or all. Either way only api_invokers are admitted."
  type        = string
  default     = "internal"

  validation {
    condition     = contains(["internal", "all"], var.ingress)
    error_message = "ingress is neither internal nor all."
  }
}

variable "api_invokers" {
  description = "Who may call the HTTP API, as IAM members (user:, group:, serviceAccount:)."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for m in var.api_invokers : can(regex("^(user|group|serviceAccount|domain):[^:]+$", m))])
    error_message = "api_invokers has an entry that is not user:…, group:…, serviceAccount:… or domain:…; allUsers is not for this API."
  }
}

variable "oidc" {
  description = "Token issuer of the HTTP API, accepted audiences, and the claims (CLAIM=VALUE) of viewers, auditors, operators and requesters; requester_claim holds a requester's id. With null no token is required: Cloud Run admits only api_invokers, and the API is read-only but for api_keys. On gke it only grants the State Manager the replay and discard of dead letters and the publishing of orders."
  type = object({
    issuer          = string
    audiences       = list(string)
    viewers         = list(string)
    operators       = list(string)
    auditors        = optional(list(string), [])
    requesters      = optional(list(string), [])
    requester_claim = optional(string, "requester")
  })
  default = null

  validation {
    condition     = var.oidc == null || try(startswith(var.oidc.issuer, "https://") && length(var.oidc.audiences) > 0 && length(concat(var.oidc.viewers, var.oidc.auditors, var.oidc.operators, var.oidc.requesters)) > 0 && var.oidc.requester_claim != "", false)
    error_message = "oidc needs an issuer that begins with https://, at least one audience, at least one viewer, auditor, operator or requester, and a requester_claim that is not empty."
  }
}

variable "api_keys" {
  description = "What the HTTP API does with API keys, which \"statemanager keys\" makes: off, accept them beside other credentials, or require credentials of every caller, so that keys alone protect the API and Cloud Run admits callers without Google's credentials. Other than off, it grants the State Manager the replay and discard of dead letters and the publishing of orders."
  type        = string
  default     = "off"

  validation {
    condition     = contains(["off", "accept", "require"], var.api_keys)
    error_message = "api_keys is off, accept or require."
  }
}

variable "sign_in" {
  description = "Sign-in of browsers at oidc's issuer: the client's id and the address of the site in browsers, and the existing Secret Manager secrets that hold the client's secret (empty for a public client) and the key of sessions (openssl rand -base64 32). With null browsers cannot sign in there."
  type        = object({ client_id = string, public_url = string, client_secret = string, session_key = string })
  default     = null

  validation {
    condition     = var.sign_in == null || var.oidc != null
    error_message = "sign_in is given without oidc."
  }

  validation {
    condition     = var.sign_in == null || try(var.sign_in.client_id != "" && startswith(var.sign_in.public_url, "https://") && can(regex("^[A-Za-z0-9_-]{0,255}$", var.sign_in.client_secret)) && can(regex("^[A-Za-z0-9_-]{1,255}$", var.sign_in.session_key)), false)
    error_message = "sign_in needs a client_id, a public_url that begins with https://, and ids of secrets in this project as session_key and client_secret."
  }
}

variable "iap" {
  description = "Google's Identity-Aware Proxy in front of the HTTP API: the audience of its signed header, and who views, audits, operates and requests (CLAIM=VALUE); a requester's id is in the claim that oidc's requester_claim or, without oidc, this one names. With null its header is not accepted."
  type = object({
    audience        = string
    viewers         = list(string)
    operators       = list(string)
    auditors        = optional(list(string), [])
    requesters      = optional(list(string), [])
    requester_claim = optional(string, "requester")
  })
  default = null

  validation {
    condition = var.iap == null || var.oidc == null || try(!contains(concat(
      var.oidc.viewers, var.oidc.auditors, var.oidc.operators, var.oidc.requesters,
      var.iap.viewers, var.iap.auditors, var.iap.operators, var.iap.requesters,
    ), "*"), false)
    error_message = "oidc and iap are both given, and one has *, which does not say who may come in which way; give CLAIM=VALUE."
  }

  validation {
    condition     = var.iap == null || try(startswith(var.iap.audience, "/projects/") && length(concat(var.iap.viewers, var.iap.auditors, var.iap.operators, var.iap.requesters)) > 0 && var.iap.requester_claim != "", false)
    error_message = "iap needs an audience such as /projects/NUMBER/global/backendServices/ID, at least one viewer, auditor, operator or requester, and a requester_claim that is not empty."
  }
}

variable "http_hosts" {
  description = "Host names of the HTTP API besides Cloud Run's own and that of sign_in, such as the load balancer's. Requests for other hosts are refused."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for h in var.http_hosts : can(regex("^([*][.])?[a-z0-9.-]+$", h))])
    error_message = "http_hosts has an entry that is not a name such as fleet.example.org or *.example.org."
  }
}

variable "rate_limits" {
  description = "Reads and commands that each caller of the HTTP API may send a second, and streams that it may have open; 0 means no limit. Each instance counts for itself."
  type        = object({ reads = number, commands = number, streams = number })
  default     = { reads = 20, commands = 2, streams = 20 }

  validation {
    condition     = var.rate_limits.reads >= 0 && var.rate_limits.commands >= 0 && var.rate_limits.streams >= 0 && floor(var.rate_limits.streams) == var.rate_limits.streams
    error_message = "rate_limits has a number below 0, or streams that are not whole."
  }
}

variable "trusted_proxies" {
  description = "Addresses and ranges of proxies whose X-Forwarded-For the HTTP API believes. The default is Cloud Run's own; behind a load balancer add its address."
  type        = list(string)
  default     = ["169.254.0.0/16"]

  validation {
    condition     = alltrue([for p in var.trusted_proxies : can(regex("^[0-9A-Fa-f]*[.:][0-9A-Fa-f.:]+(/[0-9]{1,3})?$", p))])
    error_message = "trusted_proxies has an entry that is neither an address nor a range such as 169.254.0.0/16."
  }
}

variable "cors_origins" {
  description = "Origins of other sites whose pages may use the HTTP API with a bearer token, exactly as browsers send them."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for o in var.cors_origins : can(regex("^https?://[a-z0-9.-]+(:[0-9]+)?$", o))])
    error_message = "cors_origins has an entry that is not an origin such as https://board.example.org."
  }
}

variable "live_telemetry" {
  description = "Let State Managers create a temporary subscription of telemetry while somebody looks at the console. The grant covers all subscriptions of the project, because Pub/Sub knows no condition on their names. Without it positions on the map are as old as the documents."
  type        = bool
  default     = true
}

variable "require_sender" {
  description = "Refuse reports and orders that do not come from the drone or requester that they name, as the attribute dronefleet-sender tells. Set it once everything is published by a gateway that sets the attribute."
  type        = bool
  default     = false
}

variable "drone_publishers" {
  description = "IAM members that publish telemetry and receive commands, in addition to the account of the gateway. Each of them can speak for every drone."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for m in var.drone_publishers : can(regex("^(user|group|serviceAccount|principal|principalSet):[^:]+", m))])
    error_message = "drone_publishers has an entry that is not an IAM member, such as serviceAccount:…."
  }
}

variable "hospital_publishers" {
  description = "IAM members that publish orders, in addition to the account of the gateway. Each of them can speak for every requester."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for m in var.hospital_publishers : can(regex("^(user|group|serviceAccount|principal|principalSet):[^:]+", m))])
    error_message = "hospital_publishers has an entry that is not an IAM member, such as serviceAccount:…."
  }
}

variable "operators" {
  description = "IAM members that are operators: they read and correct documents, review, replay and discard dead letters, and read metrics and logs."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for m in var.operators : can(regex("^(user|group|serviceAccount):[^:]+$", m))])
    error_message = "operators has an entry that is not user:…, group:… or serviceAccount:…."
  }
}

variable "auditors" {
  description = "IAM members that are auditors: they read the documents of this database and the audit logs, and change nothing."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for m in var.auditors : can(regex("^(user|group|serviceAccount):[^:]+$", m))])
    error_message = "auditors has an entry that is not user:…, group:… or serviceAccount:…."
  }
}

variable "mission_subscriptions" {
  description = "Subscriptions of topic missions through which drones or their gateways receive commands. Each receives every command."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for s in var.mission_subscriptions : can(regex("^missions-[A-Za-z0-9._~%+-]{1,200}$", s)) && !startswith(s, "missions-dead-letter")])
    error_message = "mission_subscriptions has a name that does not begin with missions- or has characters that Pub/Sub refuses."
  }
}

variable "alert_emails" {
  description = "E-mail addresses that receive alerts, in addition to alert_channels."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for a in var.alert_emails : can(regex("^[^@\\s]+@[^@\\s]+$", a))])
    error_message = "alert_emails has an entry that is not an address."
  }
}

variable "alert_channels" {
  description = "Existing notification channels (projects/…/notificationChannels/…), such as a pager's."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for c in var.alert_channels : can(regex("^projects/[^/]+/notificationChannels/[0-9]+$", c))])
    error_message = "alert_channels has an entry that is not projects/PROJECT/notificationChannels/NUMBER."
  }
}

variable "log_level" {
  description = "Least severity that the binaries log."
  type        = string
  default     = "info"

  validation {
    condition     = contains(["debug", "info", "warn", "error"], var.log_level)
    error_message = "log_level is not one of debug, info, warn, error."
  }
}

variable "metrics_sidecar_image" {
  description = "Collector beside each Cloud Run instance that scrapes :8080/metrics into Managed Service for Prometheus; empty for none; then no alert on our own metrics can fire."
  type        = string
  default     = "us-docker.pkg.dev/cloud-ops-agents-artifacts/cloud-run-gmp-sidecar/cloud-run-gmp-sidecar:1.2.0"

  validation {
    condition     = var.metrics_sidecar_image == "" || can(regex("(:[^:/]+|@sha256:[0-9a-f]{64})$", var.metrics_sidecar_image))
    error_message = "metrics_sidecar_image needs a tag or a digest."
  }
}

variable "otlp_endpoint" {
  description = "OpenTelemetry collector that takes traces over gRPC (https://HOST:4317); empty sends none."
  type        = string
  default     = ""

  validation {
    condition     = var.otlp_endpoint == "" || can(regex("^https?://[^/]+$", var.otlp_endpoint))
    error_message = "otlp_endpoint is not http(s)://HOST:PORT."
  }
}

variable "otlp_headers_secret" {
  description = "Existing Secret Manager secret that holds OTEL_EXPORTER_OTLP_HEADERS (a collector's token). Of Google's services the fleet needs no secret: it authenticates by its service accounts."
  type        = string
  default     = ""

  validation {
    condition     = var.otlp_headers_secret == "" || can(regex("^[A-Za-z0-9_-]{1,255}$", var.otlp_headers_secret))
    error_message = "otlp_headers_secret is not the id of a secret in this project."
  }

  validation {
    condition     = var.otlp_headers_secret == "" || var.otlp_endpoint != ""
    error_message = "otlp_headers_secret is given without otlp_endpoint."
  }
}

variable "webhook_key_secret" {
  description = "Existing Secret Manager secret that holds the keys of webhooks' secrets (openssl rand -base64 32); empty leaves those readable in the database. See docs/webhooks.md."
  type        = string
  default     = ""

  validation {
    condition     = var.webhook_key_secret == "" || can(regex("^[A-Za-z0-9_-]{1,255}$", var.webhook_key_secret))
    error_message = "webhook_key_secret is not the id of a secret in this project."
  }
}

variable "lock_url" {
  description = "Store of the fleet's locks: redis://HOST:PORT/DB, rediss:// for TLS, or postgres://USER@HOST:PORT/DB, without a password; empty for Firestore. See docs/operate.md before you change it. On gke set LOCK_STORE in deploy/k8s instead."
  type        = string
  default     = ""

  validation {
    condition     = var.lock_url == "" || can(regex("^(rediss?|postgres(ql)?)://([^:@/?]+@)?[^:@/?]+(:[0-9]+)?(/[^@/?]*)?([?][^@]*)?$", var.lock_url))
    error_message = "lock_url is not redis://HOST:PORT/DB, rediss:// or postgres://USER@HOST:PORT/DB without a password; lock_password_secret names the password."
  }

  validation {
    condition     = !can(regex("[?&]password=", var.lock_url))
    error_message = "lock_url holds a password; put it into Secret Manager and name it in lock_password_secret."
  }
}

variable "lock_password_secret" {
  description = "Existing Secret Manager secret that holds the password of the lock store; empty for none."
  type        = string
  default     = ""

  validation {
    condition     = var.lock_password_secret == "" || can(regex("^[A-Za-z0-9_-]{1,255}$", var.lock_password_secret))
    error_message = "lock_password_secret is not the id of a secret in this project."
  }

  validation {
    condition     = var.lock_password_secret == "" || var.lock_url != ""
    error_message = "lock_password_secret is given without lock_url."
  }
}

variable "lock_network" {
  description = "VPC network and subnetwork through which Cloud Run reaches a lock store with a private address, such as Memorystore or Cloud SQL; null for none."
  type        = object({ network = string, subnetwork = string })
  default     = null

  validation {
    condition     = var.lock_network == null || var.lock_url != ""
    error_message = "lock_network is given without lock_url."
  }
}

variable "gke_namespace" {
  description = "Kubernetes namespace of deploy/k8s, whose service accounts may act as ours when runtime is gke."
  type        = string
  default     = "dronefleet"

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.gke_namespace))
    error_message = "gke_namespace is not a namespace."
  }
}
