package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/dronefleet/dronefleet/deploy"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/input"
	"github.com/dronefleet/dronefleet/sim/devrun"
)

type emulatorsCommand struct {
	cli.Logging
	Firestore         string `help:"Address of Firestore." default:"127.0.0.1:8081" check:"listen"`
	Pubsub            string `help:"Address of Pub/Sub." default:"127.0.0.1:8085" check:"listen"`
	InsecureEmulators bool   `help:"Let other machines read and change everything: the emulators ask for no credentials."`
	DataDir           string `help:"Keep all data in this directory; default memory only." placeholder:"DIR" type:"path"`
	Indexes           string `help:"Index configuration that queries need, as in production; default the fleet's own, \"off\" for no check." placeholder:"FILE|off"`
}

// Check implements config.Checker.
func (c *emulatorsCommand) Check(r *config.Refuser) {
	for name, addr := range map[string]string{"firestore": c.Firestore, "pubsub": c.Pubsub} {
		if err := config.CheckLoopback(addr); err != nil && !c.InsecureEmulators {
			r.Refuse(name, "%q %s, or --insecure-emulators", addr, err)
		}
	}
}

// Run serves both emulators until interrupted.
func (c *emulatorsCommand) Run(ctx context.Context) (err error) {
	indexes, err := c.indexes()
	if err != nil {
		return err
	}
	log := c.Logger(os.Stderr)
	fs, err := firestoreemu.Start(firestoreemu.Options{Addr: c.Firestore, AnyAddress: c.InsecureEmulators, DataDir: c.directory("firestore"), Indexes: indexes, Logger: log})
	if err != nil {
		return devrun.Unserved("--firestore", err)
	}
	defer func() { err = errors.Join(err, fs.Close()) }()
	ps, err := pubsubemu.Start(pubsubemu.Options{Addr: c.Pubsub, AnyAddress: c.InsecureEmulators, DataDir: c.directory("pubsub"), Logger: log})
	if err != nil {
		return devrun.Unserved("--pubsub", err)
	}
	defer func() { err = errors.Join(err, ps.Close()) }()
	// Without their addresses nobody can use the emulators.
	hosts := connect.Config{FirestoreHost: fs.Addr(), PubSubHost: ps.Addr()}.WithDefaults()
	if _, err := fmt.Fprintln(cli.Stdout, strings.Join(hosts.Exports(), "\n")); err != nil {
		return err
	}
	log.InfoContext(ctx, "emulators serving; set these variables for the programs that use them",
		slog.String(connect.FirestoreHost, fs.Addr()), slog.String(connect.PubSubHost, ps.Addr()), slog.String("data_dir", c.DataDir))
	<-ctx.Done()
	return nil
}

func (c *emulatorsCommand) directory(name string) string {
	if c.DataDir == "" {
		return ""
	}
	return filepath.Join(c.DataDir, name)
}

// maxIndexes is far more than an index configuration takes.
const maxIndexes = 1 << 20

// indexes returns the index configuration; nil for no check.
func (c *emulatorsCommand) indexes() ([]byte, error) {
	switch c.Indexes {
	case "":
		return deploy.FirestoreIndexes, nil
	case "off":
		return nil, nil
	}
	data, err := input.File(c.Indexes, maxIndexes)
	if err == nil {
		err = firestoreemu.CheckIndexes(data)
	}
	if err != nil {
		return nil, fmt.Errorf("--indexes: %w", err)
	}
	return data, nil
}
