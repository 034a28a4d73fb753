package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/operator"
)

type deadLettersCommand struct {
	List   deadLettersList   `cmd:"" help:"List messages that were refused for good, with the reason."`
	Replay deadLettersReplay `cmd:"" help:"Send refused messages again, once what was wrong is mended."`
}

// letters holds the flags that choose dead letters.
type letters struct {
	desk
	Topic  narrowing  `help:"Only messages of this topic: telemetry, orders or decisions." placeholder:"TOPIC"`
	Reason narrowing  `help:"Only those refused for this reason, such as INVALID." placeholder:"REASON"`
	ID     messageIDs `help:"Only these messages, by their original ids." placeholder:"MESSAGE,..."`
	Limit  int        `help:"How many at most, the first published first; 0 for all." default:"0"`
}

// narrowing is text that chooses some letters. Empty text, such as a shell's
// variable that is not set, must not choose all.
type narrowing string

var errChoosesNone = errors.New("chooses nothing; give a value, or leave the flag out for all")

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *narrowing) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errChoosesNone
	}
	*n = narrowing(text)
	return nil
}

// messageIDs are ids, given one by one or with commas.
type messageIDs []string

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *messageIDs) UnmarshalText(text []byte) error {
	for id := range strings.SplitSeq(string(text), ",") {
		if id == "" {
			return errChoosesNone
		}
		*m = append(*m, id)
	}
	return nil
}

func (c *letters) filter() (operator.LetterFilter, error) {
	if c.Limit < 0 {
		return operator.LetterFilter{}, fmt.Errorf("--limit is %d; give 0 or more", c.Limit)
	}
	return operator.LetterFilter{Topic: string(c.Topic), Reason: string(c.Reason), IDs: c.ID, Limit: c.Limit}, nil
}

type deadLettersList struct{ letters }

// Run lists dead letters and leaves them where they are.
func (c *deadLettersList) Run(ctx context.Context) error {
	filter, err := c.filter()
	if err != nil {
		return err
	}
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error { return d.ListDeadLetters(ctx, filter) })
}

type deadLettersReplay struct {
	letters
	DryRun bool `help:"Only show what would be sent."`
}

// Run sends the original messages again and deletes their letters.
func (c *deadLettersReplay) Run(ctx context.Context) error {
	filter, err := c.filter()
	if err != nil {
		return err
	}
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error { return d.ReplayDeadLetters(ctx, filter, c.DryRun) })
}
