package httpapi

import (
	"context"
	"log/slog"
	"strings"

	"github.com/dronefleet/dronefleet/app/operator"
)

// command is an operator's command while it is carried out. One whose answer was lost may be
// sent again: see operator.Changed.
type command struct {
	operator.Commands        // in the caller's name
	id                string // of the entity that the path names, if it names one
	notes             []slog.Attr
}

// note adds to what the log says about the command.
func (c *command) note(attrs ...slog.Attr) { c.notes = append(c.notes, attrs...) }

// operates answers every operator's command: do carries it out in the caller's name, and the log
// says who sent it, what it was about and how it ended.
func operates[T, B any, P interface {
	*B
	body
}](a *API, do func(context.Context, *command, P) (T, error)) answer {
	return answer{
		body: func() body { return P(new(B)) },
		do: func(ctx context.Context, r *request) (any, error) {
			c := &command{Commands: a.operator, id: r.id()}
			c.By = callerOf(ctx).Name
			done, err := do(ctx, c, r.body.(P))
			attrs := append([]slog.Attr{slog.String("operator", c.By), slog.String("command", verbOf(r.Method, r.path))}, c.notes...)
			if err != nil {
				attrs = append(attrs, slog.Any("err", err))
			}
			a.log.LogAttrs(ctx, slog.LevelInfo, "operator's command", attrs...)
			return done, err
		},
		shape: jsonOf[T],
	}
}

// changeRequest is the body of a command about one entity.
type changeRequest struct {
	Reason string `json:"reason" doc:"Why, for the audit." example:"address in doubt"`
}

func (c *changeRequest) check(bad *problems) { bad.addError("reason", operator.CheckReason(c.Reason)) }

// changes is the answer of a command about one entity that needs no more than a reason.
func changes[ID ~string, D, J any](a *API, do func(operator.Commands, context.Context, ID, string) (operator.Changed[D], error), form func(D) J) answer {
	return operates(a, func(ctx context.Context, c *command, req *changeRequest) (J, error) {
		changed, err := do(c.Commands, ctx, ID(c.id), req.Reason)
		return after(c, req.Reason, changed, err, form)
	})
}

// after answers a command about one entity with the entity as it is now.
func after[D, J any](c *command, reason string, changed operator.Changed[D], err error, form func(D) J) (now J, _ error) {
	c.note(slog.String("id", c.id), slog.String("reason", reason), slog.Bool("already", changed.Already))
	if err != nil {
		return now, err
	}
	return form(changed.Now), nil
}

// verbOf names the verb of a route: "orders hold" for POST /api/v1/orders/{id}/hold.
func verbOf(method, path string) string {
	switch method + " " + path {
	case "POST /api/v1/orders":
		return "orders place"
	case "PATCH /api/v1/orders/{id}":
		return "orders change"
	case "POST /api/v1/dev/incidents/{id}":
		return "dev incidents start"
	}
	return strings.NewReplacer("/api/v1/", "", "/{id}/", " ", "/", " ").Replace(path)
}
