package httpapi

import (
	"context"
	"log/slog"
	"slices"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/operator"
)

func (a *API) deadLetterEndpoints() []endpoint {
	return []endpoint{
		{
			method: get, path: "/api/v1/deadletters", role: viewer, summary: "List messages that were refused for good.",
			parameters: []parameter{choice("topic", pubsubio.InboundTopics), letterReason, limit, cursorOf("deadletters", "2026-11-21T12:00:00Z orders 4711", operator.CheckLetterCursor)},
			answer:     writes(a.deadLetters),
		},
		{method: get, path: "/api/v1/deadletters/{id}/story", role: viewer, summary: "Show what happened to one refused message.", answer: writes(a.letterStory)},
		{method: post, path: "/api/v1/deadletters/replay", role: oper, summary: "Publish dead-lettered messages again, after the cause is fixed.", answer: operates(a, replay)},
		{method: post, path: "/api/v1/deadletters/discard", role: oper, summary: "Delete dead-lettered messages that will not be fixed.", answer: operates(a, discard)},
	}
}

const emptyReason = "is empty; give one such as INVALID, or leave reason out"

var letterReason = parameter{
	name: "reason", says: "Only those refused for this reason.", example: "INVALID", schema: schema{"type": "string"},
	wrong: func(value string) string {
		if value == "" {
			return emptyReason
		}
		return ""
	},
}

// deadLetters answers GET /api/v1/deadletters with the messages that were refused for
// good and not resolved since.
//
// Cost: Pub/Sub, 4 RPCs per topic.
func (a *API) deadLetters(ctx context.Context, r *request) (operator.LetterList, error) {
	page := r.page()
	letters, err := a.operator.DeadLetters(ctx, operator.LetterFilter{
		Topic: r.value("topic"), Reason: r.value("reason"), Partial: true, Limit: page.Limit, After: page.After,
	})
	return letters.JSON(), err
}

// letterStory answers GET /api/v1/deadletters/{id}/story with what the command
// "deadletters show" prints with --json. The id is the refused message's.
func (a *API) letterStory(ctx context.Context, r *request) (operator.LetterStory, error) {
	return a.operator.LetterStory(ctx, r.id())
}

// lettersRequest selects dead letters. An absent field does not narrow the selection; an empty one
// is refused, because it usually comes from an unset variable.
type lettersRequest struct {
	Topic  *string  `json:"topic,omitempty" doc:"The original messages' topic: telemetry, orders, decisions or links."`
	Reason *string  `json:"reason,omitempty" doc:"Why the messages were refused, such as INVALID."`
	IDs    []string `json:"ids,omitempty" doc:"The original messages' ids, at most 1000." example:"[\"4711\"]"`
	Limit  int      `json:"limit,omitempty" doc:"The largest number of letters, oldest first; 0 means all."`
	DryRun bool     `json:"dryRun,omitempty" doc:"Only show what would be done."`
}

// maxLetterIDs bounds the messages that one request names.
const maxLetterIDs = 1000

func (q *lettersRequest) check(bad *problems) {
	if q.Topic != nil && !slices.Contains(pubsubio.InboundTopics, *q.Topic) {
		bad.add("topic", "is %.64q; give %s", *q.Topic, oneOf(pubsubio.InboundTopics))
	}
	if q.Reason != nil && *q.Reason == "" {
		bad.add("reason", emptyReason)
	}
	if q.Limit < 0 {
		bad.add("limit", "is %d; give 0 or more", q.Limit)
	}
	if len(q.IDs) > maxLetterIDs {
		bad.add("ids", "has %d entries; give at most %d", len(q.IDs), maxLetterIDs)
	}
	if q.IDs != nil && len(q.IDs) == 0 {
		bad.add("ids", "is an empty list; give the ids of the original messages, or leave ids out")
	}
	if slices.Contains(q.IDs, "") {
		bad.add("ids", "has an empty entry; give the ids of the original messages")
	}
}

func (q *lettersRequest) filter() operator.LetterFilter {
	return operator.LetterFilter{Topic: textOf(q.Topic), Reason: textOf(q.Reason), IDs: q.IDs, Limit: q.Limit, Partial: true}
}

// replayRequest is the body of a replay, which must select letters or say that it means
// all. A dry run changes nothing and may list all without saying so.
type replayRequest struct {
	lettersRequest
	All bool `json:"all,omitempty" doc:"Every letter is meant; not together with ids, topic or reason."`
}

func (p *replayRequest) check(bad *problems) {
	p.lettersRequest.check(bad)
	if p.All || p.IDs == nil && !p.DryRun {
		bad.addError("all", p.filter().CheckAll())
	}
}

func (p *replayRequest) filter() operator.LetterFilter {
	f := p.lettersRequest.filter()
	f.All = p.All
	return f
}

// replay answers POST /api/v1/deadletters/replay. Ids that are not found are listed as missing, so
// a caller that repeats a request whose answer was lost sees that it was done. If a replay fails
// partway, the problem lists the letters that were replayed.
//
// Cost: Pub/Sub, 4 RPCs per topic and 2 per 200 letters; Firestore, 1 RPC and 1
// write per letter.
func replay(ctx context.Context, c *command, req *replayRequest) (operator.LetterList, error) {
	work := c.ReplayDeadLetters
	if req.DryRun {
		work = c.DeadLetters
	}
	letters, err := work(ctx, req.filter())
	done := resolved(c, req.lettersRequest, letters, operator.Replaying)
	if err != nil && letters.Resolved > 0 {
		p := asProblem(err)
		p.Replay = &done
		err = p
	}
	return done, err
}

// discardRequest is the body of a discard, which must select letters.
type discardRequest struct {
	lettersRequest
	Why string `json:"why" doc:"Why, for the audit; reason selects letters." example:"sender was misconfigured"`
}

func (d *discardRequest) check(bad *problems) {
	d.lettersRequest.check(bad)
	if d.IDs == nil {
		bad.addError("ids", d.filter().CheckChoice())
	}
	bad.addError("why", operator.CheckReason(d.Why))
}

// discard answers POST /api/v1/deadletters/discard as replay does.
//
// Cost: Pub/Sub, 4 RPCs per topic and 1 per 200 letters; Firestore, 1 RPC and 1
// write per letter.
func discard(ctx context.Context, c *command, req *discardRequest) (operator.LetterList, error) {
	var letters operator.Letters
	var err error
	if req.DryRun {
		letters, err = c.DeadLetters(ctx, req.filter())
	} else {
		letters, err = c.DiscardDeadLetters(ctx, req.filter(), req.Why)
	}
	done := resolved(c, req.lettersRequest, letters, operator.Discarding)
	c.note(slog.String("why", req.Why))
	if err != nil && letters.Resolved > 0 {
		p := asProblem(err)
		p.Discard = &done
		err = p
	}
	return done, err
}

// resolved is what a command did to dead letters, or would do.
func resolved(c *command, req lettersRequest, letters operator.Letters, resolution operator.Resolution) operator.LetterList {
	c.note(slog.Bool("dry_run", req.DryRun), slog.Int(string(resolution), letters.Resolved))
	done := resolution.Done(letters)
	done.Missing = entity.OrEmpty(letters.Missing)
	return done
}
