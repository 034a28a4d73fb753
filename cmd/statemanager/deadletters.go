package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
)

type deadLettersCommand struct {
	List    deadLettersList    `cmd:"" help:"List dead-lettered messages, with the reason."`
	Show    deadLettersShow    `cmd:"" help:"Show what became of one refused message, by its original id."`
	Replay  deadLettersReplay  `cmd:"" help:"Publish dead-lettered messages again, after the cause is fixed."`
	Discard deadLettersDiscard `cmd:"" help:"Delete dead-lettered messages that will not be fixed; a record of each stays in Firestore."`
}

// letters holds the flags that select dead letters.
type letters struct {
	desk
	Topic  narrowing  `help:"Only messages of this topic: telemetry, orders, decisions or links." placeholder:"TOPIC"`
	Reason narrowing  `help:"Only those refused for this reason, such as INVALID." placeholder:"REASON"`
	ID     messageIDs `help:"Only these messages, by their original ids." placeholder:"MESSAGE,..."`
	Limit  int        `help:"How many at most, oldest first; 0 for all." default:"0" check:"min 0"`
}

// narrowing is a value that selects some letters. An empty one, such as an unset shell variable,
// must not select all.
type narrowing string

var errEmptyValue = errors.New("empty value; give one, or omit the flag to select all")

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *narrowing) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errEmptyValue
	}
	*n = narrowing(text)
	return nil
}

// messageIDs is a list of ids, given by repeated flags or with commas.
type messageIDs []string

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *messageIDs) UnmarshalText(text []byte) error {
	for id := range strings.SplitSeq(string(text), ",") {
		if id == "" {
			return errEmptyValue
		}
		*m = append(*m, id)
	}
	return nil
}

// Check implements config.Checker.
func (c *letters) Check(r *config.Refuser) {
	c.desk.Check(r)
	if topic := string(c.Topic); topic != "" && !slices.Contains(pubsubio.InboundTopics, topic) {
		r.Refuse("topic", "is %q; give %s", topic, config.OneOf(pubsubio.InboundTopics))
	}
}

func (c *letters) filter() operator.LetterFilter {
	return operator.LetterFilter{Topic: string(c.Topic), Reason: string(c.Reason), IDs: c.ID, Limit: c.Limit}
}

type deadLettersList struct {
	letters
	output
	Cursor string `help:"nextCursor of the previous page." placeholder:"CURSOR"`
}

// Check implements config.Checker.
func (c *deadLettersList) Check(r *config.Refuser) {
	c.letters.Check(r)
	page{Cursor: c.Cursor}.checkPage(r, "deadletters", operator.CheckLetterCursor)
}

// Run lists dead letters without changing them.
func (c *deadLettersList) Run(ctx context.Context) error {
	filter := c.filter()
	filter.After = page{Cursor: c.Cursor}.page().After
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error { return c.on(d).ListDeadLetters(ctx, filter) })
}

type deadLettersShow struct {
	desk
	Message string `arg:"" help:"The id of the message that was refused."`
}

// Run shows what became of a message.
func (c *deadLettersShow) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error { return d.ShowDeadLetter(ctx, c.Message) })
}

type deadLettersReplay struct {
	letters
	All    bool `help:"Replay every dead letter; required unless --id, --topic or --reason selects some."`
	DryRun bool `help:"Only show what would be sent."`
}

// Check implements config.Checker.
func (c *deadLettersReplay) Check(r *config.Refuser) {
	c.letters.Check(r)
	if !c.All && (r.Given("id") || r.Given("topic") || r.Given("reason")) {
		return // a selection that is empty has been refused
	}
	if err := c.filter().CheckAll(); err != nil {
		r.Refuse("all", "%s", err)
	}
}

func (c *deadLettersReplay) filter() operator.LetterFilter {
	f := c.letters.filter()
	f.All = c.All
	return f
}

// Run sends the original messages again and deletes their letters.
func (c *deadLettersReplay) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return d.ReplayDeadLetters(ctx, c.filter(), c.DryRun)
	})
}

type deadLettersDiscard struct {
	letters
	Why    string `help:"Why, for the audit; here --reason selects letters." required:"" placeholder:"TEXT"`
	DryRun bool   `help:"Only show what would be discarded."`
}

// Check implements config.Checker.
func (c *deadLettersDiscard) Check(r *config.Refuser) {
	c.letters.Check(r)
	if err := operator.CheckReason(c.Why); err != nil {
		r.Refuse("why", "%s", err)
	}
	if err := c.filter().CheckChoice(); err != nil {
		r.Refuse("id", "%s", err)
	}
}

// Run records the selected letters and deletes them.
func (c *deadLettersDiscard) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return d.DiscardDeadLetters(ctx, c.filter(), c.Why, c.DryRun)
	})
}
