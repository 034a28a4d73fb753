package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// quietFor is the least time between two lines of one kind.
const quietFor = time.Second

// quiet logs what callers can cause at will: one line a second of each kind, with the number of
// requests, so that callers cannot flood the log.
type quiet struct {
	log *slog.Logger

	mu    sync.Mutex
	kinds map[kindOfLine]*line
}

// kindOfLine says which requests share a line. There are at most as many kinds as the API has
// paths and statuses.
type kindOfLine struct {
	message, pattern string
	status           int
}

type line struct {
	sometimes rate.Sometimes
	requests  int // since the last line
}

// request logs a request that gets a status because of err, now or with a later one.
func (q *quiet) request(ctx context.Context, level slog.Level, message string, r *http.Request, status int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	kind := kindOfLine{message, r.Pattern, status}
	l := q.kinds[kind]
	if l == nil {
		l = &line{sometimes: rate.Sometimes{Interval: quietFor}}
		q.kinds[kind] = l
	}
	l.requests++
	l.sometimes.Do(func() {
		q.log.Log(ctx, level, message, slog.String("path", r.URL.EscapedPath()), slog.Int("status", status),
			slog.String("remote", r.RemoteAddr), slog.Any("err", err), slog.Int("requests", l.requests))
		l.requests = 0
	})
}
