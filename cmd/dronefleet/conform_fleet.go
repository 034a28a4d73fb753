package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/deploy"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/sim/conform"
	"github.com/dronefleet/dronefleet/sim/devrun"
)

// conformFleet holds the flags of an examination in a whole fleet, on embedded servers.
type conformFleet struct {
	conformOutput
	Firestore string        `help:"Address of the embedded Firestore." default:"127.0.0.1:8081" check:"listen on loopback"`
	Pubsub    string        `help:"Address of the embedded Pub/Sub." default:"127.0.0.1:8085" check:"listen on loopback"`
	HTTPAddr  string        `help:"Address of the HTTP API." default:"127.0.0.1:8080" name:"http-addr" check:"listen on loopback"`
	LogLevel  slog.Level    `help:"Lowest severity that the fleet logs to standard error: debug, info, warn, error." default:"error" accepts:"debug, info, warn or error"`
	Limit     time.Duration `help:"End after this long." default:"10m" check:"min 1s max 1h"`
}

// trial is a fleet's servers.
type trial struct {
	conform.FleetConfig
	closers []func() error
}

// open starts the servers and connects to them. The API listens at an address of its own if the
// hospital's door has that of the flag.
func (c conformFleet) open(ctx context.Context, out io.Writer, apiAddr string) (t *trial, err error) {
	t = &trial{}
	defer func() {
		if err != nil {
			_ = t.close() // the first error is the one to return
		}
	}()
	log := cli.Logging{LogLevel: c.LogLevel}.Logger(os.Stderr)
	api, err := httpapi.Listen(apiAddr)
	if err != nil {
		return t, fmt.Errorf("--http-addr: %w", err)
	}
	t.closers = append(t.closers, func() error { api.Close(); return nil })
	fs, err := firestoreemu.Start(firestoreemu.Options{Addr: c.Firestore, Indexes: deploy.FirestoreIndexes, Logger: log})
	if err != nil {
		return t, devrun.Unserved("--firestore", err)
	}
	t.closers = append(t.closers, fs.Close)
	ps, err := pubsubemu.Start(pubsubemu.Options{Addr: c.Pubsub, HTTPHint: "The HTTP API, also for orders, is at " + c.HTTPAddr + ".", Logger: log})
	if err != nil {
		return t, devrun.Unserved("--pubsub", err)
	}
	t.closers = append(t.closers, ps.Close)
	clients, err := connect.Open(ctx, connect.Config{FirestoreHost: fs.Addr(), PubSubHost: ps.Addr()}, meter.New())
	if err != nil {
		return t, err
	}
	t.closers = append(t.closers, clients.Close)
	t.FleetConfig = conform.FleetConfig{
		Clients: clients, Clock: simclock.Real(), API: api, Log: log, Progress: func(text string) { fmt.Fprintln(out, text) },
	}
	return t, nil
}

// close closes what is open, newest first.
func (t *trial) close() error {
	var errs []error
	for i := len(t.closers) - 1; i >= 0; i-- {
		errs = append(errs, t.closers[i]())
	}
	return errors.Join(errs...)
}

// untilEnd plays nothing: the program under examination does.
func untilEnd(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

type conformOptimizerCommand struct {
	conformFleet
	AllowUnfenced bool `help:"Take decisions without a fence, so that the optimizer needs no lock; the rule of fences is not tested then."`
}

// Run examines the optimizer, prints the results, and fails if a rule was broken.
func (c *conformOptimizerCommand) Run(ctx context.Context) (err error) {
	out := c.progress()
	t, err := c.open(ctx, out, c.HTTPAddr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	t.AllowUnfenced = c.AllowUnfenced
	x, err := conform.StartOptimizer(ctx, t.FleetConfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	fmt.Fprintf(out, "Let the optimizer plan for depot %s. Its snapshot is at %s/api/v1/optimizer/snapshot?depot=%s; it connects with\n  %s\n",
		conform.Depot, t.API.URL(), conform.Depot, strings.Join(t.Clients.Config.Exports(), "\n  "))
	summary, err := x.Examine(ctx, c.Limit, untilEnd)
	if err != nil {
		return err
	}
	return errors.Join(c.print(summary), ctx.Err())
}

type conformHospitalCommand struct{ conformFleet }

// Run examines the hospital's program, prints the results, and fails if a rule was broken.
func (c *conformHospitalCommand) Run(ctx context.Context) (err error) {
	out := c.progress()
	listener, err := net.Listen("tcp", c.HTTPAddr)
	if err != nil {
		return fmt.Errorf("--http-addr: %w", err)
	}
	defer listener.Close()
	t, err := c.open(ctx, out, "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	x, err := conform.StartHospital(ctx, t.FleetConfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	at, err := url.Parse(t.API.URL())
	if err != nil {
		return err
	}
	door := &http.Server{Handler: x.Door(at), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = door.Serve(listener) }() // until it is closed
	defer door.Close()
	fmt.Fprintf(out, "Order, send an order again, change one and cancel one; Ctrl-C ends the examination. The HTTP API is at http://%s, its key is\n  %s\nFor Pub/Sub, topic orders, connect with\n  %s\n",
		listener.Addr(), x.Key, strings.Join(t.Clients.Config.Exports(), "\n  "))
	summary, err := x.Examine(ctx, c.Limit, untilEnd)
	if err != nil {
		return err
	}
	return c.print(summary)
}
