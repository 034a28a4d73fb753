package observe

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// Fields by which Cloud Logging links a log entry to its trace.
const (
	logTrace        = "logging.googleapis.com/trace"
	logSpanID       = "logging.googleapis.com/spanId"
	logTraceSampled = "logging.googleapis.com/trace_sampled"
)

// LogTraces returns a logger that adds the ids of the context's span, if there is one,
// to every record, under the names that Cloud Logging expects. project is the Google
// Cloud project of the traces; if it is empty, the bare trace id is logged. The fields
// are top-level as long as the logger has no open group.
func LogTraces(log *slog.Logger, project string) *slog.Logger {
	prefix := ""
	if project != "" {
		prefix = "projects/" + project + "/traces/"
	}
	return slog.New(traceHandler{log.Handler(), prefix})
}

type traceHandler struct {
	slog.Handler
	prefix string
}

func (h traceHandler) Handle(ctx context.Context, r slog.Record) error {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		r = r.Clone()
		r.AddAttrs(
			slog.String(logTrace, h.prefix+sc.TraceID().String()),
			slog.String(logSpanID, sc.SpanID().String()),
			slog.Bool(logTraceSampled, sc.IsSampled()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceHandler{h.Handler.WithAttrs(attrs), h.prefix}
}

func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name), h.prefix}
}
