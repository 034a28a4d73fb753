package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/input"
)

// publishCommand sends a message unchecked, because the State Manager validates it.
type publishCommand struct {
	cli.Connection
	Topic       string            `arg:"" help:"Topic: telemetry, orders, decisions or links." enum:"telemetry,orders,decisions,links"`
	File        string            `arg:"" optional:"" help:"The payload; default standard input." default:"-"`
	OrderingKey string            `help:"Ordering key: messages of one key keep their order. Default: of telemetry, the drone's id." placeholder:"KEY"`
	Attribute   map[string]string `help:"Attributes of the message, such as content-type=application/json." placeholder:"NAME=VALUE" mapsep:"none"` // a value may hold semicolons
}

// Check implements config.Checker.
func (c *publishCommand) Check(r *config.Refuser) {
	c.CheckConnection(r)
	if err := operator.CheckOrderingKey(c.OrderingKey); err != nil {
		r.Refuse("ordering-key", "%s", err)
	}
	if err := operator.CheckAttributes(c.Attribute); err != nil {
		r.Refuse("attribute", "%s", err)
	}
}

// Run publishes one message and prints its id.
func (c *publishCommand) Run(ctx context.Context) (err error) {
	data, err := c.payload(ctx)
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
	commands := operator.Commands{PubSub: clients.PubSub}
	id, err := commands.Publish(ctx, operator.Message{Topic: c.Topic, Data: data, OrderingKey: c.OrderingKey, Attributes: c.Attribute})
	if err != nil {
		return err
	}
	fmt.Fprintf(cli.Stdout, "message %s published to %s\n", id, c.Topic)
	return nil
}

// payload reads the message's bytes, which only the State Manager validates.
func (c *publishCommand) payload(ctx context.Context) ([]byte, error) {
	data, err := cli.ReadFile(ctx, c.File, operator.MaxPublishedBytes)
	switch _, large := errors.AsType[input.Problems](err); {
	case large:
		return nil, fmt.Errorf("the payload has more than %d bytes, which is Pub/Sub's limit", operator.MaxPublishedBytes)
	case err != nil:
		return nil, fmt.Errorf("read the payload: %w", err)
	case len(data) == 0:
		return nil, errors.New("the payload is empty; give a file, or pipe one in")
	}
	return data, nil
}
