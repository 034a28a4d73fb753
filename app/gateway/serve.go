package gateway

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
)

// serverLimit is how long connections may take to close at the end.
const serverLimit = 2 * time.Second

// Serve takes drones' connections until ctx ends or the listener fails. Then it tells them to
// reconnect elsewhere, publishes what they have sent, for drain at most, and returns. id is the
// process's, and unique.
func (g *Gateway) Serve(ctx context.Context, client *pubsub.Client, id string, server *dronelink.Server, listener net.Listener, drain time.Duration) error {
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	ready := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { g.Run(following, client, id, func() { close(ready) }) })
	defer running.Wait()
	defer stop()
	select {
	case <-ready:
	case <-ctx.Done():
		return nil
	}
	failed := make(chan error, 1)
	running.Go(func() { failed <- server.Serve(listener) })
	defer func() {
		closing, cancel := context.WithTimeout(following, serverLimit)
		defer cancel()
		server.Close(closing)
	}()
	defer listener.Close()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	draining, cancel := context.WithTimeout(following, drain)
	defer cancel()
	defer g.rest() // what is said last is published
	defer g.awaitReturn(draining)
	if err := g.Drain(draining); err != nil {
		return fmt.Errorf("drones did not leave within %s; they send again what was not acked", drain)
	}
	return nil
}
