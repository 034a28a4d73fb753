package main

import (
	"context"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/clockwatch"
	"github.com/dronefleet/dronefleet/internal/shutdown"
)

// probing holds the flags that say who may ask for probes and metrics.
type probing struct {
	HTTPHosts     []httpapi.Host        `help:"Host names and addresses by which http-addr may be reached, besides localhost." placeholder:"HOST" name:"http-hosts"`
	MetricsAccess httpapi.MetricsAccess `help:"Who may read /metrics: open for everyone, local for collectors on the same machine or in the same pod, or off." enum:"open,local,off" default:"local"`
}

func (p probing) access() httpapi.Access {
	return httpapi.Access{Hosts: p.HTTPHosts, Metrics: p.MetricsAccess}
}

// listen opens the listener of the probes; nil if addr is off.
func listen(addr string) (*httpapi.Listener, error) {
	if addr = cli.ListenAddr(addr); addr == "" {
		return nil, nil
	}
	listener, err := httpapi.Listen(addr)
	if err != nil {
		return nil, fmt.Errorf("--http-addr: %w", err)
	}
	return listener, nil
}

// serve runs cycles, measures the clock and answers probes, until ctx ends or
// one of them fails. listener may be nil.
func (p *planning) serve(ctx context.Context, listener *httpapi.Listener, access httpapi.Access) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.runner.Run(ctx) })
	g.Go(func() error { clockwatch.Watch(ctx, p.locks, p.clients.Meter, p.log, nil); return nil })
	if listener != nil {
		api := httpapi.NewProbes(httpapi.Config{
			Locks: p.locks, PubSub: p.clients.PubSub, Meter: p.clients.Meter, Stopping: func() error { return context.Cause(ctx) }, Log: p.log, Access: access,
		}, pubsubio.TopicDecisions)
		p.log.InfoContext(ctx, "probes and metrics listening", slog.String("url", listener.URL()))
		finishing, finished := shutdown.Optimizer().Context(ctx, shutdown.HTTP)
		defer finished()
		g.Go(func() error { return listener.Serve(ctx, finishing, api) })
	}
	return g.Wait()
}
