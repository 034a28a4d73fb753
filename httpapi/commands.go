package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
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

// lettersRequest chooses dead letters; what is absent chooses all. What is there
// and empty chooses none, so it is refused: whoever sends it found nothing to
// settle.
type lettersRequest struct {
	Topic  *string  `json:"topic"`  // the original messages'
	Reason *string  `json:"reason"` // why they were refused
	IDs    []string `json:"ids"`    // the original messages'
	Limit  int      `json:"limit"`  // the first published first; 0 for all
	DryRun bool     `json:"dryRun"` // only show them
}

// maxLetterIDs bounds the messages that one request names.
const maxLetterIDs = 1000

// replay answers POST /api/v1/deadletters/replay. Ids that are not found are
// listed as missing: who asks again, after an answer that was lost, finds that
// everything is done. A replay that fails after some were replayed answers with
// its problem and with them.
//
// Cost: Pub/Sub only, 4 RPCs per topic and 2 per 200 letters.
func (a *API) replay(ctx context.Context, r *http.Request) (any, error) {
	var req lettersRequest
	if err := readLetters(r, &req); err != nil {
		return nil, err
	}
	if bad := req.check(); bad != nil {
		return nil, badParameters(bad)
	}
	body, settled, err := a.settle(ctx, req, "deadletters replay", "replayed", operator.Commands.ReplayDeadLetters)
	if err != nil && settled > 0 {
		p := asProblem(err)
		p.Replay = body
		return nil, p
	}
	return body, err
}

// discardRequest is the body of a discard, which must choose some letters.
type discardRequest struct {
	lettersRequest
	Why string `json:"why"` // for the audit
}

// discard answers POST /api/v1/deadletters/discard as replay does.
//
// Cost: Pub/Sub, 4 RPCs per topic and 1 per 200 letters; Firestore, 1 RPC and 1
// write per letter.
func (a *API) discard(ctx context.Context, r *http.Request) (any, error) {
	var req discardRequest
	if err := readLetters(r, &req); err != nil {
		return nil, err
	}
	bad := req.check()
	if err := req.filter().CheckChoice(); err != nil && req.IDs == nil {
		bad = append(bad, ParameterProblem{"ids", err.Error()})
	}
	if err := operator.CheckReason(req.Why); err != nil {
		bad = append(bad, ParameterProblem{"why", err.Error()})
	}
	if bad != nil {
		return nil, badParameters(bad)
	}
	body, settled, err := a.settle(ctx, req.lettersRequest, "deadletters discard", "discarded",
		func(c operator.Commands, ctx context.Context, f operator.LetterFilter) (operator.Letters, error) {
			return c.DiscardDeadLetters(ctx, f, req.Why)
		}, slog.String("why", req.Why))
	if err != nil && settled > 0 {
		p := asProblem(err)
		p.Discard = body
		return nil, p
	}
	return body, err
}

// settle does what an operator asks of dead letters, or shows them. The answer
// has under done how many were settled.
func (a *API) settle(ctx context.Context, req lettersRequest, command, done string,
	work func(operator.Commands, context.Context, operator.LetterFilter) (operator.Letters, error), attrs ...slog.Attr) (body map[string]any, settled int, err error) {
	commands := a.operator
	commands.By = callerOf(ctx).Name
	if req.DryRun {
		work = operator.Commands.DeadLetters
	}
	letters, err := work(commands, ctx, req.filter())
	a.record(ctx, err, append([]slog.Attr{slog.String("operator", commands.By), slog.String("command", command),
		slog.Bool("dry_run", req.DryRun), slog.Int(done, letters.Settled)}, attrs...)...)
	body = letters.JSON()
	body[done], body["missing"] = letters.Settled, letters.Missing
	if letters.Missing == nil {
		body["missing"] = []string{}
	}
	return body, letters.Settled, err
}

// readLetters reads the body of a request that has no parameters.
func readLetters(r *http.Request, req any) error {
	if _, err := parameters(r); err != nil {
		return err
	}
	return readJSON(r, req)
}

func (req lettersRequest) filter() operator.LetterFilter {
	return operator.LetterFilter{Topic: textOf(req.Topic), Reason: textOf(req.Reason), IDs: req.IDs, Limit: req.Limit, Partial: true}
}

// textOf is a text that may be absent; empty if it is.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// check says what is wrong with a choice of letters.
func (req lettersRequest) check() (bad []ParameterProblem) {
	refuse := func(name, format string, args ...any) {
		bad = append(bad, ParameterProblem{name, fmt.Sprintf(format, args...)})
	}
	if req.Topic != nil && !slices.Contains(pubsubio.InboundTopics, *req.Topic) {
		refuse("topic", "is %.64q; give %s", *req.Topic, oneOf(pubsubio.InboundTopics))
	}
	if req.Reason != nil && *req.Reason == "" {
		refuse("reason", "is empty; give one such as INVALID, or leave reason out for all")
	}
	if req.Limit < 0 {
		refuse("limit", "is %d; give 0 or more", req.Limit)
	}
	if len(req.IDs) > maxLetterIDs {
		refuse("ids", "are %d; give at most %d", len(req.IDs), maxLetterIDs)
	}
	if req.IDs != nil && len(req.IDs) == 0 {
		refuse("ids", "hold none; give the ids of the original messages, or leave ids out for all")
	}
	if slices.Contains(req.IDs, "") {
		refuse("ids", "hold an empty one; give the ids of the original messages")
	}
	return bad
}
