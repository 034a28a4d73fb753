package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/live"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/input"
)

const (
	// replayMoments bounds the moments of one answer, and with them its reads and its memory.
	replayMoments = 10
	// replayEvents bounds the events of one answer: twice as many are read.
	replayEvents = 200
	// replayEvery is the default number of seconds between moments.
	replayEvery = 15
	// replaysAtOnce is how many replays a process reads at once.
	replaysAtOnce = 2
)

var (
	replayFrom = timeParameter("from", "The first moment.", true)
	replayTo   = timeParameter("to", "The end of the interval: the last moment is at or before it.", true)
	replayStep = parameter{
		name: "every", says: fmt.Sprintf("Seconds from one moment to the next; default %d.", replayEvery), example: 15, schema: schema{"type": "integer", "minimum": 1, "maximum": 3600},
		wrong: func(value string) string {
			if n, err := strconv.Atoi(value); err != nil || n < 1 || n > 3600 {
				return fmt.Sprintf("is %.64q; give a number of seconds from 1 to 3600", value)
			}
			return ""
		},
	}
)

// replayed is how the fleet went on in an interval.
type replayed struct {
	serverTime
	Moments   []replayMoment `json:"moments" doc:"In their order. Firestore no longer knows those that are missing."`
	Events    []replayEvent  `json:"events" doc:"What stands out in the interval, oldest first; at most 200, the latest ones."`
	Malformed []string       `json:"malformed,omitempty" doc:"Documents that cannot be decoded and are left out."`
}

// replayMoment is the fleet at a moment: whole, or as it differs from the moment before.
type replayMoment struct {
	ReadTime  time.Time        `json:"readTime"`
	Whole     bool             `json:"whole" doc:"The upserts are the whole fleet. So is the first moment of an answer."`
	Upserts   []pastEntity     `json:"upserts"`
	Deletes   []live.Key       `json:"deletes"`
	Positions []replayPosition `json:"positions" doc:"The drones of which nothing else has changed."`
}

// replayPosition is a row of a position as the stream has it.
type replayPosition []any

// schema implements described.
func (replayPosition) schema(*schemas) schema {
	return schema{"type": "array", "description": "Drone, latitude, longitude, battery in percent, status, and when it was measured in Unix ms.", "items": schema{"type": []string{"string", "number"}}, "minItems": 6, "maxItems": 6}
}

// remark is what makes an event stand out.
type remark string

const (
	remarkLate      remark = "ORDER_LATE"
	remarkSilent    remark = "DRONE_SILENT"
	remarkProblem   remark = "DRONE_PROBLEM"
	remarkEmergency remark = "DRONE_EMERGENCY"
	remarkFailed    remark = "MISSION_FAILED"
	remarkRecalled  remark = "MISSION_RECALLED"
	remarkOperator  remark = "OPERATOR"
)

var remarks = []remark{remarkLate, remarkSilent, remarkProblem, remarkEmergency, remarkFailed, remarkRecalled, remarkOperator}

// schema implements described.
func (remark) schema(*schemas) schema { return enum(remarks) }

// replayEvent is an event that stands out.
type replayEvent struct {
	At     time.Time `json:"at"`
	Kind   remark    `json:"kind" doc:"OPERATOR is what a person did beside recalls."`
	Entity live.Key  `json:"entity"`
	Text   string    `json:"text" doc:"What changed, in words."`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty" doc:"The person who caused it; absent for machines."`
}

// replay answers GET /api/v1/replay?from=&to=&every= with the fleet at a sequence of moments, as the
// stream would have shown it, and with the events that stand out. Alerts do not estimate how soon
// orders could have been delivered.
//
// Cost: for each moment that of firestoretx.Store.MovedAt; once that of PastSince instead; that of
// RemarkableEvents for 200 events.
func (a *API) replay(ctx context.Context, r *request) (answer replayed, err error) {
	from, _ := input.Time(r.value("from")) // checked, like the others
	to, _ := input.Time(r.value("to"))
	every := replayEvery
	if r.has("every") {
		every, _ = strconv.Atoi(r.value("every"))
	}
	step := time.Duration(every) * time.Second
	count := int(to.Sub(from)/step) + 1
	switch now := r.now(); {
	case to.Before(from):
		return answer, badParameter("to", "is before from; give a later time")
	case to.After(now):
		return answer, badParameter("to", "is in the future; give a time until %s", now.UTC().Format(time.RFC3339))
	case count > replayMoments:
		return answer, badParameter("to", "asks for %d moments; give a time at most %s after from, or a greater every", count, (replayMoments-1)*step)
	}
	select {
	case a.replaying <- struct{}{}:
		defer func() { <-a.replaying }()
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	}
	last, err := a.store.PastSince(ctx, from, from.Add(time.Duration(count-1)*step))
	if errors.Is(err, firestoretx.ErrNotKept) {
		return answer, problem(http.StatusGone, "%s; give a time within that, or enable point-in-time recovery of the database", err)
	}
	if err != nil {
		return answer, err
	}
	answer = replayed{serverTime: r.serverTime(), Moments: []replayMoment{}, Events: []replayEvent{}, Malformed: entity.Each(last.Malformed, error.Error)}
	show := sequence{since: map[string]time.Time{}}
	for i := range count - 1 {
		p, err := a.store.MovedAt(ctx, from.Add(time.Duration(i)*step))
		switch {
		case errors.Is(err, firestoretx.ErrNotKept):
			continue
		case err != nil:
			return answer, err
		case !p.ReadTime.Before(last.ReadTime), i > 0 && p.ReadTime.Equal(show.at):
			continue // Firestore knows whole minutes alone
		}
		p.Depots, p.Warehouses = last.Depots, last.Warehouses
		p.Cycles, p.Decisions = endedUntil(last, p.ReadTime)
		answer.Moments = append(answer.Moments, show.next(p, a.pastAlerts(p)))
	}
	last.Cycles, last.Decisions = endedUntil(last, last.ReadTime)
	answer.Moments = append(answer.Moments, show.next(last, a.pastAlerts(last)))
	found, err := a.store.RemarkableEvents(ctx, from, from.Add(time.Duration(count)*step), replayEvents)
	for _, e := range slices.Backward(found.Items[:min(len(found.Items), replayEvents)]) {
		if remarked, is := remarkOn(e); is {
			answer.Events = append(answer.Events, remarked)
		}
	}
	return answer, err
}

// pastAlerts are the alerts of a past moment, none in a process without a feed.
func (a *API) pastAlerts(p firestoretx.Past) []entity.Alert {
	if a.feed == nil {
		return nil
	}
	return a.feed.PastAlerts(p)
}

// endedUntil are the cycles of the past that had ended at a moment, with what had come of their decisions.
func endedUntil(p firestoretx.Past, at time.Time) (cycles []domain.Cycle, decisions []domain.LedgerEntry) {
	for _, c := range p.Cycles {
		if !c.EndedAt.After(at) && c.StartedAt.After(at.Add(-10*time.Minute)) {
			cycles = append(cycles, c)
		}
	}
	for _, d := range p.Decisions {
		if !d.AppliedAt.After(at) {
			decisions = append(decisions, d)
		}
	}
	return cycles, decisions
}

// sequence tells how moments differ.
type sequence struct {
	at    time.Time // of the moment before
	shown map[live.Key]any
	since map[string]time.Time // of alerts without a time of their own
}

// next is the next moment as it differs from the one before; the first is whole.
func (s *sequence) next(p firestoretx.Past, alerts []entity.Alert) replayMoment {
	for i, alert := range alerts {
		if alert.Since.Equal(p.ReadTime) {
			if _, known := s.since[alert.ID]; !known {
				s.since[alert.ID] = p.ReadTime.UTC()
			}
			alerts[i].Since = s.since[alert.ID]
		}
	}
	m := replayMoment{ReadTime: p.ReadTime.UTC(), Whole: s.shown == nil, Upserts: []pastEntity{}, Deletes: []live.Key{}, Positions: []replayPosition{}}
	now := map[live.Key]any{}
	for _, e := range append(entitiesOf(p), pastEntities(live.KindAlert, alerts, func(x entity.Alert) (string, any) { return x.ID, x })...) {
		key := live.Key{Kind: e.Kind, ID: e.ID}
		was, known := s.shown[key]
		now[key] = e.Entity
		is, flies := e.Entity.(entity.LiveDrone)
		switch {
		case !known, !flies && !reflect.DeepEqual(was, e.Entity), flies && !reflect.DeepEqual(parked(was.(entity.LiveDrone)), parked(is)):
			m.Upserts = append(m.Upserts, e)
		case flies && is.Position != nil && is.LastUpdate != nil && !reflect.DeepEqual(was, e.Entity):
			m.Positions = append(m.Positions, replayPosition{e.ID, is.Position.Lat, is.Position.Lon, is.BatteryPercentage, is.Status, is.LastUpdate.UnixMilli()})
		}
	}
	for key := range s.shown {
		if _, is := now[key]; !is {
			m.Deletes = append(m.Deletes, key)
		}
	}
	s.at, s.shown = p.ReadTime, now
	return m
}

// parked is a drone without what changes while it flies.
func parked(d entity.LiveDrone) entity.LiveDrone {
	d.Position, d.BatteryPercentage, d.SpeedKmh, d.FlightSeconds = nil, 0, 0, 0
	d.LastUpdate, d.SeenAt = nil, nil
	return d
}

// remarkOn says why an event stands out.
func remarkOn(e domain.Event) (replayEvent, bool) {
	shown := replayEvent{At: e.Time.UTC(), Entity: live.Key{Kind: live.Kind(e.Entity), ID: e.ID}, Text: operator.InWords(e), Reason: e.Reason, By: e.By}
	state := func(name string) bool { is, _ := e.State[name].(bool); return is }
	changed := e.From != e.To
	switch {
	case e.Entity == domain.EntityMission && e.Cause == domain.CauseOperator && state("recalled"):
		shown.Kind = remarkRecalled
	case e.Cause == domain.CauseOperator:
		shown.Kind = remarkOperator
	case e.Entity == domain.EntityOrder && e.Cause == domain.CauseSweeper && !changed && state("late"):
		shown.Kind = remarkLate
	case e.Entity == domain.EntityMission && changed && e.To == string(domain.MissionFailed):
		shown.Kind = remarkFailed
	case e.Entity == domain.EntityDrone && changed && e.To == string(domain.DroneUnknown):
		shown.Kind = remarkSilent
	case e.Entity == domain.EntityDrone && changed && e.To == string(domain.DroneProblem):
		shown.Kind = remarkProblem
	case e.Entity == domain.EntityDrone && changed && e.To == string(domain.DroneEmergency):
		shown.Kind = remarkEmergency
	default:
		return shown, false
	}
	return shown, true
}
