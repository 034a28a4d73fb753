package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
)

// publishCommand sends a message unchecked: validating it is the State Manager's job.
type publishCommand struct {
	cli.Connection
	Topic       string            `arg:"" help:"${enum}." enum:"telemetry,orders,decisions"`
	File        string            `arg:"" optional:"" help:"The payload; default standard input." default:"-"`
	OrderingKey string            `help:"Messages of one key keep their order; default the drone of a report." placeholder:"KEY"`
	Attribute   map[string]string `help:"Attributes of the message, such as content-type=application/json." placeholder:"NAME=VALUE" mapsep:"none"` // a value may hold semicolons
}

// Check implements config.Checker.
func (c *publishCommand) Check(r *config.Report) { c.CheckConnection(r) }

// maxPublished is Pub/Sub's limit on a message's payload, in bytes.
const maxPublished = 10_000_000

// Run publishes one message and prints its id.
func (c *publishCommand) Run(ctx context.Context) (err error) {
	data, err := cli.Input(ctx, c.payload)
	if ctx.Err() != nil {
		return errors.New("interrupted; nothing was published")
	}
	if err != nil {
		return err
	}
	clients, _, err := c.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clients.Close()) }()
	publisher := pubsubio.NewPublisher(clients.PubSub)
	id, err := publisher.Publish(ctx, c.Topic, data, maps.Clone(c.Attribute), c.orderingKey(data)).Wait(ctx)
	if err != nil && ctx.Err() != nil { // do not stop the publisher: that would wait for the server
		return fmt.Errorf("interrupted while publishing; topic %s may have the message", c.Topic)
	}
	publisher.Stop()
	if status.Code(err) == codes.NotFound {
		return fmt.Errorf("topic %s does not exist; %s", c.Topic, pubsubio.Remedy)
	}
	if err != nil {
		return fmt.Errorf("publish to %s: %w", c.Topic, err)
	}
	fmt.Fprintf(cli.Stdout, "message %s published to %s\n", id, c.Topic)
	return nil
}

// orderingKey is the given key, or the drone of a report that can be decoded
// (F-TEL-13).
func (c *publishCommand) orderingKey(data []byte) string {
	if c.OrderingKey == "" && c.Topic == pubsubio.TopicTelemetry {
		if t, err := wire.DecodeTelemetry(data, c.Attribute); err == nil {
			return string(t.DroneID)
		}
	}
	return c.OrderingKey
}

// payload reads the message.
func (c *publishCommand) payload() ([]byte, error) {
	in := os.Stdin
	if c.File != "-" {
		var err error
		if in, err = os.Open(c.File); err != nil {
			return nil, err
		}
		defer in.Close()
	}
	data, err := io.ReadAll(io.LimitReader(in, maxPublished+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the payload: %w", err)
	case len(data) == 0:
		return nil, errors.New("the payload is empty; give a file, or pipe one in")
	case len(data) > maxPublished:
		return nil, fmt.Errorf("the payload has more than %d bytes, which is Pub/Sub's limit", maxPublished)
	}
	return data, nil
}
