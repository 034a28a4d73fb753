package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/adapters/httpapi/entity"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
)

// LetterFilter chooses dead letters; empty fields choose all.
type LetterFilter struct {
	Topic  string   // the original message's
	Reason string   // UNDECODABLE, INVALID, FUTURE_TIMESTAMP, ...
	IDs    []string // the original messages'
	Limit  int      // of letters, the first published first; 0 means all
}

func (f LetterFilter) topics() ([]string, error) {
	if f.Topic == "" {
		return pubsubio.InboundTopics, nil
	}
	if !slices.Contains(pubsubio.InboundTopics, f.Topic) {
		return nil, fmt.Errorf("--topic is %q; give one of %v", f.Topic, pubsubio.InboundTopics)
	}
	return []string{f.Topic}, nil
}

// choose keeps the letters the filter wants, in the order in which the original
// messages were published, whatever their topic.
func (f LetterFilter) choose(reviews []*pubsubio.Review) []foundLetter {
	var found []foundLetter
	for _, r := range reviews {
		for _, l := range r.Letters {
			if (f.Reason == "" || l.Reason == f.Reason) && (len(f.IDs) == 0 || slices.Contains(f.IDs, l.MessageID)) {
				found = append(found, foundLetter{l, r})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b foundLetter) int { return a.PublishTime.Compare(b.PublishTime) })
	if f.Limit > 0 && len(found) > f.Limit {
		found = found[:f.Limit]
	}
	return found
}

type foundLetter struct {
	pubsubio.DeadLetter
	review *pubsubio.Review
}

// ListDeadLetters prints the dead letters a filter chooses, in the order in
// which the original messages were published, and leaves them where they are.
func (d *Desk) ListDeadLetters(ctx context.Context, f LetterFilter) error {
	return d.review(ctx, f, func(found []foundLetter, more bool) error {
		if d.JSON {
			return d.printJSON(lettersJSON(found, more))
		}
		return d.letterTable(found, more)
	})
}

// ReplayDeadLetters publishes the original messages of the letters a filter
// chooses again, in their original order, and deletes each letter once the
// server has its message. dryRun only shows which.
func (d *Desk) ReplayDeadLetters(ctx context.Context, f LetterFilter, dryRun bool) error {
	return d.review(ctx, f, func(found []foundLetter, more bool) error {
		replayed, err := 0, error(nil)
		if !dryRun {
			replayed, err = d.replay(ctx, found)
		}
		if d.JSON {
			body := lettersJSON(found, more)
			body["replayed"] = replayed
			return errors.Join(err, d.printJSON(body))
		}
		if tableErr := d.letterTable(found, more); tableErr != nil {
			return errors.Join(err, tableErr)
		}
		switch {
		case dryRun && len(found) > 0:
			fmt.Fprintf(d.Out, "%d would be replayed; leave out --dry-run to do it.\n", len(found))
		case len(found) > 0:
			fmt.Fprintf(d.Out, "%d of %d replayed.\n", replayed, len(found))
		}
		return err
	})
}

// replay takes one topic after the other.
func (d *Desk) replay(ctx context.Context, found []foundLetter) (replayed int, err error) {
	publisher := pubsubio.NewPublisher(d.PubSub)
	defer publisher.Stop()
	var reviews []*pubsubio.Review
	letters := map[*pubsubio.Review][]pubsubio.DeadLetter{}
	for _, l := range found {
		if letters[l.review] == nil {
			reviews = append(reviews, l.review)
		}
		letters[l.review] = append(letters[l.review], l.DeadLetter)
	}
	var errs []error
	for _, r := range reviews {
		n, err := r.Replay(ctx, publisher, letters[r])
		replayed += n
		errs = append(errs, err)
	}
	return replayed, errors.Join(errs...)
}

// review holds the letters of all topics in question while f works on those the
// filter chooses.
func (d *Desk) review(ctx context.Context, f LetterFilter, work func(found []foundLetter, more bool) error) (err error) {
	topics, err := f.topics()
	if err != nil {
		return err
	}
	reviews := make([]*pubsubio.Review, len(topics))
	defer func() {
		for _, r := range reviews {
			if r != nil {
				err = errors.Join(err, r.Close(ctx))
			}
		}
	}()
	// Together, for each waits for letters that may still come.
	var g errgroup.Group
	for i, topic := range topics {
		g.Go(func() (err error) {
			reviews[i], err = pubsubio.OpenReview(ctx, d.PubSub, topic, d.Patience)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	more := slices.ContainsFunc(reviews, func(r *pubsubio.Review) bool { return r.More })
	found := f.choose(reviews)
	for _, id := range f.IDs {
		if !slices.ContainsFunc(found, func(l foundLetter) bool { return l.MessageID == id }) {
			return fmt.Errorf("no dead letter of a message %q; \"deadletters list\" shows what there is", id)
		}
	}
	return work(found, more)
}

func (d *Desk) letterTable(found []foundLetter, more bool) error {
	if len(found) == 0 {
		fmt.Fprintln(d.Out, "No such dead letters.")
		return nil
	}
	t := d.table("PUBLISHED (UTC)", "TOPIC", "REASON", "MESSAGE", "KEY", "BYTES", "ERROR")
	for _, l := range found {
		t.row(stamp(l.PublishTime), l.review.Topic(), l.Reason, l.MessageID, l.OrderingKey, fmt.Sprint(len(l.Data)), l.Error)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if more {
		fmt.Fprintln(d.Out, "There are more than fit into one review; replay or narrow these first.")
	}
	return nil
}

// letterJSON is a dead letter for tools. Data is the payload in base64, Text
// the same if it is text.
type letterJSON struct {
	Topic       string            `json:"topic"`
	MessageID   string            `json:"messageId"`
	PublishedAt *time.Time        `json:"publishedAt,omitempty"`
	OrderingKey string            `json:"orderingKey,omitempty"`
	Reason      string            `json:"reason"`
	Error       string            `json:"error"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	Data        []byte            `json:"data"`
	Text        string            `json:"text,omitempty"`
}

func lettersJSON(found []foundLetter, more bool) map[string]any {
	letters := entity.Each(found, func(l foundLetter) letterJSON {
		j := letterJSON{
			Topic: l.review.Topic(), MessageID: l.MessageID, OrderingKey: l.OrderingKey,
			Reason: l.Reason, Error: l.Error, Attributes: l.Attributes, Data: l.Data,
		}
		if !l.PublishTime.IsZero() {
			j.PublishedAt = &l.PublishTime
		}
		if utf8.Valid(l.Data) && !slices.ContainsFunc([]rune(string(l.Data)), func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' }) {
			j.Text = string(l.Data)
		}
		return j
	})
	return map[string]any{"deadLetters": nonNil(letters), "more": more}
}
