package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/internal/meter"
)

// Config names the watched process and its collector. Zero values stand for the
// defaults in the comments.
type Config struct {
	// Service, Version and Instance identify the process: "statemanager", the build, and
	// the replica. The variables OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES add to
	// them and override them.
	Service, Version, Instance string
	// Endpoint is the collector's OTLP/gRPC address: http://HOST:PORT, or https
	// for TLS; empty for none. Headers and certificates come from the variables
	// OTEL_EXPORTER_OTLP_….
	Endpoint string
	// Ratio is the share, from 0 to 1, of cycles, sweeps, orders and decisions
	// that are traced; nil means all. A sender's sampling decision overrides it.
	Ratio *float64
	// MetricInterval is how often metrics are pushed; default 60 s.
	MetricInterval time.Duration
	// FlushTimeout bounds how long Close tries to deliver what is left; default 5 s.
	FlushTimeout time.Duration
}

func (c Config) withDefaults() Config {
	if c.Ratio == nil {
		all := 1.0
		c.Ratio = &all
	}
	if c.MetricInterval == 0 {
		c.MetricInterval = time.Minute
	}
	if c.FlushTimeout == 0 {
		c.FlushTimeout = 5 * time.Second
	}
	return c
}

// Validate reports invalid fields and what to give instead.
func (c Config) Validate() error {
	if c.Ratio != nil && (*c.Ratio < 0 || *c.Ratio > 1) {
		return fmt.Errorf("the share of traces is %g; give a number from 0 to 1", *c.Ratio)
	}
	if c.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("the collector's address is not a URL; give one such as http://localhost:4317") // it may hold a password
	}
	return nil
}

// host returns a valid endpoint without the password that it may hold.
func (c Config) host() string {
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// Watch exports the traces and metrics of a process.
type Watch struct {
	tracing trace.TracerProvider
	stop    []func(context.Context) error // run together; each flushes and ends one part
	abort   []func(context.Context) error // run when the time is over
	timeout time.Duration
}

// Start begins to export traces, including the calls that m counts, and the metrics of m
// to the collector. Without a collector it does nothing, and its tracing costs nothing.
// Start itself sends nothing: an unreachable collector is not an error.
func Start(ctx context.Context, c Config, m *meter.Meter, log *slog.Logger) (*Watch, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	w := &Watch{tracing: noop.NewTracerProvider(), timeout: c.FlushTimeout}
	if c.Endpoint == "" {
		return w, nil
	}
	res, err := c.resource(ctx)
	if err != nil {
		return nil, err
	}
	// The SDK reports failures only to its global handler.
	otel.SetErrorHandler(&complaints{log: log})
	if err := w.startTraces(ctx, c, res, m); err != nil {
		return nil, err
	}
	if err := w.startMetrics(ctx, c, res, m); err != nil {
		return nil, errors.Join(err, w.Close(ctx))
	}
	log.InfoContext(ctx, "traces and metrics go to a collector", slog.String("endpoint", c.host()))
	return w, nil
}

func (c Config) resource(ctx context.Context) (*resource.Resource, error) {
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName(c.Service), semconv.ServiceVersion(c.Version), semconv.ServiceInstanceID(c.Instance)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w; give key=value,key=value", err)
	}
	return res, nil
}

func (w *Watch) startTraces(ctx context.Context, c Config, res *resource.Resource, m *meter.Meter) error {
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(c.Endpoint))
	if err != nil {
		return fmt.Errorf("traces to %s: %w", c.host(), err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(res), sdk.WithSampler(newSampler(*c.Ratio)))
	w.tracing = provider
	m.TraceCalls(provider)
	w.stop, w.abort = append(w.stop, provider.Shutdown), append(w.abort, exporter.Shutdown)
	return nil
}

func (w *Watch) startMetrics(ctx context.Context, c Config, res *resource.Resource, m *meter.Meter) error {
	exporter, err := otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpointURL(c.Endpoint))
	if err != nil {
		return fmt.Errorf("metrics to %s: %w", c.host(), err)
	}
	reader := metric.NewPeriodicReader(exporter, metric.WithInterval(c.MetricInterval), metric.WithProducer(producer(Registry(m))))
	provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(res))
	w.stop, w.abort = append(w.stop, provider.Shutdown), append(w.abort, exporter.Shutdown)
	return nil
}

// Tracing returns the provider of the process's tracers.
func (w *Watch) Tracing() trace.TracerProvider { return w.tracing }

// Close delivers what is left, until ctx ends or the flush timeout passes, and stops the
// export. The error says that something was not delivered.
func (w *Watch) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	var g errgroup.Group
	errs := make([]error, len(w.stop))
	for i, stop := range w.stop {
		g.Go(func() error { errs[i] = stop(ctx); return nil })
	}
	_ = g.Wait() // the errors are in errs
	err := errors.Join(errs...)
	if err == nil {
		return nil
	}
	for _, abort := range w.abort { // cancels calls that still wait for the collector
		_ = abort(ctx) // repeats err
	}
	return fmt.Errorf("the last traces or metrics did not reach the collector: %w", err)
}

// complaintInterval is how often failures to deliver are logged.
const complaintInterval = time.Minute

// complaints logs the first failure of each minute.
type complaints struct {
	log  *slog.Logger
	last atomic.Int64 // Unix nanoseconds
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	now := time.Now().UnixNano()
	last := c.last.Load()
	if now-last < int64(complaintInterval) || !c.last.CompareAndSwap(last, now) {
		return
	}
	c.log.Warn("telemetry export failed; data dropped", slog.Any("err", err))
}
