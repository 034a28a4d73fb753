package observe_test

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/observe"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// collector is an OTLP/gRPC receiver that keeps what it gets.
type collector struct {
	collectortraces.UnimplementedTraceServiceServer
	url string

	mu       sync.Mutex
	spans    []*traces.Span
	metrics  map[string]*metrics.Metric
	resource *resource.Resource
}

// metricsService is a collector's other service: both have a method Export.
type metricsService struct {
	collectormetrics.UnimplementedMetricsServiceServer
	*collector
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{url: "http://" + l.Addr().String(), metrics: map[string]*metrics.Metric{}}
	server := grpc.NewServer()
	collectortraces.RegisterTraceServiceServer(server, c)
	collectormetrics.RegisterMetricsServiceServer(server, metricsService{collector: c})
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Errorf("collector: %v", err)
		}
	})
	return c
}

func (c *collector) Export(_ context.Context, req *collectortraces.ExportTraceServiceRequest) (*collectortraces.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range req.GetResourceSpans() {
		c.resource = r.GetResource()
		for _, s := range r.GetScopeSpans() {
			c.spans = append(c.spans, s.GetSpans()...)
		}
	}
	return &collectortraces.ExportTraceServiceResponse{}, nil
}

func (s metricsService) Export(_ context.Context, req *collectormetrics.ExportMetricsServiceRequest) (*collectormetrics.ExportMetricsServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range req.GetResourceMetrics() {
		for _, scope := range r.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				s.metrics[m.GetName()] = m
			}
		}
	}
	return &collectormetrics.ExportMetricsServiceResponse{}, nil
}

// F-OBS-01: a collector gets the traces and every metric before the process ends.
func TestWatch_PushesToACollector(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	c := startCollector(t)
	var w *observe.Watch
	f := startFleet(t, watchedBy(t, observe.Config{
		Service: "statemanager", Version: "v1.2.3", Instance: "replica-1", Endpoint: c.url, MetricInterval: time.Hour,
	}, &w), 1)
	f.report(t.Context(), "D1", time.Now(), domain.DroneIdle)
	f.awaitDrone("D1", func(d domain.Drone) bool { return d.Status == domain.DroneIdle })
	f.order(t.Context(), "O1")
	f.awaitOrder("O1", domain.OrderPending)
	f.fly("O1")
	emutest.Eventually(t, "a census", func() error {
		if scrape(t, f.product.Meter).sum("dronefleet_drones") != 1 {
			return &missing{"the drone"}
		}
		return nil
	})
	f.stop()
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, s := range c.spans {
		names = append(names, s.GetName())
	}
	for _, want := range []string{"cycle", "solve", "send decisions", "process decisions", "send missions", "process orders", "process telemetry", "commit telemetry", commit} {
		if !slices.Contains(names, want) {
			t.Errorf("no span %q among %v", want, names)
		}
	}
	attributes := map[string]string{}
	for _, kv := range c.resource.GetAttributes() {
		attributes[kv.GetKey()] = kv.GetValue().GetStringValue()
	}
	for key, want := range map[string]string{
		"service.name": "statemanager", "service.version": "v1.2.3", "service.instance.id": "replica-1", "deployment.environment.name": "test",
	} {
		if attributes[key] != want {
			t.Errorf("resource attribute %s is %q, want %q", key, attributes[key], want)
		}
	}
	for _, want := range append(meter.Names(), "go_goroutines") {
		if c.metrics[want] == nil {
			t.Errorf("no metric %s", want)
		}
	}
	known := map[string]bool{}
	for _, s := range c.spans {
		known[string(s.GetTraceId())] = true
	}
	for _, point := range c.metrics["dronefleet_publish_to_commit_seconds"].GetHistogram().GetDataPoints() {
		if point.GetCount() > 0 && len(point.GetExemplars()) == 0 {
			t.Errorf("no exemplar of %v", point.GetAttributes())
		}
		for _, e := range point.GetExemplars() {
			if !known[string(e.GetTraceId())] {
				t.Errorf("an exemplar names trace %x, which was not exported", e.GetTraceId())
			}
		}
	}
}

// watchedBy returns a watcher that starts a watch with c and stores it in w.
func watchedBy(t *testing.T, c observe.Config, w **observe.Watch) watcher {
	return func(m *meter.Meter) trace.TracerProvider {
		t.Helper()
		var err error
		if *w, err = observe.Start(t.Context(), c, m, emutest.Log(t)); err != nil {
			t.Fatal(err)
		}
		return (*w).Tracing()
	}
}

// silent starts a collector that accepts connections and never answers, and returns its
// address.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed below
			}
			conns = append(conns, conn)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
		for _, conn := range conns {
			conn.Close()
		}
	})
	return "http://" + l.Addr().String()
}

// F-FLOW-01: a collector that does not answer cannot delay the end of the process.
func TestWatch_CloseEndsWithItsContext(t *testing.T) {
	w, err := observe.Start(t.Context(), observe.Config{Service: "test", Endpoint: silent(t), FlushTimeout: time.Hour}, meter.New(), slog.New(slog.DiscardHandler)) // what failed may be logged after the end
	if err != nil {
		t.Fatal(err)
	}
	_, span := w.Tracing().Tracer("test").Start(t.Context(), "last")
	span.End()
	closing, end := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer end()
	if err := w.Close(closing); err == nil {
		t.Error("Close says that everything was delivered")
	}
}

// F-OBS-01: nothing waits for a collector that never answers.
func TestWatch_DoesNotWaitForADeadCollector(t *testing.T) {
	var w *observe.Watch
	f := startFleet(t, watchedBy(t, observe.Config{
		Service: "test", Endpoint: silent(t), MetricInterval: 10 * time.Millisecond, FlushTimeout: 100 * time.Millisecond,
	}, &w), 1)
	// Many times the capacity of the queue.
	tracer := w.Tracing().Tracer("test")
	for range 50_000 {
		_, span := tracer.Start(t.Context(), "busy")
		span.End()
	}
	f.report(t.Context(), "D1", time.Now(), domain.DroneIdle)
	f.awaitDrone("D1", func(d domain.Drone) bool { return d.Status == domain.DroneIdle })
	f.order(t.Context(), "O1")
	f.awaitOrder("O1", domain.OrderPending)
	f.fly("O1")
	f.stop()
	if err := w.Close(t.Context()); err == nil {
		t.Error("Close says that everything was delivered")
	}
}
