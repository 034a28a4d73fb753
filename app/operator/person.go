package operator

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

// SubjectPerson is a person who changed the fleet. It is not a Subject, because a person has no
// document: AuditPerson and PersonStory tell what they did.
const SubjectPerson = "person"

// PersonPeriod is how far back a person's story begins by default.
const PersonPeriod = 24 * time.Hour

// PersonJSON is what a person did in a period.
type PersonJSON struct {
	Person    string         `json:"person"`
	From      time.Time      `json:"from"`
	To        time.Time      `json:"to"`
	Steps     []StepJSON     `json:"steps" doc:"Everything that the person did, in words, oldest first."`
	Events    []entity.Event `json:"events" doc:"The changes of drones, orders and missions among it."`
	Malformed []string       `json:"malformed,omitempty" doc:"Documents that cannot be decoded and are left out."`
}

// PersonStory tells what a person did in a period: changes of drones, orders, missions and places,
// maintenance, dead letters, broken locks, acknowledged alerts and API keys. A zero end is now, and a zero
// begin is a day before the end.
//
// Cost: see firestoretx.Store.DeedsOf.
func (c Commands) PersonStory(ctx context.Context, name string, from, to time.Time) (PersonJSON, error) {
	if err := ofField("name", CheckBy(name)); err != nil {
		return PersonJSON{}, err
	}
	if to.IsZero() {
		to = c.Store.Now()
	}
	if from.IsZero() {
		from = to.Add(-PersonPeriod)
	}
	if !from.Before(to) {
		return PersonJSON{}, ofField("from", fmt.Errorf("is %s, not before the end of the period, %s; give an earlier time", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339)))
	}
	d, err := c.Store.DeedsOf(ctx, name, from, to)
	if err != nil {
		return PersonJSON{}, err
	}
	p := PersonJSON{Person: name, From: from.UTC(), To: to.UTC(), Steps: stepsOf(d), Malformed: entity.Each(d.Malformed, error.Error)}
	p.Events = entity.OrEmpty(entity.Each(d.Events, entity.OfEvent))
	for i := range p.Steps {
		p.Steps[i].By = "" // the same in all
	}
	return p, nil
}

// stepsOf puts into words what people did, oldest first. It sorts the events.
func stepsOf(d firestoretx.Deeds) []StepJSON {
	steps := []StepJSON{}
	add := func(at time.Time, by, what, why, related string) {
		why = strings.TrimSuffix(why, " (by "+by+")")
		steps = append(steps, StepJSON{At: at.UTC(), Cause: string(domain.CauseOperator), What: what + prefixed(" because ", oneLine(why)), Related: related, By: by})
	}
	sortEvents(d.Events)
	for _, e := range d.Events {
		add(e.Time, e.By, InWords(e), e.Reason, story{}.related(e))
	}
	for _, x := range d.Places {
		add(x.ChangedAt, x.ChangedBy, fmt.Sprintf("%s %s: %s", x.Kind, x.ID, strings.ToLower(string(x.Action))), x.Why, strings.Join(x.Fields, "; "))
	}
	for _, m := range d.Maintenance {
		add(m.At, m.By, fmt.Sprintf("drone %s: maintenance of %s", m.DroneID, m.Item), m.Why, "")
	}
	for _, x := range d.Discards {
		add(x.DiscardedAt, x.DiscardedBy, fmt.Sprintf("message %s of %s: discarded, refused as %s", x.MessageID, x.Topic, x.Reason), x.Why, "")
	}
	for _, r := range d.Replays {
		add(r.ReplayedAt, r.ReplayedBy, fmt.Sprintf("message %s of %s: replayed as %s, refused as %s", r.MessageID, r.Topic, joined(r.NewMessageIDs), r.Reason), "", "")
	}
	for _, b := range d.LockBreaks {
		add(b.BrokenAt, b.BrokenBy, fmt.Sprintf("lock %s: broken, fence %s", b.Key, b.Fence), b.Why, "")
	}
	for _, a := range d.AlertAcks {
		add(a.At, a.By, fmt.Sprintf("alert %s: acknowledged", a.ID), a.Reason, "")
	}
	for _, k := range d.KeysMade {
		add(k.CreatedAt, k.CreatedBy, fmt.Sprintf("%s: made for role %s, expires %s", k.Name(), k.Role, k.ExpiresAt.UTC().Format(time.RFC3339)), k.Why, "")
	}
	for _, k := range d.KeysRevoked {
		add(k.RevokedAt, k.RevokedBy, k.Name()+": revoked", k.RevokedWhy, "")
	}
	slices.SortStableFunc(steps, func(a, b StepJSON) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	return steps
}

// InWords is what an event changed, without its reason.
func InWords(e domain.Event) string {
	return fmt.Sprintf("%s %s: %s", e.Entity, e.ID, change(e, unset(e.State)))
}

// Done is what people did in a period, and the alerts that they took note of.
type Done struct {
	Steps     []StepJSON
	Events    []domain.Event // the changes of drones, orders and missions among it
	Acks      []domain.AlertAck
	Malformed []error
}

// Done tells what people did in a period.
//
// Cost: see firestoretx.Store.DeedsOf.
func (c Commands) Done(ctx context.Context, from, to time.Time) (Done, error) {
	d, err := c.Store.DeedsOf(ctx, "", from, to)
	return Done{stepsOf(d), d.Events, d.AlertAcks, d.Malformed}, err
}

// unset is the state before the first event: each field has its zero value. It leaves out the hash
// of the content, which means nothing to people.
func unset(state map[string]any) map[string]any {
	before := map[string]any{"deadline": ""}
	for name, value := range state {
		before[name] = value
		if value != nil && name != "contentHash" {
			before[name] = reflect.Zero(reflect.TypeOf(value)).Interface()
		}
	}
	return before
}

// AuditPerson prints what a person did; see PersonStory.
func (d *Desk) AuditPerson(ctx context.Context, name string, from, to time.Time) error {
	p, err := d.Commands.PersonStory(ctx, name, from, to)
	if err != nil {
		return err
	}
	if d.JSON {
		return d.printJSON(p)
	}
	if len(p.Steps) == 0 {
		d.say("Nothing that %s did is recorded from %s to %s UTC. Names are case-sensitive, as in the field by.", p.Person, stamp(p.From), stamp(p.To))
	} else {
		d.say("What %s did from %s to %s UTC:", p.Person, stamp(p.From), stamp(p.To))
		t := d.table("TIME (UTC)", "WHAT HAPPENED")
		for _, s := range p.Steps {
			t.row(stamp(s.At), s.What)
			if s.Related != "" {
				t.continued(1, s.Related)
			}
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	for _, text := range p.Malformed {
		d.say("Left out: %s", text)
	}
	return nil
}
