package firestoretx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/firestore"
	"golang.org/x/sync/errgroup"
	"google.golang.org/api/iterator"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// SnapshotRequest says what a solve cycle wants to see.
type SnapshotRequest struct {
	// Depot is any depot of the area.
	Depot domain.DepotID
	// AreaRadius groups depots into areas, in km; see policy.AreasOf.
	AreaRadius float64
	// At is a past time to read at; zero means now.
	At time.Time
	// Limits select the drones; a field that is zero stands for the contract's value.
	Limits policy.Limits
	// Flights also asks for the drones in flight whose missions can be amended.
	Flights bool
	// Known, if not nil, remembers missions in flight from one snapshot of the area to the next.
	Known *FlightCache
	// OnMalformed, if set, is called for each drone, order or warehouse that was left
	// out because its document is malformed.
	OnMalformed func(error)
}

// Snapshot reads what a cycle of one area plans with, at one read time and without locks:
// warehouses, depots, PENDING orders that are not held, and IDLE drones that are fit; see
// policy.DronePolicy.Fit. Drones in flight come with their missions and undelivered orders.
//
// The depots at that time determine the area. A drone belongs to the area of its home, and an order
// to that of its planning depot. An area with every depot has all drones. Orders that no depot
// plans belong to the first area, so each order is in one area. Malformed documents are left out,
// but that of the requested depot is an error.
//
// With FollowPlaces the other depots and the warehouses are as the listeners saw them, at most
// placesRemembered ago; decisions and hand-overs are judged by those of their own transactions.
//
// Cost: 6 RPCs, one more for every 15 depots of the area; a read per document returned. With
// FollowPlaces 5 RPCs, and of the places only a read for each depot of the area and one more. Of
// several areas the first counts the orders: 1 RPC and a read more, and one more for every
// 30 depots; if no depot plans some, it reads all that are PENDING. With Flights 2 RPCs
// more if a drone flies, one more for every 10 depots instead of 30, and a read for every
// drone in flight, its mission and each of its orders; with Known, missions and orders are read
// once for each of their changes. Where slots are limited, a read for
// every drone that charges.
func (s *Store) Snapshot(ctx context.Context, req SnapshotRequest) (domain.Snapshot, error) {
	req.Limits = req.Limits.WithDefaults()
	opts := []firestore.TransactionOption{firestore.ReadOnly}
	if !req.At.IsZero() {
		opts = append(opts, firestore.TransactionReadTime(req.At.Truncate(time.Microsecond)))
	}
	var malformed []error
	leaveOut := func(err error) bool {
		if err != nil {
			malformed = append(malformed, err)
		}
		return err != nil
	}
	var followed *knownPlaces
	if req.At.IsZero() {
		followed = s.followed(ctx)
	}
	cache := req.Known
	if !req.At.IsZero() {
		cache = nil
	}
	var snap domain.Snapshot
	var known map[domain.DroneID]knownFlight
	err := s.client.RunTransaction(ctx, func(ctx context.Context, tx *firestore.Transaction) error {
		snap, malformed = domain.Snapshot{}, nil
		depots, warehouses, err := s.readPlaces(tx, req, followed)
		if err != nil {
			return err
		}
		areas := policy.AreasOf(depots.known, req.AreaRadius)
		area, ok := policy.AreaOf(areas, req.Depot)
		if !ok {
			return wrap(ErrNotFound, "depot %s", req.Depot)
		}
		snap.ReadTime, snap.Depot, snap.Alone = depots.readTime, area.Depots[0], len(area.Depots) == depots.count
		if len(area.Depots) > 1 {
			snap.Neighbours = area.Depots[1:]
		}
		for _, d := range depots.known {
			if !area.Has(d.ID) {
				snap.Beyond = append(snap.Beyond, d)
			}
		}
		flying, err := s.readDrones(tx, req, area, &snap, leaveOut)
		if err != nil {
			return wrap(err, "drones")
		}
		if snap.Flights, known, err = s.readFlights(tx, s.DronePolicy(req.Limits), flying, cache, snap.ReadTime, leaveOut); err != nil {
			return wrap(err, "drones in flight")
		}
		if err := s.readWaiting(ctx, tx, area, area.ID() == areas[0].ID(), &snap, leaveOut); err != nil {
			return wrap(err, "pending orders")
		}
		snap.Warehouses = warehouses.Items
		malformed = append(malformed, warehouses.Malformed...)
		return nil
	}, opts...)
	if err == nil {
		cache.keep(known)
	}
	for _, err := range malformed {
		if req.OnMalformed != nil {
			req.OnMalformed(err)
		}
	}
	snap.Time = s.now()
	return snap, wrap(err, "snapshot")
}

// readDrones adds the idle drones of an area to a snapshot, and those that charge where slots are
// limited. It returns those in flight if requested.
func (s *Store) readDrones(tx *firestore.Transaction, req SnapshotRequest, area domain.Area, snap *domain.Snapshot, leaveOut func(error) bool) (flying []flyingDrone, _ error) {
	drones := s.DronePolicy(req.Limits)
	statuses := []domain.DroneStatus{domain.DroneIdle}
	if req.Flights {
		statuses = append(statuses, domain.DroneMoving, domain.DroneDelivering)
	}
	if slices.ContainsFunc(area.Depots, func(d domain.Depot) bool { return d.ChargingSlots > 0 }) {
		statuses = append(statuses, domain.DroneCharging)
	}
	for _, ids := range homes(area.DepotIDs(), snap.Alone, maxIn/len(statuses)) {
		err := each(tx.Documents(s.dronesOf(ids).Where("status", "in", statuses)), func(doc *firestore.DocumentSnapshot) error {
			d := decodeDrone(doc)
			switch {
			case leaveOut(d.err) || snap.ReadTime.Sub(d.SeenAt) > drones.MaxSilence:
			case d.Status == domain.DroneCharging:
				snap.Charging = append(snap.Charging, d.Drone)
			case !drones.Fit(d.Drone, snap.ReadTime):
			case d.Bound() && d.SupportsAmendments:
				flying = append(flying, flyingDrone{d.Drone, bindingStateOf(doc, d.Drone)})
			case d.Status == domain.DroneIdle && !d.Bound():
				snap.Drones = append(snap.Drones, d.Drone)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return flying, nil
}

// readWaiting adds the orders that an area's cycle plans to a snapshot. The first area also gets
// those that no depot plans.
func (s *Store) readWaiting(ctx context.Context, tx *firestore.Transaction, area domain.Area, first bool, snap *domain.Snapshot, leaveOut func(error) bool) error {
	all := len(snap.Beyond) == 0
	if !all && first {
		astray, err := s.anyAstray(ctx, tx, snap)
		if err != nil {
			return err
		}
		all = astray
	}
	beyond := domain.Area{Depots: snap.Beyond}
	for _, ids := range homes(area.DepotIDs(), all, maxIn) {
		err := each(tx.Documents(s.waitingFor(ids)), func(doc *firestore.DocumentSnapshot) error {
			if planner, _ := doc.Data()["planningDepotId"].(string); beyond.Has(domain.DepotID(planner)) {
				return nil
			}
			if o, err := orderCodec.decode(doc); !leaveOut(err) {
				snap.Orders = append(snap.Orders, o)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// anyAstray reports whether an order waits that no depot plans.
func (s *Store) anyAstray(ctx context.Context, tx *firestore.Transaction, snap *domain.Snapshot) (bool, error) {
	everyone := domain.Area{Depots: append(snap.Depots(), snap.Beyond...)}
	total, err := countIn(ctx, tx, s.waitingFor(nil))
	if err != nil {
		return false, err
	}
	for _, ids := range homes(everyone.DepotIDs(), false, maxIn) {
		planned, err := countIn(ctx, tx, s.waitingFor(ids))
		if err != nil {
			return false, err
		}
		total -= planned
	}
	return total > 0, nil
}

// waitingFor queries the orders that wait for a drone and that the depots plan; without depots, all
// that wait.
func (s *Store) waitingFor(depots []domain.DepotID) firestore.Query {
	waiting := s.where(Orders, "status", string(domain.OrderPending)).Where("held", "==", false)
	if len(depots) > 0 {
		waiting = waiting.Where("planningDepotId", "in", depots)
	}
	return waiting
}

// depotsRead are the depots at one time.
type depotsRead struct {
	known    []domain.Depot
	count    int // malformed ones included
	readTime time.Time
}

// readPlaces reads all depots and warehouses. Where they are followed, it reads only what shows that
// the area's depots, and the warehouses that drones fly to, are still as the listeners saw them.
func (s *Store) readPlaces(tx *firestore.Transaction, req SnapshotRequest, followed *knownPlaces) (depots depotsRead, warehouses Listing[domain.Warehouse], err error) {
	if followed != nil {
		at, same, err := s.confirmPlaces(tx, req, followed)
		if err != nil {
			return depots, warehouses, err
		}
		if same {
			known := followed.depots
			return depotsRead{known.Items, len(known.Items) + len(known.Malformed), at}, followed.warehouses, nil
		}
	}
	if depots, err = readDepots(tx.Documents(s.client.Collection(Depots)), req.Depot); err != nil {
		return depots, warehouses, wrap(err, "depots")
	}
	warehouses.Items, warehouses.Malformed, err = decodeAll(tx.Documents(s.client.Collection(Warehouses)), warehouseCodec.decode)
	return depots, warehouses, wrap(err, "warehouses")
}

// confirmPlaces reports whether the depots of the requested area are as the listener saw them, and no
// warehouse was deleted or moved since. The latter is noted where the area's decisions read it.
func (s *Store) confirmPlaces(tx *firestore.Transaction, req SnapshotRequest, followed *knownPlaces) (at time.Time, same bool, _ error) {
	area, ok := policy.AreaOf(policy.AreasOf(followed.depots.Items, req.AreaRadius), req.Depot)
	if !ok {
		return at, false, nil
	}
	docs, err := tx.GetAll(append(refs(s, Depots, area.DepotIDs()), s.doc(Control, controlID(area.ID()))))
	if err != nil {
		return at, false, wrap(err, "depots")
	}
	n := len(area.Depots)
	for i, doc := range docs[:n] {
		if !doc.Exists() {
			return at, false, nil
		}
		if d, err := decodeDepot(doc); err != nil || d != area.Depots[i] {
			return at, false, nil
		}
	}
	changed, err := decodeDeletions(docs[n])
	if err != nil {
		return at, false, nil // decisions report it
	}
	for _, deleted := range changed {
		if deleted.After(followed.warehousesAt) {
			return at, false, nil
		}
	}
	return docs[n].ReadTime, true, nil
}

// readDepots reads all depots. A malformed one is an error only if it is needed.
func readDepots(it *firestore.DocumentIterator, needed domain.DepotID) (read depotsRead, err error) {
	err = each(it, func(doc *firestore.DocumentSnapshot) error {
		read.count++
		read.readTime = doc.ReadTime
		d, err := decodeDepot(doc)
		switch {
		case err == nil:
			read.known = append(read.known, d)
		case doc.Ref.ID == string(needed):
			return err
		}
		return nil
	})
	return read, err
}

// DronePolicy is the store's policy of drones with other limits.
func (s *Store) DronePolicy(limits policy.Limits) policy.DronePolicy {
	return policy.DronePolicy{Limits: limits, PlanUnregistered: s.drone.PlanUnregistered}
}

// Fleet lists the drones of depots that reported within maxSilence, or of the whole fleet if depots
// is empty. It leaves out drones that the fleet does not plan with, and malformed documents.
//
// Cost: 1 RPC for every 30 depots; a read per drone.
func (s *Store) Fleet(ctx context.Context, depots []domain.DepotID, maxSilence time.Duration) ([]domain.Drone, error) {
	var fleet []domain.Drone
	for _, ids := range homes(depots, len(depots) == 0, maxIn) {
		err := each(s.dronesOf(ids).Documents(ctx), func(doc *firestore.DocumentSnapshot) error {
			if d := decodeDrone(doc); d.err == nil && doc.ReadTime.Sub(d.SeenAt) <= maxSilence && s.drone.Planned(d.Drone) {
				fleet = append(fleet, d.Drone)
			}
			return nil
		})
		if err != nil {
			return nil, wrap(err, "drones of depot %s", cmp.Or(depots...))
		}
	}
	return fleet, nil
}

// Idle lists the drones of depots that cycles may be offered: IDLE, charged, not grounded, and with
// a recent report. Malformed documents are left out.
//
// Cost: 1 RPC for every 30 depots; a read per IDLE drone.
func (s *Store) Idle(ctx context.Context, depots []domain.DepotID, limits policy.Limits) ([]domain.Drone, error) {
	drones := s.DronePolicy(limits)
	var idle []domain.Drone
	for ids := range slices.Chunk(depots, maxIn) {
		err := each(s.dronesOf(ids).Where("status", "==", string(domain.DroneIdle)).Documents(ctx), func(doc *firestore.DocumentSnapshot) error {
			d := decodeDrone(doc)
			if d.err == nil && !d.Bound() && drones.Fit(d.Drone, doc.ReadTime) {
				idle = append(idle, d.Drone)
			}
			return nil
		})
		if err != nil {
			return nil, wrap(err, "idle drones of depot %s", ids[0])
		}
	}
	return idle, nil
}

// Waiting counts the orders that wait for a drone and that each of the depots plans.
//
// Cost: for each depot 1 RPC and a read, and one more for each 1,000 orders.
func (s *Store) Waiting(ctx context.Context, depots []domain.DepotID) (map[domain.DepotID]int, error) {
	counts := make([]int64, len(depots))
	g, counting := errgroup.WithContext(ctx)
	g.SetLimit(depotsAtOnce)
	for i, id := range depots {
		g.Go(func() (err error) {
			counts[i], err = count(counting, s.waitingFor([]domain.DepotID{id}))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, wrap(err, "waiting orders")
	}
	waiting := make(map[domain.DepotID]int, len(depots))
	for i, id := range depots {
		waiting[id] = int(counts[i])
	}
	return waiting, nil
}

// maxIn is how many values of a field one query may compare, and how many combinations of values of
// two fields.
const maxIn = 30

// homes splits depots for queries that name at most the given number. If all are requested, one
// query without a condition serves.
func homes(depots []domain.DepotID, all bool, most int) [][]domain.DepotID {
	if all {
		return [][]domain.DepotID{nil}
	}
	return slices.Collect(slices.Chunk(depots, most))
}

// dronesOf queries the drones of depots, of all if none is named.
func (s *Store) dronesOf(depots []domain.DepotID) firestore.Query {
	return ofDepots(s.client.Collection(Drones).Query, "homeDepotId", depots)
}

func decodeDepot(snap *firestore.DocumentSnapshot) (domain.Depot, error) {
	// People write depots; a message cannot name one with an illegal id.
	if err := domain.CheckID(snap.Ref.ID); err != nil {
		return domain.Depot{}, &MalformedError{fmt.Errorf("document %s: its id %w", snap.Ref.Path, err)}
	}
	d, err := depotCodec.decode(snap)
	if n, _ := snap.Data()[depotDrones].(int64); n > 0 {
		d.Drones = int(n)
	}
	return d, err
}

func decodeKnownDrone(snap *firestore.DocumentSnapshot) (domain.Drone, error) {
	d := decodeDrone(snap)
	return d.Drone, d.err
}

// each calls f on every document of a query.
func each(it *firestore.DocumentIterator, f func(*firestore.DocumentSnapshot) error) error {
	defer it.Stop()
	for {
		doc, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(doc); err != nil {
			return err
		}
	}
}

// decodeAll decodes every document of a query and lists the decoding errors.
func decodeAll[T any](it *firestore.DocumentIterator, decode func(*firestore.DocumentSnapshot) (T, error)) (list []T, malformed []error, err error) {
	err = each(it, func(doc *firestore.DocumentSnapshot) error {
		v, err := decode(doc)
		if err != nil {
			malformed = append(malformed, err)
			return nil
		}
		list = append(list, v)
		return nil
	})
	return list, malformed, err
}

// collect decodes every document of a query. Beside a *MalformedError it returns all documents that
// can be decoded.
func collect[T any](it *firestore.DocumentIterator, decode func(*firestore.DocumentSnapshot) (T, error)) ([]T, error) {
	list, malformed, err := decodeAll(it, decode)
	if err != nil { // the list is not complete
		return list, err
	}
	return list, some(malformed)
}
