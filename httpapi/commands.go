package httpapi

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
)

// A command whose answer was lost may be sent again: see operator.Changed.

// changeRequest is the body of a command about one entity.
type changeRequest struct {
	Reason string `json:"reason" doc:"Why, for the audit." example:"address in doubt"`
}

func (c *changeRequest) check() []ParameterProblem {
	if err := operator.CheckReason(c.Reason); err != nil {
		return []ParameterProblem{{"reason", err.Error()}}
	}
	return nil
}

func (c *changeRequest) reason() string { return c.Reason }

// reasoned is the body of a command with a reason for the audit.
type reasoned interface {
	body
	reason() string
}

// changing answers POST /api/v1/{collection}/{id}/{command} with the entity as it
// is after the command.
func changing[ID ~string, D, J any](a *API, command string, form func(D) J,
	do func(operator.Commands, context.Context, ID, string) (operator.Changed[D], error)) answer {
	return changingTo(a, command, form, func(c operator.Commands, ctx context.Context, id ID, req *changeRequest) (operator.Changed[D], error) {
		return do(c, ctx, id, req.Reason)
	})
}

// changingTo is changing for a command whose body holds more than a reason.
func changingTo[ID ~string, D, J any, B reasoned](a *API, command string, form func(D) J,
	do func(operator.Commands, context.Context, ID, B) (operator.Changed[D], error)) answer {
	return writes(func(ctx context.Context, r *request) (now J, err error) {
		req := r.body.(B)
		commands := a.operator
		commands.By = callerOf(ctx).Name
		changed, err := do(commands, ctx, ID(r.id()), req)
		a.record(ctx, err, slog.String("operator", commands.By), slog.String("command", command), slog.String("id", r.id()),
			slog.String("reason", req.reason()), slog.Bool("already", changed.Already))
		if err != nil {
			return now, rejected(err)
		}
		return form(changed.Now), nil
	})
}

// priorityRequest is the body of a command that changes an order's priority.
type priorityRequest struct {
	changeRequest
	Priority string `json:"priority" doc:"STANDARD, HIGH or CRITICAL." example:"CRITICAL"`
}

func (p *priorityRequest) check() []ParameterProblem {
	bad := p.changeRequest.check()
	if _, ok := domain.ParsePriority(p.Priority); !ok {
		bad = append(bad, ParameterProblem{"priority", fmt.Sprintf("is %.64q; give one of %v", p.Priority, domain.Priorities)})
	}
	return bad
}

func setPriority(c operator.Commands, ctx context.Context, id domain.OrderID, req *priorityRequest) (operator.Changed[domain.Order], error) {
	p, _ := domain.ParsePriority(req.Priority) // check refuses others
	return c.SetPriority(ctx, id, p, req.Reason)
}

// deadlineRequest is the body of a command that changes an order's deadline.
type deadlineRequest struct {
	changeRequest
	Deadline string `json:"deadline" doc:"Latest useful delivery, in the future (RFC 3339)." example:"2099-11-21T12:00:00Z"`
}

func (d *deadlineRequest) check() []ParameterProblem {
	bad := d.changeRequest.check()
	if _, err := time.Parse(time.RFC3339, d.Deadline); err != nil {
		bad = append(bad, ParameterProblem{"deadline", fmt.Sprintf("is %.64q; give a time such as 2026-11-21T12:00:00Z", d.Deadline)})
	}
	return bad
}

func setDeadline(c operator.Commands, ctx context.Context, id domain.OrderID, req *deadlineRequest) (operator.Changed[domain.Order], error) {
	at, err := time.Parse(time.RFC3339, req.Deadline)
	if err != nil {
		return operator.Changed[domain.Order]{}, err
	}
	return c.SetDeadline(ctx, id, at, req.Reason)
}

// droneRequest is the body of a command about an order and a drone.
type droneRequest struct {
	changeRequest
	DroneID string `json:"droneId" example:"D1"`
}

func (d *droneRequest) check() []ParameterProblem {
	bad := d.changeRequest.check()
	if err := domain.CheckID(d.DroneID); err != nil {
		bad = append(bad, ParameterProblem{"droneId", err.Error()})
	}
	return bad
}

// forDrone is a command about an order and the drone that the body names.
func forDrone(do func(operator.Commands, context.Context, domain.OrderID, domain.DroneID, string) (operator.Changed[domain.Order], error),
) func(operator.Commands, context.Context, domain.OrderID, *droneRequest) (operator.Changed[domain.Order], error) {
	return func(c operator.Commands, ctx context.Context, id domain.OrderID, req *droneRequest) (operator.Changed[domain.Order], error) {
		return do(c, ctx, id, domain.DroneID(req.DroneID), req.Reason)
	}
}

// acknowledgeRequest is the body of a command that acknowledges an alert.
type acknowledgeRequest struct {
	changeRequest
	ID string `json:"id" doc:"The alert's, as the stream gives it." example:"CRITICAL_LATE:O2"`
}

func (q *acknowledgeRequest) check() []ParameterProblem {
	bad := q.changeRequest.check()
	if err := domain.CheckAlertID(q.ID); err != nil {
		bad = append(bad, ParameterProblem{"id", err.Error()})
	}
	return bad
}

// acknowledge answers POST /api/v1/alerts/acknowledge with the acknowledgement.
//
// Cost: see operator.Commands.AcknowledgeAlert.
func (a *API) acknowledge(ctx context.Context, r *request) (entity.AlertAck, error) {
	req := r.body.(*acknowledgeRequest)
	commands := a.operator
	commands.By = callerOf(ctx).Name
	ack, err := commands.AcknowledgeAlert(ctx, req.ID, req.Reason)
	a.record(ctx, err, slog.String("operator", commands.By), slog.String("command", "alerts acknowledge"), slog.String("id", req.ID),
		slog.String("reason", req.Reason), slog.Bool("already", ack.Already))
	return entity.OfAlertAck(ack.Now), err
}

// record logs a command: who sent it, what it was about and how it ended.
func (a *API) record(ctx context.Context, err error, attrs ...slog.Attr) {
	if err != nil {
		attrs = append(attrs, slog.Any("err", err))
	}
	a.log.LogAttrs(ctx, slog.LevelInfo, "operator's command", attrs...)
}

// rejected turns a policy's rejection of a command into a problem.
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

// lettersRequest selects dead letters. An absent field narrows nothing; an empty one is
// refused, because it usually comes from a variable that was not set.
type lettersRequest struct {
	Topic  *string  `json:"topic,omitempty" doc:"The original messages' topic: telemetry, orders or decisions."`
	Reason *string  `json:"reason,omitempty" doc:"Why the messages were refused, such as INVALID."`
	IDs    []string `json:"ids,omitempty" doc:"The original messages' ids, at most 1000." example:"[\"4711\"]"`
	Limit  int      `json:"limit,omitempty" doc:"The largest number of letters, oldest first; 0 means all."`
	DryRun bool     `json:"dryRun,omitempty" doc:"Only show what would be done."`
}

// maxLetterIDs bounds the messages that one request names.
const maxLetterIDs = 1000

// replayRequest is the body of a replay, which must select letters or say that it means
// all. A dry run changes nothing and may list all without saying so.
type replayRequest struct {
	lettersRequest
	All bool `json:"all,omitempty" doc:"Every letter is meant; not together with ids, topic or reason."`
}

func (p *replayRequest) check() []ParameterProblem {
	bad := p.lettersRequest.check()
	if err := p.filter().CheckAll(); err != nil && (p.All || p.IDs == nil && !p.DryRun) {
		bad = append(bad, ParameterProblem{"all", err.Error()})
	}
	return bad
}

func (p *replayRequest) filter() operator.LetterFilter {
	f := p.lettersRequest.filter()
	f.All = p.All
	return f
}

// replay answers POST /api/v1/deadletters/replay. Ids that are not found are
// listed as missing: a caller that repeats a request whose answer was lost sees
// that everything is done. When a replay fails after some letters, the problem
// lists those too.
//
// Cost: Pub/Sub, 4 RPCs per topic and 2 per 200 letters; Firestore, 1 RPC and 1
// write per letter.
func (a *API) replay(ctx context.Context, r *request) (operator.LetterList, error) {
	req := r.body.(*replayRequest)
	done, settled, err := a.settle(ctx, req.filter(), req.DryRun, "deadletters replay", operator.Replaying, operator.Commands.ReplayDeadLetters)
	if err != nil && settled > 0 {
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

func (d *discardRequest) check() []ParameterProblem {
	bad := d.lettersRequest.check()
	if err := d.filter().CheckChoice(); err != nil && d.IDs == nil {
		bad = append(bad, ParameterProblem{"ids", err.Error()})
	}
	if err := operator.CheckReason(d.Why); err != nil {
		bad = append(bad, ParameterProblem{"why", err.Error()})
	}
	return bad
}

// discard answers POST /api/v1/deadletters/discard as replay does.
//
// Cost: Pub/Sub, 4 RPCs per topic and 1 per 200 letters; Firestore, 1 RPC and 1
// write per letter.
func (a *API) discard(ctx context.Context, r *request) (operator.LetterList, error) {
	req := r.body.(*discardRequest)
	done, settled, err := a.settle(ctx, req.filter(), req.DryRun, "deadletters discard", operator.Discarding,
		func(c operator.Commands, ctx context.Context, f operator.LetterFilter) (operator.Letters, error) {
			return c.DiscardDeadLetters(ctx, f, req.Why)
		}, slog.String("why", req.Why))
	if err != nil && settled > 0 {
		p := asProblem(err)
		p.Discard = &done
		err = p
	}
	return done, err
}

// settle does an operator's work on dead letters, or only shows them.
func (a *API) settle(ctx context.Context, filter operator.LetterFilter, dryRun bool, command string, settling operator.Settling,
	work func(operator.Commands, context.Context, operator.LetterFilter) (operator.Letters, error), attrs ...slog.Attr) (done operator.LetterList, settled int, err error) {
	commands := a.operator
	commands.By = callerOf(ctx).Name
	if dryRun {
		work = operator.Commands.DeadLetters
	}
	letters, err := work(commands, ctx, filter)
	a.record(ctx, err, append([]slog.Attr{slog.String("operator", commands.By), slog.String("command", command),
		slog.Bool("dry_run", dryRun), slog.Int(string(settling), letters.Settled)}, attrs...)...)
	done = settling.Done(letters)
	done.Missing = entity.OrEmpty(letters.Missing)
	return done, letters.Settled, err
}

func (req lettersRequest) filter() operator.LetterFilter {
	return operator.LetterFilter{Topic: textOf(req.Topic), Reason: textOf(req.Reason), IDs: req.IDs, Limit: req.Limit, Partial: true}
}

// textOf is a text, empty if it is absent.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func (req lettersRequest) check() (bad []ParameterProblem) {
	refuse := func(name, format string, args ...any) {
		bad = append(bad, ParameterProblem{name, fmt.Sprintf(format, args...)})
	}
	if req.Topic != nil && !slices.Contains(pubsubio.InboundTopics, *req.Topic) {
		refuse("topic", "is %.64q; give %s", *req.Topic, oneOf(pubsubio.InboundTopics))
	}
	if req.Reason != nil && *req.Reason == "" {
		refuse("reason", "is empty; give one such as INVALID, or leave reason out")
	}
	if req.Limit < 0 {
		refuse("limit", "is %d; give 0 or more", req.Limit)
	}
	if len(req.IDs) > maxLetterIDs {
		refuse("ids", "has %d entries; give at most %d", len(req.IDs), maxLetterIDs)
	}
	if req.IDs != nil && len(req.IDs) == 0 {
		refuse("ids", "is an empty list; give the ids of the original messages, or leave ids out")
	}
	if slices.Contains(req.IDs, "") {
		refuse("ids", "has an empty entry; give the ids of the original messages")
	}
	return bad
}

// breakRequest is the body of a command that breaks a lock.
type breakRequest struct {
	Key    string `json:"key" example:"optimizer:cycle:DEPOT-1"`
	Reason string `json:"reason" doc:"Why, for the audit." example:"the holder hangs"`
}

func (b *breakRequest) check() (bad []ParameterProblem) {
	if err := operator.CheckLockKey(b.Key); err != nil {
		bad = append(bad, ParameterProblem{"key", err.Error()})
	}
	if err := operator.CheckReason(b.Reason); err != nil {
		bad = append(bad, ParameterProblem{"reason", err.Error()})
	}
	return bad
}

// brokenLock is the answer of a command that breaks a lock.
type brokenLock struct {
	Broken bool       `json:"broken" doc:"False if nobody held the lock."`
	Lock   *lock.Info `json:"lock,omitempty" doc:"The lock as it was."`
}

// breakLock answers POST /api/v1/locks/break with the lock as it was; broken is
// false if nobody holds it.
//
// Cost: see operator.Commands.BreakLock.
func (a *API) breakLock(ctx context.Context, r *request) (brokenLock, error) {
	req := r.body.(*breakRequest)
	commands := a.operator
	commands.By = callerOf(ctx).Name
	broken, err := commands.BreakLock(ctx, req.Key, req.Reason)
	a.record(ctx, err, slog.String("operator", commands.By), slog.String("command", "locks break"), slog.String("key", req.Key),
		slog.String("reason", req.Reason), slog.Bool("broken", broken != nil))
	return brokenLock{broken != nil, broken}, lockProblem(err)
}

// lockProblem turns an error of the lock library into a problem.
func lockProblem(err error) error {
	if unusable, is := errors.AsType[*operator.KeyError](err); is {
		return badParameters([]ParameterProblem{{"key", unusable.Detail()}})
	}
	if errors.Is(err, lock.ErrServiceUnavailable) || errors.Is(err, lock.ErrNetworkTimeout) {
		return problem(http.StatusServiceUnavailable, "%s; try again", err)
	}
	return err
}

// publishRequest is the body of a command that publishes a message.
type publishRequest struct {
	changeRequest
	Topic       string            `json:"topic" doc:"telemetry, orders or decisions." example:"orders"`
	Text        *string           `json:"text,omitempty" doc:"The payload as text; or else give data." example:"{\"orderId\": \"O9\"}"`
	Data        encoded           `json:"data,omitempty" doc:"The payload in base64; or else give text."`
	OrderingKey string            `json:"orderingKey,omitempty" doc:"Messages of one key keep their order; default the drone of a report."`
	Attributes  map[string]string `json:"attributes,omitempty" doc:"Attributes of the message." example:"{\"content-type\": \"application/json\"}"`
}

func (p *publishRequest) check() []ParameterProblem {
	bad := p.changeRequest.check()
	if !slices.Contains(pubsubio.InboundTopics, p.Topic) {
		bad = append(bad, ParameterProblem{"topic", fmt.Sprintf("is %.64q; give %s", p.Topic, oneOf(pubsubio.InboundTopics))})
	}
	if _, err := p.Data.decode(); err != nil {
		bad = append(bad, ParameterProblem{"data", "is not base64; encode the payload as RFC 4648 says, or give it as text"})
	}
	switch {
	case p.Text != nil && p.Data != "":
		bad = append(bad, ParameterProblem{"text", "is given, and so is data; give one of them"})
	case len(textOf(p.Text))+len(p.Data) == 0:
		bad = append(bad, ParameterProblem{"text", "is empty, and so is data; give the payload in one of them"})
	}
	if err := operator.CheckOrderingKey(p.OrderingKey); err != nil {
		bad = append(bad, ParameterProblem{"orderingKey", err.Error()})
	}
	if err := operator.CheckAttributes(p.Attributes); err != nil {
		bad = append(bad, ParameterProblem{"attributes", err.Error()})
	}
	return bad
}

// encoded is data in base64, decoded where an error can name the field.
type encoded string

func (e encoded) decode() ([]byte, error) { return base64.StdEncoding.DecodeString(string(e)) }

// published is the answer of a command that publishes a message.
type published struct {
	Topic     string `json:"topic"`
	MessageID string `json:"messageId"`
}

// publish answers POST /api/v1/messages/publish with the message's id. The message is sent
// as it is: the State Manager judges it like any other. The log says who sent it.
//
// Cost: see operator.Commands.Publish.
func (a *API) publish(ctx context.Context, r *request) (published, error) {
	req := r.body.(*publishRequest)
	data, err := req.Data.decode()
	if err != nil {
		return published{}, err // checked
	}
	if req.Text != nil {
		data = []byte(*req.Text)
	}
	by := callerOf(ctx).Name
	id, err := a.operator.Publish(ctx, operator.Message{Topic: req.Topic, Data: data, OrderingKey: req.OrderingKey, Attributes: req.Attributes})
	a.record(ctx, err, slog.String("operator", by), slog.String("command", "messages publish"), slog.String("topic", req.Topic),
		slog.String("message_id", id), slog.String("reason", req.Reason))
	return published{req.Topic, id}, err
}
