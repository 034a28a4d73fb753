package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

// Subject is a kind of entity that Audit can print.
type Subject string

const (
	SubjectDrone    Subject = "drone"
	SubjectOrder    Subject = "order"
	SubjectMission  Subject = "mission"
	SubjectDecision Subject = "decision"
	SubjectCycle    Subject = "cycle"

	SubjectDepot     Subject = "depot"
	SubjectWarehouse Subject = "warehouse"
)

// Subjects lists every Subject.
var Subjects = []Subject{SubjectDrone, SubjectOrder, SubjectMission, SubjectDecision, SubjectCycle, SubjectDepot, SubjectWarehouse}

// story is everything recorded about one entity: its current state, the events that name
// it, and the decisions made about it.
type story struct {
	subject Subject
	id      string

	drone    *domain.Drone
	order    *domain.Order
	waits    []domain.Wait // why the order waits
	mission  *domain.Mission
	decision *domain.LedgerEntry
	cycle    *domain.Cycle

	depot     *domain.Depot
	warehouse *domain.Warehouse
	changes   []domain.PlaceChange // of the place or the drone's registration, in order
	users     []string             // who needs the place now

	events []domain.Event       // in order
	ledger []domain.LedgerEntry // in the order of their outcome

	malformed []error // documents that cannot be decoded and are left out
}

// tell reads the story of an entity. If its document is missing or malformed, the events still show
// its state, so that it can be repaired.
//
// Cost: 3 or 4 RPCs; a read per event, decision and change that names the entity. For an order
// that waits, 1 + D RPCs and 2 D reads more for D depots.
func (c Commands) tell(ctx context.Context, subject Subject, id string) (story, error) {
	s := story{subject: subject, id: id}
	if err := checkID(string(subject), id); err != nil {
		return s, err
	}
	if err := s.without(c.readSubject(ctx, &s)); err != nil {
		return s, err
	}
	if subject == SubjectDepot || subject == SubjectWarehouse {
		return s, c.readPlaceHistory(ctx, &s)
	}
	events, err := c.Store.EventsOf(ctx, string(subject)+"Id", id)
	if err != nil {
		return s, err
	}
	s.events, s.malformed = events.Items, append(s.malformed, events.Malformed...)
	sortEvents(s.events)
	if err := c.readLedger(ctx, &s); err != nil {
		return s, err
	}
	if subject == SubjectDrone {
		changes, err := c.Store.ChangesOf(ctx, domain.PlaceDrone, id)
		if err != nil {
			return s, err
		}
		s.changes, s.malformed = changes.Items, append(s.malformed, changes.Malformed...)
	}
	if s.drone == nil && s.order == nil && s.mission == nil && s.decision == nil && s.cycle == nil && len(s.events) == 0 && len(s.ledger) == 0 && len(s.malformed) == 0 {
		return s, fmt.Errorf("nothing is recorded about %s %q: %w", subject, id, firestoretx.ErrNotFound)
	}
	return s, nil
}

// readPlaceHistory reads what changed a place, and who needs it now.
//
// Cost: 2 RPCs; a read per change, and per drone at home there or active mission.
func (c Commands) readPlaceHistory(ctx context.Context, s *story) error {
	changes, err := c.Store.ChangesOf(ctx, domain.PlaceKind(s.subject), s.id)
	if err != nil {
		return err
	}
	s.changes, s.malformed = changes.Items, append(s.malformed, changes.Malformed...)
	if s.subject == SubjectDepot {
		s.users, err = c.Store.DepotUsers(ctx, domain.DepotID(s.id))
	} else {
		s.users, err = c.Store.WarehouseUsers(ctx, domain.WarehouseID(s.id))
	}
	if err == nil && s.depot == nil && s.warehouse == nil && len(s.changes)+len(s.users)+len(s.malformed) == 0 {
		return fmt.Errorf("nothing is recorded about %s %q: %w", s.subject, s.id, firestoretx.ErrNotFound)
	}
	return err
}

// without keeps an error about a malformed document in the story, and returns any other.
func (s *story) without(err error) error {
	if _, is := errors.AsType[*firestoretx.MalformedError](err); is {
		s.malformed = append(s.malformed, err)
		return nil
	}
	return err
}

// readSubject reads the entity's current state, and the mission of a decision.
func (c Commands) readSubject(ctx context.Context, s *story) error {
	var err error
	switch s.subject {
	case SubjectDrone:
		s.drone, err = found(c.Store.Drone(ctx, domain.DroneID(s.id)))
	case SubjectOrder:
		if s.order, err = found(c.Store.Order(ctx, domain.OrderID(s.id))); err == nil && s.order != nil {
			err = c.readWaits(ctx, s)
		}
	case SubjectMission:
		s.mission, err = found(c.Store.Mission(ctx, domain.MissionID(s.id)))
	case SubjectDecision:
		if s.decision, err = found(c.Store.LedgerEntry(ctx, domain.DecisionID(s.id))); err == nil && s.decision != nil && s.decision.MissionID != "" {
			s.mission, err = found(c.Store.Mission(ctx, s.decision.MissionID))
		}
	case SubjectCycle:
		s.cycle, err = found(c.Store.Cycle(ctx, domain.CycleID(s.id)))
	case SubjectDepot:
		s.depot, err = found(c.Store.Depot(ctx, domain.DepotID(s.id)))
	case SubjectWarehouse:
		s.warehouse, err = found(c.Store.Warehouse(ctx, domain.WarehouseID(s.id)))
	default:
		err = fmt.Errorf("unknown kind %q; give one of %v", s.subject, Subjects)
	}
	return err
}

// readWaits reads why the order waits, if it does.
func (c Commands) readWaits(ctx context.Context, s *story) error {
	waits, malformed, err := c.waitsOf(ctx, *s.order)
	s.waits, s.malformed = waits.Of(*s.order), append(s.malformed, malformed...)
	return err
}

// found returns nil for a missing entity.
func found[T any](v T, err error) (*T, error) {
	if errors.Is(err, firestoretx.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// readLedger reads the decisions about the entity, including rejected ones, which explain why
// nothing happened.
func (c Commands) readLedger(ctx context.Context, s *story) error {
	var filter firestoretx.LedgerFilter
	switch s.subject {
	case SubjectDrone:
		filter.Drone = domain.DroneID(s.id)
	case SubjectOrder:
		filter.Order = domain.OrderID(s.id)
	case SubjectCycle:
		filter.Cycle = domain.CycleID(s.id)
	case SubjectDecision:
		if s.decision != nil {
			s.ledger = []domain.LedgerEntry{*s.decision}
		}
		return nil
	case SubjectDepot, SubjectWarehouse:
		return nil // no decision names them as its subject
	case SubjectMission:
		if s.mission == nil || s.mission.DecisionID == "" {
			return nil
		}
		entry, err := found(c.Store.LedgerEntry(ctx, s.mission.DecisionID))
		if entry != nil {
			s.ledger = []domain.LedgerEntry{*entry}
		}
		return s.without(err)
	}
	l, err := c.Store.ListLedger(ctx, filter, firestoretx.Page{})
	s.ledger = l.Items
	slices.SortStableFunc(s.ledger, func(a, b domain.LedgerEntry) int { return a.AppliedAt.Compare(b.AppliedAt) })
	s.malformed = append(s.malformed, l.Malformed...)
	return err
}

// sortEvents sorts events by when they happened. Revisions order the events of one entity, whatever
// the clocks; times order those of different entities.
func sortEvents(events []domain.Event) {
	type entity struct {
		kind domain.EntityKind
		id   string
	}
	slices.SortStableFunc(events, func(a, b domain.Event) int { return cmp.Compare(a.Revision, b.Revision) })
	latest := map[entity]time.Time{}
	type dated struct {
		domain.Event
		at time.Time
	}
	all := make([]dated, len(events))
	for i, e := range events {
		all[i] = dated{e, e.Time}
		if e.Revision == 0 {
			continue // a note has no state, so it has no place among the revisions
		}
		key := entity{e.Entity, e.ID}
		if before := latest[key]; before.After(e.Time) {
			all[i].at = before
		}
		latest[key] = all[i].at
	}
	slices.SortStableFunc(all, func(a, b dated) int {
		// Within one transaction: the mission, then drone and orders.
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(rank[a.Entity], rank[b.Entity]), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Revision, b.Revision))
	})
	for i := range all {
		events[i] = all[i].Event
	}
}

// rank orders the events of one transaction.
var rank = map[domain.EntityKind]int{domain.EntityMission: 1, domain.EntityDrone: 2, domain.EntityOrder: 3}
