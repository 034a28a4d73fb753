package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
)

// LetterStory is what became of a refused message, from replay to replay.
type LetterStory struct {
	MessageID string          `json:"messageId"`
	Replays   []replayJSON    `json:"replays"`
	Discards  []discardedJSON `json:"discards"`
	// Waiting are the dead letters that are still there, of the message itself or of
	// one that repeated it.
	Waiting []letterJSON `json:"waiting"`
}

type replayJSON struct {
	Topic         string    `json:"topic"`
	MessageID     string    `json:"messageId"`
	NewMessageIDs []string  `json:"newMessageIds"`
	Reason        string    `json:"reason"`
	Error         string    `json:"error,omitempty"`
	Subject       string    `json:"subject,omitempty"`
	SubjectID     string    `json:"subjectId,omitempty"`
	ReplayedAt    time.Time `json:"replayedAt"`
	ReplayedBy    string    `json:"replayedBy"`
}

type discardedJSON struct {
	Topic       string    `json:"topic"`
	MessageID   string    `json:"messageId"`
	Reason      string    `json:"reason"`
	Error       string    `json:"error,omitempty"`
	DiscardedAt time.Time `json:"discardedAt"`
	DiscardedBy string    `json:"discardedBy"`
	Why         string    `json:"why"`
}

// maxReplays bounds how far a story follows a message that is refused again and again.
const maxReplays = 50

// LetterStory tells what became of a refused message: its dead letter waits, was discarded, or was
// replayed. It follows each replay under its new id. The error wraps firestoretx.ErrNotFound if
// nothing is known.
//
// Cost: 2 RPCs and 8 reads for each id, besides what listing dead letters costs.
func (c Commands) LetterStory(ctx context.Context, messageID string) (LetterStory, error) {
	if messageID == "" {
		return LetterStory{}, errors.New("message id is empty; give the id that \"deadletters list\" or a log line shows")
	}
	story := LetterStory{MessageID: messageID, Replays: []replayJSON{}, Discards: []discardedJSON{}, Waiting: []letterJSON{}}
	ids := []string{messageID}
	for i := 0; i < len(ids) && i < maxReplays; i++ {
		replays, discards, err := c.Store.LetterRecords(ctx, pubsubio.InboundTopics, ids[i])
		if err != nil {
			return LetterStory{}, err
		}
		for _, r := range replays {
			story.Replays = append(story.Replays, replayJSON{
				r.Topic, r.MessageID, r.NewMessageIDs, r.Reason, r.Error, r.Subject, r.SubjectID, r.ReplayedAt.UTC(), r.ReplayedBy,
			})
			for _, id := range r.NewMessageIDs {
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
		for _, x := range discards {
			story.Discards = append(story.Discards, discardedJSON{x.Topic, x.MessageID, x.Reason, x.Error, x.DiscardedAt.UTC(), x.DiscardedBy, x.Why})
		}
	}
	letters, err := c.DeadLetters(ctx, LetterFilter{IDs: ids, Partial: true})
	if err != nil {
		return LetterStory{}, err
	}
	for _, l := range letters.found {
		story.Waiting = append(story.Waiting, letterOf(l))
	}
	if len(story.Replays)+len(story.Discards)+len(story.Waiting) == 0 {
		return LetterStory{}, fmt.Errorf("no dead letter of a message %q, and no record of one; \"deadletters list\" shows what there is: %w", messageID, firestoretx.ErrNotFound)
	}
	return story, nil
}

// ShowDeadLetter prints what became of a refused message.
func (d *Desk) ShowDeadLetter(ctx context.Context, messageID string) error {
	story, err := d.Commands.LetterStory(ctx, messageID)
	if err != nil {
		return err
	}
	if d.JSON {
		return d.printJSON(story)
	}
	d.sayLetterStory(story)
	return nil
}

// sayLetterStory prints the known story in the order in which it happened, and at its end the
// outcome of the last message.
func (d *Desk) sayLetterStory(s LetterStory) {
	open := map[string]bool{} // messages of which nothing more is known
	for _, r := range s.Replays {
		d.say("Message %s of %s was refused: %s%s", r.MessageID, r.Topic, r.Reason, prefixed(": ", oneLine(r.Error)))
		for _, id := range r.NewMessageIDs {
			d.say("  replayed as message %s at %s UTC by %s", id, stamp(r.ReplayedAt), cmp.Or(r.ReplayedBy, "-"))
			open[id] = true
		}
		delete(open, r.MessageID)
	}
	for _, x := range s.Discards {
		d.say("Message %s of %s was refused: %s%s", x.MessageID, x.Topic, x.Reason, prefixed(": ", oneLine(x.Error)))
		d.say("  discarded at %s UTC by %s because %s", stamp(x.DiscardedAt), cmp.Or(x.DiscardedBy, "-"), oneLine(x.Why))
		delete(open, x.MessageID)
	}
	for _, l := range s.Waiting {
		d.say("Message %s of %s was refused: %s%s", l.MessageID, l.Topic, l.Reason, prefixed(": ", oneLine(l.Error)))
		d.say("  its dead letter waits; replay or discard it")
		delete(open, l.MessageID)
	}
	for _, r := range s.Replays {
		for _, id := range r.NewMessageIDs {
			if !open[id] {
				continue
			}
			d.say("Message %s of %s has no record of a refusal.", id, r.Topic)
			if r.Subject != "" {
				d.say("  audit %s %s tells what came of it", r.Subject, r.SubjectID)
			}
		}
	}
}
