package main

import (
	"context"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/app/placefile"
	"github.com/dronefleet/dronefleet/app/webhooks"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/identity"
)

type webhooksCommand struct {
	List       webhooksList       `cmd:"" help:"List webhooks, with how many messages wait and were given up."`
	Apply      webhooksApply      `cmd:"" help:"Create and change webhooks from a file. A new secret is shown once."`
	Delete     webhooksDelete     `cmd:"" help:"Delete a webhook; what waits for it is not sent."`
	Rotate     webhooksRotate     `cmd:"" help:"Give a webhook a new secret, shown once. The old one signs too for a day."`
	Test       webhooksTest       `cmd:"" help:"Send a test message to a webhook from this machine."`
	Deliveries webhooksDeliveries `cmd:"" help:"List messages to webhooks."`
	Replay     webhooksReplay     `cmd:"" help:"Send the dead letters of a webhook again."`
}

// webhookKeys holds the flag of commands that read or write the secrets of webhooks.
type webhookKeys struct {
	WebhookKey []identity.SessionKey `help:"Keys that seal webhooks' secrets in Firestore, 32 bytes in base64 each; the first one seals, all open. Without one, whoever reads the database can read them. Give State Managers and operators the same." placeholder:"KEY" name:"webhook-key" env:"WEBHOOK_KEY" secret:""`
}

func (k webhookKeys) sealing() (keys [][]byte) {
	for _, key := range k.WebhookKey {
		keys = append(keys, key)
	}
	return keys
}

type webhooksList struct{ placesList }

// Check implements config.Checker.
func (c *webhooksList) Check(r *config.Refuser) {
	c.desk.Check(r)
	c.checkPage(r, "webhooks", domain.CheckDocumentID)
}

// Run lists webhooks.
func (c *webhooksList) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error { return c.on(d).ListWebhooks(ctx, c.page.page()) })
}

type webhooksApply struct {
	registryFile
	webhookKeys
}

// Run applies the webhooks of a file.
func (c *webhooksApply) Run(ctx context.Context) error {
	c.sealingKeys = c.sealing()
	list, err := readPlaces(ctx, c.File, placefile.Webhooks)
	if err != nil {
		return err
	}
	return c.runWithSecrets(ctx, func(commands operator.Commands, dryRun bool) ([]domain.PlaceChange, operator.NewSecrets, error) {
		return commands.ApplyWebhooks(ctx, list, c.Reason, dryRun)
	})
}

// runWithSecrets is run for commands that make secrets.
func (c *placesChange) runWithSecrets(ctx context.Context, do func(operator.Commands, bool) ([]domain.PlaceChange, operator.NewSecrets, error)) error {
	var made operator.NewSecrets
	return c.runPrinting(ctx, func(commands operator.Commands, dryRun bool) (done []domain.PlaceChange, err error) {
		done, made, err = do(commands, dryRun)
		return done, err
	}, func(d *operator.Desk, done []domain.PlaceChange, dryRun bool, failure error) error {
		return d.PrintWebhookChanges(done, made, dryRun, failure)
	})
}

type webhooksRotate struct {
	placesDelete
	webhookKeys
}

// Run replaces a secret.
func (c *webhooksRotate) Run(ctx context.Context) error {
	c.sealingKeys = c.sealing()
	return c.runWithSecrets(ctx, func(commands operator.Commands, dryRun bool) ([]domain.PlaceChange, operator.NewSecrets, error) {
		return commands.RotateWebhook(ctx, domain.WebhookID(c.ID), c.Reason, dryRun)
	})
}

type webhooksDelete struct{ placesDelete }

// Run deletes a webhook.
func (c *webhooksDelete) Run(ctx context.Context) error {
	return c.run(ctx, func(commands operator.Commands, dryRun bool) ([]domain.PlaceChange, error) {
		done, err := commands.DeleteWebhook(ctx, domain.WebhookID(c.ID), c.Reason, dryRun)
		return oneChange(done), err
	})
}

type webhooksReplay struct{ placesDelete }

// Run replays dead letters.
func (c *webhooksReplay) Run(ctx context.Context) error {
	return c.run(ctx, func(commands operator.Commands, dryRun bool) ([]domain.PlaceChange, error) {
		done, err := commands.ReplayWebhook(ctx, domain.WebhookID(c.ID), c.Reason, dryRun)
		return oneChange(done), err
	})
}

type webhooksTest struct {
	desk
	webhookKeys
	ID              string             `arg:"" help:"Its id."`
	WebhookNetworks []webhooks.Network `help:"Private networks to which webhooks may be sent, as of serve." placeholder:"NETWORK"`
}

// Check implements config.Checker.
func (c *webhooksTest) Check(r *config.Refuser) {
	c.desk.Check(r)
	checkID(r, c.ID)
}

// Run sends a test message.
func (c *webhooksTest) Run(ctx context.Context) error {
	c.sealingKeys = c.sealing()
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		client := webhooks.NewClient(c.WebhookNetworks)
		defer client.Close()
		return d.TestWebhook(ctx, client, domain.WebhookID(c.ID))
	})
}

type webhooksDeliveries struct {
	desk
	page
	Webhook string                `help:"Only messages to this webhook." placeholder:"ID"`
	Status  domain.DeliveryStatus `help:"Only messages of this status: WAITING, DELIVERED or DEAD_LETTER." placeholder:"STATUS"`
}

// Check implements config.Checker.
func (c *webhooksDeliveries) Check(r *config.Refuser) {
	c.desk.Check(r)
	c.checkPage(r, "webhookDeliveries", domain.CheckDocumentID)
	checkStatus(r, c.Status, domain.DeliveryStatuses)
	if c.Webhook == "" {
		return
	}
	if err := domain.CheckID(c.Webhook); err != nil {
		r.Refuse("webhook", "%q %s", c.Webhook, err)
	}
}

// Run lists messages.
func (c *webhooksDeliveries) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return c.on(d).ListDeliveries(ctx, firestoretx.DeliveryFilter{Webhook: domain.WebhookID(c.Webhook), Status: c.Status}, c.page.page())
	})
}
