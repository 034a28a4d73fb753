package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/clockwatch"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/shutdown"
	"github.com/dronefleet/dronefleet/internal/simclock"
)

// probing holds the flags that say where probes and metrics are, and for whom.
type probing struct {
	HTTPAddr      string                `help:"Address of /healthz, /readyz and /metrics, which require no credentials; off for none." default:"off" placeholder:"HOST:PORT" name:"http-addr" env:"HTTP_ADDR" check:"listen or off"`
	HTTPHosts     []httpapi.Host        `help:"Host names and addresses by which http-addr may be reached, besides localhost." placeholder:"HOST" name:"http-hosts"`
	MetricsAccess httpapi.MetricsAccess `help:"Who may read /metrics: open for everyone, local for collectors on the same machine or in the same pod, or off." enum:"open,local,off" default:"local"`
}

// listen opens the listener of the probes; nil if http-addr is off.
func (p probing) listen() (*httpapi.Listener, error) {
	addr := cli.ListenAddr(p.HTTPAddr)
	if addr == "" {
		return nil, nil
	}
	listener, err := httpapi.Listen(addr)
	if err != nil {
		return nil, fmt.Errorf("--http-addr: %w", err)
	}
	return listener, nil
}

// probe answers probes until serving ends. From the end of ctx on the process is not
// ready. cfg says what else it needs to be ready.
func (p probing) probe(ctx, serving context.Context, drain time.Duration, listener *httpapi.Listener, cfg httpapi.Config, clients *connect.Clients, clock *simclock.Clock, log *slog.Logger) error {
	locks, err := clients.Locks(clock, log)
	if err != nil {
		return err
	}
	defer func() { _ = locks.Close(serving) }() // it holds none
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { clockwatch.Watch(serving, locks, clients.Meter, log, nil) })
	cfg.Locks, cfg.PubSub, cfg.Meter, cfg.Log = locks, clients.PubSub, clients.Meter, log
	cfg.Stopping = func() error { return context.Cause(ctx) }
	cfg.Access = httpapi.Access{Hosts: p.HTTPHosts, Metrics: p.MetricsAccess}
	api := httpapi.NewProbes(cfg, pubsubio.TopicTelemetry)
	log.InfoContext(ctx, "probes and metrics listening", slog.String("url", listener.URL()))
	finishing, finished := shutdown.Gateway(drain).Context(ctx, shutdown.HTTP)
	defer finished()
	return listener.Serve(serving, finishing, api)
}
