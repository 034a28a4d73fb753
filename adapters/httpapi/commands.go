package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/operator"
	"github.com/dronefleet/dronefleet/policy"
)

// Operators' commands. Whoever does not hear an answer may ask again: see
// operator.Changed.

// changeRequest is the body of a change to one entity.
type changeRequest struct {
	Reason string `json:"reason"` // for the audit
}

// change answers POST /api/v1/{collection}/{id}/{command} with the entity as it
// is afterwards.
func change[ID ~string, D, J any](a *API, command string, form func(D) J,
	do func(operator.Commands, context.Context, ID, string) (operator.Changed[D], error)) func(context.Context, *http.Request) (any, error) {
	return func(ctx context.Context, r *http.Request) (any, error) {
		id, reason, err := changeOf(r)
		if err != nil {
			return nil, err
		}
		commands := a.operator
		commands.By = callerOf(ctx).Name
		changed, err := do(commands, ctx, ID(id), reason)
		a.record(ctx, err, slog.String("operator", commands.By), slog.String("command", command), slog.String("id", id),
			slog.String("reason", reason), slog.Bool("already", changed.Already))
		if err != nil {
			return nil, rejected(err)
		}
		return form(changed.Now), nil
	}
}

// record logs who asked for what, and what came of it.
func (a *API) record(ctx context.Context, err error, attrs ...slog.Attr) {
	if err != nil {
		attrs = append(attrs, slog.Any("err", err))
	}
	a.log.LogAttrs(ctx, slog.LevelInfo, "operator's command", attrs...)
}

// changeOf reads a change's id and reason, and says all that is wrong with
// them.
func changeOf(r *http.Request) (id, reason string, err error) {
	if _, err := parameters(r); err != nil {
		return "", "", err
	}
	var req changeRequest
	if err := readJSON(r, &req); err != nil {
		return "", "", err
	}
	var bad []ParameterProblem
	id = r.PathValue("id")
	if err := domain.CheckID(id); err != nil {
		bad = append(bad, ParameterProblem{"id", err.Error()})
	}
	if err := operator.CheckReason(req.Reason); err != nil {
		bad = append(bad, ParameterProblem{"reason", err.Error()})
	}
	if bad != nil {
		return "", "", badParameters(bad)
	}
	return id, req.Reason, nil
}

// rejected is the problem of a command that the fleet's rules refuse.
func rejected(err error) error {
	refusal, is := errors.AsType[*policy.Rejection](err)
	switch {
	case !is:
		return err
	case refusal.Reason == policy.ReasonNotFound:
		return problem(http.StatusNotFound, "%s", err)
	}
	return problem(http.StatusConflict, "%s", err)
}

// replayRequest is the body of a replay; what is absent chooses all. A list that
// is there and empty chooses none, so it is refused: whoever sends it found
// nothing to replay.
type replayRequest struct {
	Topic  string   `json:"topic"`  // the original messages'
	Reason string   `json:"reason"` // why they were refused
	IDs    []string `json:"ids"`    // the original messages'
	Limit  int      `json:"limit"`  // the first published first; 0 for all
	DryRun bool     `json:"dryRun"` // only show them
}

// maxReplayIDs bounds the messages that one request names.
const maxReplayIDs = 1000

// replay answers POST /api/v1/deadletters/replay. Ids that are not found are
// listed as missing: who asks again, after an answer that was lost, finds that
// everything is done. A replay that fails after some were replayed answers with
// its problem and with them.
//
// Cost: Pub/Sub only, 4 RPCs per topic and 2 per 200 letters.
func (a *API) replay(ctx context.Context, r *http.Request) (any, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	var req replayRequest
	if err := readJSON(r, &req); err != nil {
		return nil, err
	}
	if err := req.check(); err != nil {
		return nil, err
	}
	commands := a.operator
	commands.By = callerOf(ctx).Name
	work := commands.ReplayDeadLetters
	if req.DryRun {
		work = commands.DeadLetters
	}
	letters, err := work(ctx, operator.LetterFilter{Topic: req.Topic, Reason: req.Reason, IDs: req.IDs, Limit: req.Limit, Partial: true})
	a.record(ctx, err, slog.String("operator", commands.By), slog.String("command", "deadletters replay"),
		slog.Bool("dry_run", req.DryRun), slog.Int("replayed", letters.Replayed))
	body := letters.JSON()
	body["replayed"], body["missing"] = letters.Replayed, letters.Missing
	if letters.Missing == nil {
		body["missing"] = []string{}
	}
	if err != nil && letters.Replayed > 0 {
		p := asProblem(err)
		p.Replay = body
		return nil, p
	}
	return body, err
}

func (req replayRequest) check() error {
	var bad []ParameterProblem
	refuse := func(name, format string, args ...any) {
		bad = append(bad, ParameterProblem{name, fmt.Sprintf(format, args...)})
	}
	if req.Topic != "" && !slices.Contains(pubsubio.InboundTopics, req.Topic) {
		refuse("topic", "is %.64q; give %s", req.Topic, oneOf(pubsubio.InboundTopics))
	}
	if req.Limit < 0 {
		refuse("limit", "is %d; give 0 or more", req.Limit)
	}
	if len(req.IDs) > maxReplayIDs {
		refuse("ids", "are %d; give at most %d", len(req.IDs), maxReplayIDs)
	}
	if req.IDs != nil && len(req.IDs) == 0 {
		refuse("ids", "hold none; give the ids of the original messages, or leave ids out for all")
	}
	if slices.Contains(req.IDs, "") {
		refuse("ids", "hold an empty one; give the ids of the original messages")
	}
	if bad != nil {
		return badParameters(bad)
	}
	return nil
}
