package firestoretx

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
	"github.com/dronefleet/dronefleet/policy"
)

// Documents of the collection control. Each depot has one, which holds the highest
// fence applied.
const (
	// controlDecisions is where earlier versions kept the highest fence applied of all
	// depots, in the map fences.
	controlDecisions = "decisions"
	// controlClock is that of a simulated clock.
	controlClock = "clock"
	// controlNoDepot is for drones without a home.
	controlNoDepot = controlEscape + "none"
	// controlWebhooks says up to when events were read for webhooks. No depot's id is escaped to it.
	controlWebhooks = controlEscape + "webhooks"
	// controlHistory likewise says up to when the history has everything.
	controlHistory = controlEscape + "history"
	// controlRamp likewise says when the writes to this database began to rise.
	controlRamp = controlEscape + "ramp"
	// controlEscape stands before the ids of depots that are also the id of another document here.
	controlEscape = "~"

	// noDepot is the key of drones without a home in the map of earlier versions. noDepotID is the
	// key of a depot with that very id; no id contains a slash.
	noDepot   = "_"
	noDepotID = "_/"
)

// controlID is the id of the document with a depot's highest fence: the depot's own id, escaped if
// another document has it.
func controlID(depot domain.DepotID) string {
	switch id := string(depot); {
	case id == "":
		return controlNoDepot
	case id == controlDecisions, id == controlClock, strings.HasPrefix(id, controlEscape):
		return controlEscape + id
	default:
		return id
	}
}

// controlDepot is the depot whose document has the id; false if it is no depot's.
func controlDepot(id string) (domain.DepotID, bool) {
	switch id {
	case controlDecisions, controlClock, controlWebhooks, controlHistory, controlRamp:
		return "", false
	case controlNoDepot:
		return "", true
	}
	return domain.DepotID(strings.TrimPrefix(id, controlEscape)), true
}

// readFences reads the fences that only some decisions need. For a decision without a depot it
// reads the highest fence applied at the drone's home. For a fence that is not the highest applied
// it reads what the depot's lock has handed out and the map of earlier versions; the higher one
// counts.
func (t *fencedTxn) readFences(state *policy.DecisionState, d domain.Decision) error {
	s, depot := t.store, state.FenceDepot(d)
	if !state.NeedsIssued(d) {
		return nil
	}
	if depot != d.DepotID {
		if domain.CheckDocumentID(string(depot)) != nil { // another tool gave the drone this home
			state.Issued = policy.Fences{depot: ""} // and no lock can be its
			return nil
		}
		snaps, err := t.get(s.doc(Control, controlID(depot)))
		if err != nil {
			return err
		}
		if state.Fences[depot], err = decodeFence(snaps[0]); err != nil || !state.NeedsIssued(d) {
			return err
		}
	}
	refs := []*firestore.DocumentRef{s.doc(Control, controlDecisions)}
	if s.counters == nil {
		// A key that cannot be locked has no counter.
		if counter, err := (firestorelock.Config{}).CounterPath(domain.CycleLockKey(depot)); err == nil {
			refs = append(refs, s.client.Doc(counter))
		}
	}
	snaps, err := t.get(refs...)
	if err != nil {
		return err
	}
	if t.mapped, err = decodeFenceMap(snaps[0]); err != nil {
		return err
	}
	state.Fences.Raise(depot, t.mapped[depot])
	if s.counters != nil {
		return t.counter.judge(state, depot)
	}
	state.Issued = policy.Fences{depot: ""}
	for _, snap := range snaps[1:] {
		if state.Issued[depot], err = decodeCounter(snap); err != nil {
			return err
		}
	}
	return nil
}

// writeFence stores the highest fence applied. It also removes a fence that the lock never handed
// out from the map: after a rollback it would block the earlier version.
func (t *fencedTxn) writeFence(v policy.Verdict) error {
	s := t.store
	if err := t.Set(s.doc(Control, controlID(v.Depot)), map[string]any{"fence": v.Fence}, firestore.MergeAll); err != nil {
		return err
	}
	if !v.Lowers || t.mapped[v.Depot] == "" {
		return nil
	}
	fences := map[string]any{"fences": map[string]any{fenceKey(v.Depot): v.Fence}}
	return t.Set(s.doc(Control, controlDecisions), fences, firestore.MergeAll)
}

// decodeFence is the fence in a depot's document, empty without the document. A malformed one is an
// error: ignoring it would let a cycle that lost its lock decide late.
func decodeFence(snap *firestore.DocumentSnapshot) (string, error) {
	if !snap.Exists() {
		return "", nil
	}
	fence, err := asFence(snap.Data()["fence"])
	if err != nil {
		return "", &MalformedError{wrap(err, "document %s: field fence", snap.Ref.Path)}
	}
	return fence, nil
}

// deletedWarehouses is the field with the times of recent deletions. Its document is one that every
// decision of the depot reads anyway.
const deletedWarehouses = "deletedWarehouses"

// unissued is a fence that no lock hands out. It stands for a depot that has applied none.
const unissued = "0"

func decodeDeletions(snap *firestore.DocumentSnapshot) (map[domain.WarehouseID]time.Time, error) {
	if !snap.Exists() {
		return nil, nil
	}
	field, present := snap.Data()[deletedWarehouses]
	if !present {
		return nil, nil
	}
	stored, ok := field.(map[string]any)
	if !ok {
		return nil, &MalformedError{wrap(wrongType("a map", field), "document %s: field %s", snap.Ref.Path, deletedWarehouses)}
	}
	deletions := map[domain.WarehouseID]time.Time{}
	for id, value := range stored {
		at, ok := value.(time.Time)
		if !ok {
			return nil, &MalformedError{wrap(wrongType("a time", value), "document %s: field %s of %s", snap.Ref.Path, deletedWarehouses, id)}
		}
		deletions[domain.WarehouseID(id)] = at
	}
	return deletions, nil
}

// outdateDecisions makes every decision from a snapshot with the warehouse expire, once the
// transaction commits. It reads now; the returned function writes.
func (t *txn) outdateDecisions(warehouse string) (write func() error, err error) {
	s := t.store
	refs := []*firestore.DocumentRef{s.doc(Control, controlNoDepot)}
	err = each(t.Documents(s.client.Collection(Depots).Select()), func(doc *firestore.DocumentSnapshot) error {
		refs = append(refs, s.doc(Control, controlID(domain.DepotID(doc.Ref.ID))))
		return nil
	})
	if err != nil {
		return nil, err
	}
	controls, err := t.get(refs...)
	if err != nil {
		return nil, err
	}
	return func() error {
		for _, control := range controls {
			// The commit's time, to which read times compare.
			deletions := map[string]any{warehouse: firestore.ServerTimestamp}
			known, _ := decodeDeletions(control) // decisions report what is malformed
			for id, at := range known {
				if string(id) != warehouse && t.now.Sub(at) > s.assignment.MaxAge+s.assignment.CommitDelay {
					deletions[string(id)] = firestore.Delete
				}
			}
			fields := map[string]any{deletedWarehouses: deletions}
			if !control.Exists() {
				fields["fence"] = unissued // earlier versions reject a document without one
			}
			if err := t.Set(control.Ref, fields, firestore.MergeAll); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func asFence(stored any) (string, error) {
	fence, ok := stored.(string)
	if !ok {
		return "", wrongType("a string", stored)
	}
	if fence == "" || strings.Trim(fence, "0123456789") != "" {
		return "", fmt.Errorf("%q is not a fence; store the digits of the highest that was applied", fence)
	}
	return fence, nil
}

// decodeCounter is the highest fence that a lock has handed out, empty if none.
func decodeCounter(snap *firestore.DocumentSnapshot) (string, error) {
	if !snap.Exists() {
		return "", nil
	}
	n, err := firestorelock.CounterValue(snap.Data())
	if err != nil {
		return "", &MalformedError{wrap(err, "document %s", snap.Ref.Path)}
	}
	return strconv.FormatInt(n, 10), nil
}

// fenceKey is the depot's key in the map of earlier versions.
func fenceKey(depot domain.DepotID) string {
	switch depot {
	case "":
		return noDepot
	case noDepot:
		return noDepotID
	}
	return string(depot)
}

// decodeFenceMap reads the map of earlier versions.
func decodeFenceMap(snap *firestore.DocumentSnapshot) (policy.Fences, error) {
	fences := policy.Fences{}
	if !snap.Exists() {
		return fences, nil
	}
	field := snap.Data()["fences"]
	stored, ok := field.(map[string]any)
	if !ok && field != nil {
		return nil, &MalformedError{wrap(wrongType("a map", field), "document %s: field fences", snap.Ref.Path)}
	}
	for depot, value := range stored {
		fence, err := asFence(value)
		if err != nil {
			return nil, &MalformedError{wrap(err, "document %s: fence of depot %s", snap.Ref.Path, depot)}
		}
		switch depot {
		case noDepot:
			depot = ""
		case noDepotID:
			depot = noDepot
		}
		fences[domain.DepotID(depot)] = fence
	}
	return fences, nil
}

// Fences are the highest fences applied, per depot, those of earlier versions included.
//
// Cost: 1 RPC; a read per depot.
func (s *Store) Fences(ctx context.Context) (policy.Fences, error) {
	snaps, err := s.client.Collection(Control).Documents(ctx).GetAll()
	if err != nil {
		return nil, wrap(err, "fences")
	}
	fences := policy.Fences{}
	if i := slices.IndexFunc(snaps, func(snap *firestore.DocumentSnapshot) bool { return snap.Ref.ID == controlDecisions }); i >= 0 {
		if fences, err = decodeFenceMap(snaps[i]); err != nil {
			return nil, err
		}
	}
	for _, snap := range snaps {
		depot, ok := controlDepot(snap.Ref.ID)
		if !ok {
			continue
		}
		fence, err := decodeFence(snap)
		if err != nil {
			return nil, err
		}
		fences.Raise(depot, fence)
	}
	return fences, nil
}
