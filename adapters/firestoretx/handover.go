package firestoretx

import (
	"context"
	"slices"

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
// Cost: for every 100 orders 4 RPCs, a read for each order, each depot and the fence, and 2 writes
// for each order. The first change of a cycle adds 1 RPC, 2 reads and 1 write.
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
	err := s.transactFenced(ctx, func(t *fencedTxn) error {
		refusals = make([]error, len(h.List))
		verdict, areas, err := t.readHandOvers(h)
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
func (t *fencedTxn) readHandOvers(h domain.HandOvers) (v policy.Verdict, areas []domain.Area, _ error) {
	s := t.store
	depots, err := readDepots(t.Documents(s.client.Collection(Depots)), "") // malformed ones are in no area
	if err != nil {
		return v, nil, err
	}
	var orders []domain.OrderID
	for _, one := range h.List {
		orders = append(orders, one.OrderID)
	}
	snaps, err := t.get(append(refs(s, Orders, orders), s.doc(Control, controlID(h.DepotID)))...)
	if err != nil {
		return v, nil, err
	}
	for _, snap := range snaps[:len(orders)] {
		if err := t.addOrder(snap); err != nil {
			return v, nil, err
		}
	}
	fence, err := decodeFence(snaps[len(orders)])
	if err != nil {
		return v, nil, err
	}
	state := policy.DecisionState{Fences: policy.Fences{h.DepotID: fence}}
	if err := t.readFences(&state, domain.Decision{DepotID: h.DepotID, Fence: h.Fence}); err != nil {
		return v, nil, err
	}
	v, err = s.assignment.AdmitHandOvers(state, h)
	return v, policy.AreasOf(depots.known, h.AreaRadius), err
}
