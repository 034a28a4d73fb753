package firestoretx

import (
	"context"
	"slices"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// handedOverAtOnce bounds the hand-overs of one transaction.
const handedOverAtOnce = 100

// HandOver lets other depots plan orders that a cycle's area cannot serve in time. refusals has an
// entry for each order: nil or a *policy.Rejection. If the cycle's fence is refused, the error is a
// *policy.Rejection and no order changes. Any other error is a failure of the store; refusals then
// covers the orders before it.
//
// Where depots are followed, only those of the orders' areas are read: a hand-over by an area that a
// new depot joined in the last placesRemembered passes, and makes an order wait for another cycle.
//
// Cost: for every 100 orders 4 RPCs, a read for each order, each depot and the fence, and 2 writes
// for each order. With FollowPlaces 3 RPCs, and a read for each depot concerned. The first change of
// a cycle adds 1 RPC, 2 reads and 1 write.
func (s *Store) HandOver(ctx context.Context, h domain.HandOvers) (refusals []error, _ error) {
	for part := range slices.Chunk(h.List, handedOverAtOnce) {
		some := h
		some.List = part
		refused, err := s.handOverSome(ctx, some)
		if err != nil {
			return refusals, wrap(err, "hand-overs of cycle %s", h.CycleID)
		}
		refusals = append(refusals, refused...)
	}
	return refusals, nil
}

func (s *Store) handOverSome(ctx context.Context, h domain.HandOvers) (refusals []error, _ error) {
	followed := s.followed(ctx)
	err := s.transactFenced(ctx, func(t *fencedTxn) error {
		refusals = make([]error, len(h.List))
		verdict, areas, err := t.readHandOvers(h, followed)
		if err != nil {
			return err
		}
		for i, one := range h.List {
			change, refusal := policy.HandOverOrder(found(t.orders, one.OrderID), areas, h, one, t.now)
			if refusals[i] = refusal; refusal != nil {
				continue
			}
			if err := t.write(change); err != nil {
				return err
			}
		}
		if verdict.Fence == "" {
			return nil
		}
		return t.writeFence(verdict)
	})
	return refusals, err
}

// readHandOvers reads the orders and today's areas, and judges the fence.
func (t *fencedTxn) readHandOvers(h domain.HandOvers, followed *knownPlaces) (v policy.Verdict, areas []domain.Area, _ error) {
	s := t.store
	var depots []domain.Depot
	if followed == nil {
		read, err := readDepots(t.Documents(s.client.Collection(Depots)), "") // malformed ones are in no area
		if err != nil {
			return v, nil, err
		}
		depots = read.known
	}
	var orders []domain.OrderID
	for _, one := range h.List {
		orders = append(orders, one.OrderID)
	}
	concerned := depotsConcerned(h, followed)
	snaps, err := t.get(slices.Concat(refs(s, Orders, orders), refs(s, Depots, concerned), []*firestore.DocumentRef{s.doc(Control, controlID(h.DepotID))})...)
	if err != nil {
		return v, nil, err
	}
	ofOrders, ofDepots := snaps[:len(orders)], snaps[len(orders):len(snaps)-1]
	for _, snap := range ofOrders {
		if err := t.addOrder(snap); err != nil {
			return v, nil, err
		}
	}
	if followed != nil {
		depots = with(followed.depots.Items, existing(ofDepots))
	}
	fence, err := decodeFence(snaps[len(snaps)-1])
	if err != nil {
		return v, nil, err
	}
	state := policy.DecisionState{Fences: policy.Fences{h.DepotID: fence}}
	if err := t.readFences(&state, domain.Decision{DepotID: h.DepotID, Fence: h.Fence}); err != nil {
		return v, nil, err
	}
	v, err = s.assignment.AdmitHandOvers(state, h)
	return v, policy.AreasOf(depots, h.AreaRadius), err
}

// depotsConcerned are the depots by which hand-overs are judged: those of the cycle's area, and
// those that plan the orders before and after. Depots that are not followed are all read.
func depotsConcerned(h domain.HandOvers, followed *knownPlaces) (ids []domain.DepotID) {
	if followed == nil {
		return nil
	}
	if area, ok := policy.AreaOf(policy.AreasOf(followed.depots.Items, h.AreaRadius), h.DepotID); ok {
		ids = area.DepotIDs()
	}
	for _, one := range h.List {
		ids = append(ids, one.From, one.To)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return slices.DeleteFunc(ids, func(id domain.DepotID) bool { return domain.CheckDocumentID(string(id)) != nil })
}

// existing are depots as they were read; nil for one that does not exist or is malformed.
func existing(snaps []*firestore.DocumentSnapshot) map[domain.DepotID]*domain.Depot {
	read := map[domain.DepotID]*domain.Depot{}
	for _, snap := range snaps {
		read[domain.DepotID(snap.Ref.ID)] = nil
		if !snap.Exists() {
			continue
		}
		if d, err := decodeDepot(snap); err == nil {
			read[d.ID] = &d
		}
	}
	return read
}
