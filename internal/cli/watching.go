package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"go.opentelemetry.io/otel/trace"

	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/observe"
)

// Watching holds the flags for an OpenTelemetry collector.
type Watching struct {
	OTLPEndpoint string  `help:"OpenTelemetry collector that takes traces and metrics over OTLP/gRPC: http://HOST:PORT, or https for TLS; empty for none." placeholder:"URL" name:"otlp-endpoint" env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
	TraceShare   float64 `help:"Share of cycles, sweeps, orders and decisions that are traced, unless their sender decided." default:"1" check:"min 0 max 1"`
}

func (w Watching) config(service string) observe.Config {
	return observe.Config{Service: service, Version: Version(), Instance: Instance(), Endpoint: w.OTLPEndpoint, Ratio: &w.TraceShare}
}

// CheckWatching refuses an invalid collector address.
func (w Watching) CheckWatching(r *config.Refuser) {
	if err := (observe.Config{Endpoint: w.OTLPEndpoint}).Validate(); err != nil {
		r.Refuse("otlp-endpoint", "is not the URL of a collector; give one such as http://localhost:4317") // it may hold a password
	}
}

// Watch exports the process's traces and the metrics of m to the collector, if there is
// one. Stop delivers the rest until its context ends, and logs what it could not deliver.
func (w Watching) Watch(ctx context.Context, service string, m *meter.Meter, log *slog.Logger) (tracing trace.TracerProvider, stop func(context.Context), err error) {
	watch, err := observe.Start(ctx, w.config(service), m, log)
	if err != nil {
		return nil, nil, fmt.Errorf("--otlp-endpoint: %w", err)
	}
	return watch.Tracing(), func(closing context.Context) {
		if err := watch.Close(closing); err != nil {
			log.WarnContext(ctx, "the last traces or metrics were not delivered", slog.Any("err", err))
		}
	}, nil
}

// Instance names this process among its replicas: host/pid. Traces, metrics and cycle
// records carry it.
func Instance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
