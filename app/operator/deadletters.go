package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

// LetterFilter selects dead letters. Empty fields select all.
type LetterFilter struct {
	Topic  string   // the original message's
	Reason string   // UNDECODABLE, INVALID, FUTURE_TIMESTAMP, ...
	IDs    []string // the original messages'
	Limit  int      // of letters, oldest first; 0 means all
	After  string   // the letter that the page before ended with; see Letters.Next
	// All says that every letter is meant. A replay requires it unless topic, reason or
	// ids select letters.
	All bool
	// Partial accepts missing ids, for a caller that repeats a request after a lost answer.
	Partial bool
}

func (f LetterFilter) topics() ([]string, error) {
	if f.Topic == "" {
		return pubsubio.InboundTopics, nil
	}
	if !slices.Contains(pubsubio.InboundTopics, f.Topic) {
		return nil, ofField("topic", fmt.Errorf("is %q; give one of %v", f.Topic, pubsubio.InboundTopics))
	}
	return []string{f.Topic}, nil
}

// CheckChoice refuses a filter without id, topic and reason, for commands that must not apply to
// every letter by mistake.
func (f LetterFilter) CheckChoice() error {
	if !f.selects() {
		return errNoChoice
	}
	return nil
}

func (f LetterFilter) selects() bool { return f.Topic != "" || f.Reason != "" || len(f.IDs) > 0 }

// CheckAll refuses the filter of a replay that neither selects letters nor sets All, or does both.
func (f LetterFilter) CheckAll() error {
	switch {
	case !f.All && !f.selects():
		return errors.New("is not set, and no id, topic or reason selects letters; set one of those, or all to replay every dead letter")
	case f.All && f.selects():
		return errors.New("is set, and so is an id, topic or reason; set one or the other")
	}
	return nil
}

var errNoChoice = errors.New("is empty, and so are topic and reason; set at least one, so that nothing is discarded by mistake")

// choose returns the selected letters of all topics in the order in which the original
// messages were published, and whether there are more.
func (f LetterFilter) choose(reviews []*pubsubio.Review) (found []foundLetter, more bool) {
	after, _ := parseLetterCursor(f.After) // checked
	for _, r := range reviews {
		for _, l := range r.Letters {
			letter := foundLetter{l, r}
			if (f.Reason == "" || l.Reason == f.Reason) && (len(f.IDs) == 0 || slices.Contains(f.IDs, l.MessageID)) &&
				(f.After == "" || letter.cursor().compare(after) > 0) {
				found = append(found, letter)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b foundLetter) int { return a.cursor().compare(b.cursor()) })
	if f.Limit > 0 && len(found) > f.Limit {
		return found[:f.Limit], true
	}
	return found, false
}

// letterCursor is the position of a letter in a list: by the publish time of its original message,
// then its topic and id. Pub/Sub numbers messages.
type letterCursor struct {
	at        time.Time
	topic, id string
}

func (l foundLetter) cursor() letterCursor {
	return letterCursor{l.PublishTime.UTC(), l.review.Topic(), l.ID}
}

func (p letterCursor) compare(other letterCursor) int {
	return cmp.Or(p.at.Compare(other.at), cmp.Compare(p.topic, other.topic), cmp.Compare(len(p.id), len(other.id)), cmp.Compare(p.id, other.id))
}

// String is the cursor in the form that parseLetterCursor takes.
func (p letterCursor) String() string {
	return p.at.Format(time.RFC3339Nano) + " " + p.topic + " " + p.id
}

func parseLetterCursor(text string) (letterCursor, error) {
	parts := strings.Split(text, " ")
	if len(parts) != 3 || !slices.Contains(pubsubio.InboundTopics, parts[1]) || parts[2] == "" {
		return letterCursor{}, errors.New("is not the nextCursor of a list")
	}
	at, err := time.Parse(time.RFC3339Nano, parts[0])
	return letterCursor{at, parts[1], parts[2]}, err
}

// CheckLetterCursor says what is wrong with LetterFilter.After.
func CheckLetterCursor(after string) error {
	_, err := parseLetterCursor(after)
	return err
}

type foundLetter struct {
	pubsubio.DeadLetter
	review *pubsubio.Review
}

// Letters are the dead letters that were found.
type Letters struct {
	Resolved int // how many were replayed or discarded
	// Missing lists the requested ids that were not found: already resolved, held by
	// another review, or never dead-lettered.
	Missing []string
	// More says that there are more letters than fit into one review.
	More bool
	// Next is LetterFilter.After of the next page; empty on the last.
	Next string

	found []foundLetter
}

// LetterList is the JSON form of letters that were listed, replayed or discarded.
type LetterList struct {
	DeadLetters []letterJSON `json:"deadLetters"`
	NextCursor  string       `json:"nextCursor,omitempty" doc:"Give it as cursor to get the next page; absent on the last one."`
	More        bool         `json:"more" doc:"There are more letters than fit into one review."`
	Replayed    *int         `json:"replayed,omitempty" doc:"How many messages were published again."`
	Discarded   *int         `json:"discarded,omitempty" doc:"How many letters were deleted."`
	Missing     []string     `json:"missing,omitzero" doc:"Requested ids that were not found."`
}

// JSON returns the JSON form of the letters.
func (l Letters) JSON() LetterList {
	list := LetterList{DeadLetters: entity.OrEmpty(entity.Each(l.found, letterOf)), More: l.More}
	if l.Next != "" {
		list.NextCursor = entity.Cursor(letterCollection, l.Next)
	}
	return list
}

// letterCollection is the name of dead letters in cursors.
const letterCollection = "deadletters"

// Resolution is what a command does to letters.
type Resolution string

const (
	Replaying  Resolution = "replayed"
	Discarding Resolution = "discarded"
)

// Done returns the JSON form of the letters after a command.
func (s Resolution) Done(l Letters) LetterList {
	l.Next = "" // what is resolved is gone when the next page is asked for
	list := l.JSON()
	switch s {
	case Replaying:
		list.Replayed = &l.Resolved
	case Discarding:
		list.Discarded = &l.Resolved
	}
	return list
}

// DeadLetters returns the selected letters in the order in which the original messages
// were published. It does not change them.
func (c Commands) DeadLetters(ctx context.Context, f LetterFilter) (letters Letters, err error) {
	err = c.review(ctx, f, func(found Letters) error { letters = found; return nil })
	return letters, err
}

// ReplayDeadLetters publishes the original messages of the selected letters again, in their
// original order. It deletes each letter once the server has its message, and records the replay
// with the old and new id. It returns the letters even if some could not be replayed; a letter that
// lacks a part of its message cannot. A repeated replay finds nothing.
//
// Cost: 2 RPCs, 2 writes for each letter, besides what Pub/Sub costs.
func (c Commands) ReplayDeadLetters(ctx context.Context, f LetterFilter) (letters Letters, err error) {
	if err := ofField("all", f.CheckAll()); err != nil {
		return Letters{}, err
	}
	if err := c.checkBy(); err != nil {
		return Letters{}, err
	}
	publisher := pubsubio.NewPublisher(c.PubSub)
	defer publisher.Stop()
	return c.resolve(ctx, f, func(r *pubsubio.Review, letters []pubsubio.DeadLetter) (int, error) {
		return r.Replay(ctx, publisher, c.By, letters, func(ctx context.Context, l pubsubio.DeadLetter, newID string) error {
			return c.Store.RecordReplay(ctx, replayOf(r.Topic(), l, newID, c.By))
		})
	})
}

// replayOf is the record of a letter whose message was published again.
func replayOf(topic string, l pubsubio.DeadLetter, newID, by string) domain.Replay {
	r := domain.Replay{
		ID: domain.ReplayIDFor(topic, l.Original()), Topic: topic, MessageID: l.Original(), NewMessageIDs: []string{newID}, OrderingKey: l.OrderingKey,
		PublishedAt: l.PublishTime, Reason: l.Reason, Error: l.Error, ReplayedBy: by,
	}
	r.Subject, r.SubjectID = subjectOf(topic, l)
	return r
}

// subjectOf names what a letter's message is about, if it can be decoded.
func subjectOf(topic string, l pubsubio.DeadLetter) (subject, id string) {
	switch topic {
	case pubsubio.TopicOrders:
		if o, err := wire.DecodeOrder(l.Data, l.Attributes); err == nil {
			return string(SubjectOrder), string(o.ID)
		}
	case pubsubio.TopicDecisions:
		if d, err := wire.DecodeDecision(l.Data, l.Attributes); err == nil && d.ID != "" {
			return string(SubjectDecision), string(d.ID)
		}
	case pubsubio.TopicTelemetry:
		if t, err := wire.DecodeTelemetry(l.Data, l.Attributes); err == nil {
			return string(SubjectDrone), string(t.DroneID)
		}
	case pubsubio.TopicLinks:
		if s, err := wire.DecodeLinkState(l.Data, l.Attributes); err == nil {
			return string(SubjectDrone), string(s.DroneID)
		}
	}
	return "", ""
}

// DiscardDeadLetters deletes the selected letters permanently. It first records each letter in the
// store with the reason and the person. It returns the letters even if some could not be discarded.
// A repeated discard finds nothing, or letters that are already recorded.
//
// Cost: 2 RPCs and 2 writes for each letter, besides Pub/Sub.
func (c Commands) DiscardDeadLetters(ctx context.Context, f LetterFilter, why string) (letters Letters, err error) {
	if err := ofField("ids", f.CheckChoice()); err != nil {
		return Letters{}, err
	}
	if err := ofField("why", CheckReason(why)); err != nil {
		return Letters{}, err
	}
	if err := c.checkBy(); err != nil {
		return Letters{}, err
	}
	return c.resolve(ctx, f, func(r *pubsubio.Review, letters []pubsubio.DeadLetter) (int, error) {
		return r.Discard(ctx, letters, func(ctx context.Context, l pubsubio.DeadLetter) error {
			d := discardOf(r.Topic(), l)
			d.DiscardedBy, d.Why = c.By, oneLine(why)
			return c.Store.RecordDiscard(ctx, d)
		})
	})
}

// discardOf returns the record of a letter, even of one that no State Manager wrote.
func discardOf(topic string, l pubsubio.DeadLetter) domain.Discard {
	d := domain.Discard{
		ID: domain.DiscardIDFor(topic, l.MessageID), Topic: topic, MessageID: l.MessageID, OrderingKey: l.OrderingKey,
		PublishedAt: l.PublishTime, Reason: l.Reason, Error: l.Error, Payload: l.Data,
		OriginalBytes: l.OriginalBytes, AttributesDropped: l.AttributesDropped,
	}
	if l.MessageID == "" { // published directly to the dead-letter topic; the letter is the message
		d.ID = domain.DiscardIDFor(pubsubio.DeadLetterTopic(topic), l.ID)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Attributes)) {
		d.Attributes = append(d.Attributes, name+"="+l.Attributes[name])
	}
	return d
}

// ListDeadLetters prints the selected dead letters in the order in which the original
// messages were published. It does not change them.
func (d *Desk) ListDeadLetters(ctx context.Context, f LetterFilter) error {
	letters, err := d.Commands.DeadLetters(ctx, f)
	if err != nil {
		return err
	}
	if d.JSON {
		return d.printJSON(letters.JSON())
	}
	if err := d.letterTable(letters); err != nil {
		return err
	}
	d.footer(letterCollection, letters.Next, nil)
	return nil
}

// ReplayDeadLetters replays the selected letters and prints them; see Commands. dryRun
// only prints them.
func (d *Desk) ReplayDeadLetters(ctx context.Context, f LetterFilter, dryRun bool) error {
	return d.resolveDeadLetters(ctx, f, dryRun, Replaying, d.Commands.ReplayDeadLetters)
}

// DiscardDeadLetters discards the selected letters and prints them; see Commands. dryRun
// only prints them.
func (d *Desk) DiscardDeadLetters(ctx context.Context, f LetterFilter, why string, dryRun bool) error {
	return d.resolveDeadLetters(ctx, f, dryRun, Discarding, func(ctx context.Context, f LetterFilter) (Letters, error) {
		return d.Commands.DiscardDeadLetters(ctx, f, why)
	})
}

// resolveDeadLetters runs work and prints the result.
func (d *Desk) resolveDeadLetters(ctx context.Context, f LetterFilter, dryRun bool, done Resolution, work func(context.Context, LetterFilter) (Letters, error)) error {
	if dryRun {
		work = d.Commands.DeadLetters
	}
	letters, err := work(ctx, f)
	if err != nil && letters.found == nil {
		return err
	}
	if d.JSON {
		return errors.Join(err, d.printJSON(done.Done(letters)))
	}
	if tableErr := d.letterTable(letters); tableErr != nil {
		return errors.Join(err, tableErr)
	}
	switch n := len(letters.found); {
	case dryRun && n > 0:
		fmt.Fprintf(d.Out, "%d would be %s; omit --dry-run to do it.\n", n, done)
	case n > 0:
		fmt.Fprintf(d.Out, "%d of %d %s.\n", letters.Resolved, n, done)
	}
	return err
}

// resolve runs work on the selected letters and counts those that it resolves.
func (c Commands) resolve(ctx context.Context, f LetterFilter, work func(*pubsubio.Review, []pubsubio.DeadLetter) (int, error)) (letters Letters, err error) {
	err = c.review(ctx, f, func(found Letters) (err error) {
		letters = found
		letters.Resolved, err = byTopic(found.found, work)
		return err
	})
	return letters, err
}

// byTopic runs work on one topic after the other.
func byTopic(found []foundLetter, work func(*pubsubio.Review, []pubsubio.DeadLetter) (int, error)) (resolved int, err error) {
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
		n, err := work(r, letters[r])
		resolved += n
		errs = append(errs, err)
	}
	return resolved, errors.Join(errs...)
}

// review holds the letters of the filter's topics while work runs on the selected ones.
func (c Commands) review(ctx context.Context, f LetterFilter, work func(Letters) error) (err error) {
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
	// In parallel, because each review waits up to Patience for more letters.
	var g errgroup.Group
	for i, topic := range topics {
		g.Go(func() (err error) {
			reviews[i], err = pubsubio.OpenReview(ctx, c.PubSub, topic, c.Patience, c.ReviewBytes)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	letters := Letters{More: slices.ContainsFunc(reviews, func(r *pubsubio.Review) bool { return r.More })}
	var more bool
	if letters.found, more = f.choose(reviews); more {
		letters.Next = letters.found[len(letters.found)-1].cursor().String()
	}
	for _, id := range f.IDs {
		if !slices.ContainsFunc(letters.found, func(l foundLetter) bool { return l.MessageID == id }) {
			letters.Missing = append(letters.Missing, id)
		}
	}
	if len(letters.Missing) > 0 && !f.Partial {
		return fmt.Errorf("message %q has no dead letter; \"deadletters list\" shows those there are", letters.Missing[0])
	}
	return work(letters)
}

func (d *Desk) letterTable(letters Letters) error {
	if len(letters.found) == 0 {
		d.say("No dead letters found.")
		if !d.CSV {
			return nil
		}
	}
	t := d.table("PUBLISHED (UTC)", "TOPIC", "REASON", "MESSAGE", "KEY", "BYTES", "ERROR")
	for _, l := range letters.found {
		t.row(stamp(l.PublishTime), l.review.Topic(), l.Reason, l.MessageID, l.OrderingKey, size(l.DeadLetter), oneLine(l.Error))
	}
	if err := t.flush(); err != nil {
		return err
	}
	if letters.More {
		d.say("There are more letters than fit into one review; replay or discard these first, or narrow the selection.")
	}
	return nil
}

// size returns the bytes of data that a letter holds and, if they differ, those of its
// message.
func size(l pubsubio.DeadLetter) string {
	if l.OriginalBytes > 0 {
		return fmt.Sprintf("%d of %d", len(l.Data), l.OriginalBytes)
	}
	return fmt.Sprint(len(l.Data))
}

// letterJSON is the JSON form of a dead letter. Replayed and Discarded say that it was resolved and
// deleted. Data is the payload in base64, and Text the same if it is valid text. OriginalBytes and
// AttributesDropped are set if the letter lacks a part of its message and so cannot be replayed.
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

	Replayed bool `json:"replayed,omitempty"`
	// NewMessageID is the id of the message that was published again, ReplayOf the id
	// of the message that this one repeated.
	NewMessageID string `json:"newMessageId,omitempty"`
	ReplayOf     string `json:"replayOf,omitempty"`

	Discarded bool `json:"discarded,omitempty"`

	OriginalBytes     int `json:"originalBytes,omitempty"`
	AttributesDropped int `json:"attributesDropped,omitempty"`
}

func letterOf(l foundLetter) letterJSON {
	j := letterJSON{
		Topic: l.review.Topic(), MessageID: l.MessageID, OrderingKey: l.OrderingKey,
		Reason: l.Reason, Error: l.Error, Attributes: l.Attributes, Data: l.Data,
		NewMessageID: l.review.ReplayedAs(l.DeadLetter), ReplayOf: l.Attributes[pubsubio.AttrReplayOf],
		Replayed: l.review.Replayed(l.DeadLetter), Discarded: l.review.Discarded(l.DeadLetter),
		OriginalBytes: l.OriginalBytes, AttributesDropped: l.AttributesDropped,
	}
	if !l.PublishTime.IsZero() {
		j.PublishedAt = &l.PublishTime
	}
	if domain.IsText(l.Data) {
		j.Text = string(l.Data)
	}
	return j
}
