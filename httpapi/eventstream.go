package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/dronefleet/dronefleet/app/live"
)

const (
	// streamEvery is the least time between two events of changes to one viewer.
	streamEvery = 250 * time.Millisecond
	// heartbeatAfter is how long a stream is silent before it says that it lives.
	heartbeatAfter = time.Second
	// streamPatience is how long a viewer may take to receive one event. One that is slower
	// is cut off and may resume.
	streamPatience = 30 * time.Second
	// entitiesAtOnce and positionsAtOnce bound one event.
	entitiesAtOnce  = 500
	positionsAtOnce = 5000
)

type connectionKey struct{}

// withConnection lets an answer outlive the time that requests have: connection ends
// with the client's connection only.
func withConnection(ctx, connection context.Context) context.Context {
	return context.WithValue(ctx, connectionKey{}, connection)
}

type streamingKey struct{}

// withStreaming ends the streams of a server when streaming ends.
func withStreaming(ctx, streaming context.Context) context.Context {
	return context.WithValue(ctx, streamingKey{}, streaming)
}

// eventStream writes a viewer's updates.
type eventStream struct {
	feed   *live.Feed
	viewer *live.Viewer
	// streaming ends when the server stops.
	streaming context.Context
	// until is when the viewer's credentials end; zero for never.
	until time.Time
	// still, if set, returns an error once the credentials have ended before that.
	still   func(context.Context) error
	control *http.ResponseController
	out     *bufio.Writer
	log     *slog.Logger
}

// run writes events until the connection, the server, the feed or the credentials end.
func (s *eventStream) run(connection context.Context) error {
	// A viewer who receives nothing must not hold up the server's end.
	defer context.AfterFunc(s.streaming, func() {
		_ = s.control.SetWriteDeadline(time.Now()) // an error if the connection is gone
	})()
	// The server's deadlines are those of a short request.
	if err := s.control.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if _, err := s.out.WriteString("retry: 1000\n\n"); err != nil {
		return err
	}
	if err := s.heartbeat(); err != nil {
		return err
	}
	ticker := time.NewTicker(streamEvery)
	defer ticker.Stop()
	spoke := time.Now()
	for {
		select {
		case <-connection.Done():
			return nil
		case <-s.streaming.Done():
			return nil
		case <-s.viewer.Ended():
			return nil
		case <-ticker.C:
		}
		if !s.until.IsZero() && !time.Now().Before(s.until) {
			return nil
		}
		if s.still != nil {
			// Credentials that cannot be checked end the stream too: the viewer may come back.
			if err := s.still(connection); err != nil {
				return err
			}
		}
		update := s.viewer.Next()
		var err error
		switch {
		case !update.Empty():
			err = s.update(update)
		case time.Since(spoke) < heartbeatAfter:
			continue
		default:
			err = s.heartbeat()
		}
		if err != nil {
			return err
		}
		spoke = time.Now()
	}
}

// event writes one event: its data is the opening, an object's fields, then what more
// writes.
func (s *eventStream) event(name, id string, opening map[string]any, more func() error) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(streamPatience)); err != nil {
		return err
	}
	if err := s.streaming.Err(); err != nil { // its deadline may have come before this one
		return err
	}
	data, err := json.Marshal(opening)
	if err != nil {
		return err
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	fmt.Fprintf(s.out, "event: %s\n%sdata: %s", name, id, data[:len(data)-1]) // a failure of out is kept until Flush
	if err := more(); err != nil {
		return err
	}
	if _, err := s.out.WriteString("}\n\n"); err != nil {
		return err
	}
	if err := s.out.Flush(); err != nil {
		return err
	}
	return s.control.Flush()
}

func (s *eventStream) opening() map[string]any {
	return map[string]any{"serverTime": s.feed.Now().UTC().Truncate(time.Millisecond)}
}

// news opens an event that says how current the feed is.
func (s *eventStream) news() map[string]any {
	o := s.opening()
	o["feedDelayMs"] = s.viewer.Delay().Milliseconds()
	return o
}

func (s *eventStream) heartbeat() error {
	return s.event("heartbeat", "", s.news(), func() error { return nil })
}

// update writes an update as one or more events. Only the last one has the id, so that a
// viewer that missed a part gets all of it again.
func (s *eventStream) update(u live.Update) error {
	if u.Resync != "" {
		if err := s.event("resync", "", map[string]any{"reason": u.Resync}, func() error { return nil }); err != nil {
			return err
		}
	}
	for first := true; first || len(u.Upserts)+len(u.Deletes)+len(u.Positions) > 0; first = false {
		part := u
		part.Upserts, u.Upserts = cut(u.Upserts, entitiesAtOnce)
		last := len(u.Upserts) == 0
		if u.Snapshot {
			part.Deletes, part.Positions = nil, nil
			if !last || len(u.Positions) > 0 {
				part.ID = ""
			}
			if err := s.snapshot(part, last); err != nil {
				return err
			}
			u.Snapshot = !last
			continue
		}
		part.Deletes, u.Deletes = cut(u.Deletes, entitiesAtOnce)
		// Positions come after the drones that they are of.
		if part.Positions = nil; last {
			part.Positions, u.Positions = cut(u.Positions, positionsAtOnce)
		}
		if len(u.Upserts)+len(u.Deletes)+len(u.Positions) > 0 {
			part.ID = ""
		}
		if err := s.changes(part); err != nil {
			return err
		}
	}
	return nil
}

// cut takes the first n of a list.
func cut[T any](list []T, n int) (first, rest []T) {
	n = min(n, len(list))
	return list[:n], list[n:]
}

func (s *eventStream) snapshot(u live.Update, last bool) error {
	o := s.opening()
	o["last"] = last
	if u.Within != nil {
		o["areas"] = u.Within
	}
	if !u.ReadTime.IsZero() {
		o["readTime"] = u.ReadTime.UTC()
	}
	return s.event("snapshot", u.ID, o, func() error { return s.entities("entities", u.Upserts) })
}

func (s *eventStream) changes(u live.Update) error {
	o := s.news()
	if len(u.Deletes) > 0 {
		o["deletes"] = u.Deletes
	}
	return s.event("changes", u.ID, o, func() error {
		if len(u.Positions) > 0 {
			rows := make([][]byte, len(u.Positions))
			for i, p := range u.Positions {
				rows[i] = p.JSON()
			}
			fmt.Fprintf(s.out, `,"positions":[%s]`, bytes.Join(rows, []byte(",")))
		}
		return s.entities("upserts", u.Upserts)
	})
}

// entities writes a field with a list of entities; one that cannot be encoded is left
// out.
func (s *eventStream) entities(field string, versions []*live.Version) error {
	fmt.Fprintf(s.out, `,%q:[`, field)
	comma := ""
	for _, v := range versions {
		data, err := v.JSON()
		if err == nil {
			var id []byte
			if id, err = json.Marshal(v.ID); err == nil {
				fmt.Fprintf(s.out, `%s{"kind":%q,"id":%s,"entity":%s}`, comma, v.Kind, id, data)
				comma = ","
				continue
			}
		}
		s.log.Error("entity left out of the stream", slog.String("kind", string(v.Kind)), slog.String("id", v.ID), slog.Any("err", err))
	}
	_, err := s.out.WriteString("]")
	return err
}
