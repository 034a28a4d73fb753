package firestoretx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
)

// Config tunes a Store. A field with the zero value has the default in its comment.
type Config struct {
	// Now is the local clock; default time.Now. The time of a transaction is the later of it and
	// the server's read time.
	Now func() time.Time
	// Limits are those of the policies. A field that is zero has the contract's value.
	Limits policy.Limits
	// AllowUnfenced lets decisions without a fence pass; see policy.MissionAssignmentPolicy.
	AllowUnfenced bool
	// RecordStops applies decisions whose stops are wrong, with a warning in the ledger.
	RecordStops bool
	// PlanUnregistered plans with drones that nobody registered.
	PlanUnregistered bool
	// Foretelling says which reports that only move a drone are written; the default is all.
	Foretelling policy.Foretelling
	// Counters, if set, reads the fences that the depots' locks have handed out, for locks outside
	// this Firestore. The default reads the counters that lock/firestorelock keeps here.
	Counters lock.FenceReader
	// Retention is how long TTL policies must keep new documents, by collection. By default orders
	// and missions stay for ever, and other records for 90 days.
	Retention domain.Retention
	// Sharded says that the database has the indexes of large fleets, which begin with the field
	// shard of events and orders; see docs/auditing.md.
	Sharded bool
	// WebhookKeys, of 32 bytes each, seal the secrets of webhooks: the first seals, all open. By
	// default they are stored as they are.
	WebhookKeys [][]byte
	// Owed, if set, is called after each commit with every mission that now owes its
	// drone a message, with the context of the operation. It must not block.
	Owed func(context.Context, domain.Mission)
	// Conflicted, if set, is called with the context of the operation whenever another writer was
	// faster: a transaction runs again, or a commit was refused. It must not block.
	Conflicted func(ctx context.Context)
	// PickedUpAgain, if set, is called with the context of the operation when late evidence shows
	// the delivery of a parcel that another drone has picked up again. It must not block.
	PickedUpAgain func(context.Context, domain.OrderID)
	// Warning, if set, says why no drone can deliver an order as things stand, "" if one can, with
	// the reason before ": ". It must not read for every order.
	Warning func(context.Context, domain.OrderRequest) string
	// Delivered, if set, is called after each commit that delivers an order, with the context of
	// the operation. It is called once for each order, by the process that commits it, unless the
	// commit's answer was lost. It must not block.
	Delivered func(context.Context, domain.Order)
}

// Store applies state changes to Firestore. It is safe for concurrent use.
type Store struct {
	client     *firestore.Client
	now        func() time.Time
	drone      policy.DronePolicy
	order      policy.OrderPolicy
	assignment policy.MissionAssignmentPolicy
	counters   lock.FenceReader // nil: here
	retention  domain.Retention
	sharded    bool
	sealer     sealer
	owed       func(context.Context, domain.Mission)
	conflicted func(context.Context)

	pickedUpAgain func(context.Context, domain.OrderID)
	delivered     func(context.Context, domain.Order)
	warning       func(context.Context, domain.OrderRequest) string

	places    placeCache
	strangers strangerCount
}

// New returns a store on client, which stays the caller's to close.
func New(client *firestore.Client, cfg Config) *Store {
	limits := cfg.Limits.WithDefaults()
	s := &Store{
		client: client, now: cfg.Now, counters: cfg.Counters, retention: cfg.Retention, sharded: cfg.Sharded, sealer: cfg.WebhookKeys, owed: cfg.Owed, conflicted: cfg.Conflicted, pickedUpAgain: cfg.PickedUpAgain, delivered: cfg.Delivered,
		drone: policy.DronePolicy{Limits: limits, PlanUnregistered: cfg.PlanUnregistered, Foretelling: cfg.Foretelling}, order: policy.OrderPolicy{Limits: limits},
		assignment: policy.MissionAssignmentPolicy{Limits: limits, AllowUnfenced: cfg.AllowUnfenced, RecordStops: cfg.RecordStops, PlanUnregistered: cfg.PlanUnregistered},
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.conflicted == nil {
		s.conflicted = func(context.Context) {}
	}
	if s.pickedUpAgain == nil {
		s.pickedUpAgain = func(context.Context, domain.OrderID) {}
	}
	if s.warning = cfg.Warning; s.warning == nil {
		s.warning = func(context.Context, domain.OrderRequest) string { return "" }
	}
	if s.delivered == nil {
		s.delivered = func(context.Context, domain.Order) {}
	}
	return s
}

// MalformedError says that a stored document cannot be decoded. A person must correct it.
type MalformedError struct{ Err error }

func (e *MalformedError) Error() string { return e.Err.Error() }
func (e *MalformedError) Unwrap() error { return e.Err }

// Retryable reports whether the same work may succeed later. It is true for transient gRPC
// codes, and for a commit with an unknown outcome, which every operation here recognises
// when repeated.
func Retryable(err error) bool {
	if _, rejected := policy.ReasonOf(err); rejected || err == nil {
		return false
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errCountersMoving) {
		return true
	}
	if _, ok := errors.AsType[*lock.Error](err); ok { // the lock store is down, or an operator must repair it
		return true
	}
	st, ok := statusOf(err)
	if !ok {
		return false
	}
	switch st.Code() {
	case codes.Unavailable, codes.Aborted, codes.DeadlineExceeded, codes.Internal,
		codes.ResourceExhausted, codes.Unknown, codes.Canceled,
		codes.Unauthenticated, codes.PermissionDenied: // a misconfiguration that an operator will fix
		return true
	case codes.AlreadyExists, codes.FailedPrecondition, codes.NotFound:
		// Another writer came between the read and the write.
		return true
	case codes.InvalidArgument:
		// The client resends a commit after UNAVAILABLE; if the first one was
		// applied, the server answers that the transaction is over.
		m := strings.ToLower(st.Message())
		return strings.Contains(m, "transaction") &&
			(strings.Contains(m, "expired") || strings.Contains(m, "no longer valid") || strings.Contains(m, "closed") || strings.Contains(m, "invalid transaction"))
	}
	return false
}

func statusOf(err error) (*status.Status, bool) {
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		return s.GRPCStatus(), true
	}
	return nil, false
}

// txn is one attempt of a transaction: its time and what it has read.
type txn struct {
	*firestore.Transaction
	store    *Store
	by       string // the person who causes it; see By
	now      time.Time
	read     time.Time // the server's, at the latest read
	drones   map[domain.DroneID]droneDoc
	missions map[domain.MissionID]domain.Mission
	orders   map[domain.OrderID]domain.Order
	// owed are the missions with a message for their drone after the commit, and delivered the
	// orders that it delivers.
	owed      []domain.Mission
	delivered []domain.Order
}

type personKey struct{}

// By returns a context for changes that a person causes. Each event of such a change has cause
// OPERATOR and the name in its field by.
func By(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, personKey{}, name)
}

// personOf is who causes the changes of a context; empty for machines.
func personOf(ctx context.Context) string {
	name, _ := ctx.Value(personKey{}).(string)
	return name
}

// errNobody refuses an operator's change that the audit cannot attribute.
var errNobody = errors.New("the operator's change names no person; pass the name with By")

type droneDoc struct {
	domain.Drone
	exists bool
	err    error // the document is malformed
}

// transact runs f in a read-write transaction, and again after each conflict. resp, if not nil,
// receives the commit's answer.
func (s *Store) transact(ctx context.Context, resp *firestore.CommitResponse, f func(*txn) error) error {
	if resp == nil {
		resp = new(firestore.CommitResponse)
	}
	var t *txn
	err := s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		if t != nil {
			s.conflicted(ctx)
		}
		t = &txn{
			Transaction: tx, store: s, by: personOf(ctx), now: s.now(),
			drones:   map[domain.DroneID]droneDoc{},
			missions: map[domain.MissionID]domain.Mission{},
			orders:   map[domain.OrderID]domain.Order{},
		}
		return f(t)
	}, firestore.WithCommitResponseTo(resp))
	if err != nil {
		return err
	}
	for _, o := range t.delivered {
		s.delivered(ctx, o)
	}
	if s.owed != nil {
		for _, m := range t.owed {
			m.Version = resp.CommitTime().Truncate(time.Microsecond) // the precision of a document's version
			s.owed(ctx, m)
		}
	}
	return nil
}

// get reads documents in one round trip, in the order of refs, and advances the
// transaction's time to the server's if that is later.
func (t *txn) get(refs ...*firestore.DocumentRef) ([]*firestore.DocumentSnapshot, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	snaps, err := t.GetAll(refs)
	if err != nil {
		return nil, err
	}
	for _, snap := range snaps {
		if snap.ReadTime.After(t.read) {
			t.read = snap.ReadTime
		}
	}
	if t.read.After(t.now) {
		t.now = t.read
	}
	return snaps, nil
}

func (s *Store) doc(collection, id string) *firestore.DocumentRef {
	return s.client.Collection(collection).Doc(id)
}

func refs[ID ~string](s *Store, collection string, ids []ID) []*firestore.DocumentRef {
	list := make([]*firestore.DocumentRef, len(ids))
	for i, id := range ids {
		list[i] = s.doc(collection, string(id))
	}
	return list
}

// readDrones reads drones. It keeps a malformed one with its error, so that the others of a batch
// still commit.
func (t *txn) readDrones(ids ...domain.DroneID) error {
	snaps, err := t.get(refs(t.store, Drones, ids)...)
	if err != nil {
		return err
	}
	for i, snap := range snaps {
		t.drones[ids[i]] = decodeDrone(snap)
	}
	return nil
}

func decodeDrone(snap *firestore.DocumentSnapshot) droneDoc {
	if !snap.Exists() {
		return droneDoc{}
	}
	d, err := droneCodec.decode(snap)
	return droneDoc{Drone: d, exists: true, err: err}
}

// readMissions reads missions and then all their orders.
func (t *txn) readMissions(ids ...domain.MissionID) error {
	snaps, err := t.get(refs(t.store, Missions, ids)...)
	if err != nil {
		return err
	}
	var orders []domain.OrderID
	for _, snap := range snaps {
		if !snap.Exists() {
			continue
		}
		m, err := missionCodec.decode(snap)
		if err != nil {
			return err
		}
		t.missions[m.ID] = m
		for _, id := range m.EveryOrder() {
			if _, known := t.orders[id]; !known && !slices.Contains(orders, id) {
				orders = append(orders, id)
			}
		}
	}
	return t.readOrders(orders...)
}

// readOrders reads orders; a missing one is absent from t.orders.
func (t *txn) readOrders(ids ...domain.OrderID) error {
	snaps, err := t.get(refs(t.store, Orders, ids)...)
	if err != nil {
		return err
	}
	for _, snap := range snaps {
		if err := t.addOrder(snap); err != nil {
			return err
		}
	}
	return nil
}

// drone is a drone that was read; nil if it does not exist.
func (t *txn) drone(id domain.DroneID) (*domain.Drone, error) {
	d := t.drones[id]
	if !d.exists {
		return nil, nil
	}
	return &d.Drone, d.err
}

// found is an entity that was read; nil if it does not exist.
func found[ID comparable, T any](read map[ID]T, id ID) *T {
	if v, ok := read[id]; ok {
		return &v
	}
	return nil
}

func (t *txn) addOrder(snap *firestore.DocumentSnapshot) error {
	if !snap.Exists() {
		return nil
	}
	o, err := orderCodec.decode(snap)
	if err != nil {
		return err
	}
	t.orders[o.ID] = o
	return nil
}

// readBinding reads a drone and, if it is bound, its mission and orders.
func (t *txn) readBinding(id domain.DroneID) (policy.Binding, error) {
	if err := t.readDrones(id); err != nil {
		return policy.Binding{}, err
	}
	d := t.drones[id]
	if d.err != nil {
		return policy.Binding{}, d.err
	}
	if d.Bound() {
		if err := t.readMissions(d.CurrentMissionID); err != nil {
			return policy.Binding{}, err
		}
	}
	return t.binding(id), nil
}

// binding assembles what was read of a drone.
func (t *txn) binding(id domain.DroneID) policy.Binding {
	b := policy.Binding{Drone: t.drones[id].Drone}
	if !b.Drone.Bound() {
		return b
	}
	m, ok := t.missions[b.Drone.CurrentMissionID]
	if !ok {
		return b
	}
	b.Mission, b.Orders = &m, make(map[domain.OrderID]domain.Order, len(m.OrderIDs))
	for _, o := range m.OrderIDs {
		if order, ok := t.orders[o]; ok {
			b.Orders[o] = order
		}
	}
	return b
}

// write stores a change: the fields of each entity that differ from what the
// transaction read, and the events.
func (t *txn) write(c policy.Change) error {
	holders, err := t.holders(c)
	if err != nil {
		return err
	}
	if c.Drone != nil {
		if err := t.writeDrone(*c.Drone, c); err != nil {
			return err
		}
	}
	for _, id := range holders {
		if err := t.Update(t.store.doc(Drones, string(id)), []firestore.Update{countBindingChange}); err != nil {
			return err
		}
	}
	for _, m := range c.Missions {
		before, exists := t.missions[m.ID]
		ends := t.ends(Missions, over(before), over(m))
		if !exists && c.Drone != nil && c.Drone.ID == m.DroneID {
			ends = append(ends, firestore.Update{FieldPath: firestore.FieldPath{homeOfMission}, Value: string(c.Drone.HomeDepotID)})
		}
		if err := put(t, t.store.doc(Missions, string(m.ID)), missionCodec, before, m, exists, ends...); err != nil {
			return err
		}
		command := m.CommandPending && (!before.CommandPending || m.CommandExpiresAt.After(before.CommandExpiresAt))
		if command || m.RevokePending && !before.RevokePending {
			t.owed = append(t.owed, m)
		}
	}
	for _, o := range c.Orders {
		if err := t.writeOrder(o); err != nil {
			return err
		}
	}
	for _, e := range c.Events {
		if e.Cause == domain.CauseOperator {
			if t.by == "" {
				return errNobody
			}
			e.By = t.by
		}
		if err := t.Create(t.store.client.Collection(Events).NewDoc(), t.store.encodeEvent(e)); err != nil {
			return err
		}
	}
	for _, id := range c.Revoke {
		m := domain.Mission{ID: id, DroneID: c.Drone.ID, Status: domain.MissionFailed, RevokePending: true}
		// These fields suffice for a revocation if the document was deleted.
		owing := map[string]any{"droneId": string(m.DroneID), "status": string(m.Status), "revokePending": true}
		if err := t.Set(t.store.doc(Missions, string(id)), owing, firestore.MergeAll); err != nil {
			return err
		}
		t.owed = append(t.owed, m)
	}
	return nil
}

// defaultRetention is how long records are kept unless configured otherwise.
const defaultRetention = 90 * 24 * time.Hour

// expiry is when a record of a collection may be deleted.
func (s *Store) expiry(collection string, since time.Time) time.Time {
	kept, configured := s.retention.Of[collection]
	if !configured {
		kept = defaultRetention
	}
	return since.Add(kept)
}

// ends are the fields that an order or a mission gets when it ends: the time from which TTL
// policies may delete it, if any.
func (t *txn) ends(collection string, was, is bool) []firestore.Update {
	if _, configured := t.store.retention.Of[collection]; !configured || was || !is {
		return nil
	}
	return []firestore.Update{{FieldPath: firestore.FieldPath{expireAt}, Value: t.store.expiry(collection, t.now)}}
}

// over reports whether a mission has ended.
func over(m domain.Mission) bool { return m.Status != "" && m.Status != domain.MissionActive }

// encodeEvent is an event's document, with the moment it may be deleted.
func (s *Store) encodeEvent(e domain.Event) map[string]any {
	doc := eventCodec.encode(e)
	doc[expireAt], doc[shard] = s.expiry(Events, e.Time), shardOf(e.ID)
	return doc
}

// countBindingChange marks a drone's document when its mission or an order of it changes.
var countBindingChange = firestore.Update{FieldPath: firestore.FieldPath{bindingChanges}, Value: firestore.Increment(1)}

// holders are the drones whose mission, or an order of it, is changed without them: an operator
// changes an order, or the sweeper finds it late. Their documents are changed too, see FlightCache.
func (t *txn) holders(c policy.Change) (ids []domain.DroneID, _ error) {
	held := map[domain.DroneID]domain.MissionID{}
	for _, m := range c.Missions {
		if m.Status == domain.MissionActive {
			held[m.DroneID] = m.ID
		}
	}
	for _, o := range c.Orders {
		if was := t.orders[o.ID]; was.AssignedMissionID != "" {
			held[was.AssignedDroneID] = was.AssignedMissionID
		}
	}
	delete(held, "")
	if c.Drone != nil {
		delete(held, c.Drone.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(held)) {
		if _, read := t.drones[id]; !read && c.Drone == nil && domain.CheckDocumentID(string(id)) == nil {
			if err := t.readDrones(id); err != nil {
				return nil, err
			}
		}
		if d := t.drones[id]; d.exists && (d.err != nil || d.CurrentMissionID == held[id]) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// writeDrone stores a drone of a change. If its mission or an order changes too, it also counts
// that, so that the drone's version stands for the whole binding.
func (t *txn) writeDrone(d domain.Drone, c policy.Change) error {
	ref := t.store.doc(Drones, string(d.ID))
	before := t.drones[d.ID]
	d = t.store.drone.Dated(d, t.missionOf(d, c.Missions))
	if !before.exists {
		return t.Create(ref, droneCodec.encode(d))
	}
	us := droneCodec.updates(before.Drone, d)
	for _, m := range c.Missions {
		if m.DroneID == d.ID {
			us = append(us, firestore.Update{FieldPath: firestore.FieldPath{missionRevision}, Value: m.Revision})
		}
	}
	if len(c.Missions)+len(c.Orders) > 0 {
		us = append(us, countBindingChange)
	}
	if len(us) == 0 {
		return nil
	}
	return t.Update(ref, us)
}

// missionOf is the mission that holds a drone, as it will be; nil if it was not read.
func (t *txn) missionOf(d domain.Drone, changed []domain.Mission) *domain.Mission {
	for _, m := range changed {
		if m.ID == d.CurrentMissionID {
			return &m
		}
	}
	return found(t.missions, d.CurrentMissionID)
}

// writeOrder stores an order. A document from another tool gets all fields, because queries miss an
// absent flag.
func (t *txn) writeOrder(o domain.Order) error {
	ref := t.store.doc(Orders, string(o.ID))
	before, exists := t.orders[o.ID]
	o.DueAt = policy.OrderDue(o)
	if o.Status == domain.OrderDelivered && before.Status != domain.OrderDelivered {
		t.delivered = append(t.delivered, o)
	}
	ends := t.ends(Orders, before.Status.Final(), o.Status.Final())
	if exists && before.Revision == 0 {
		return t.Update(ref, append(orderCodec.all(o), ends...))
	}
	return put(t, ref, orderCodec, before, o, exists, ends...)
}

// put creates a document or updates the changed fields; more are further fields.
func put[T any](t *txn, ref *firestore.DocumentRef, c codec[T], before, after T, exists bool, more ...firestore.Update) error {
	if !exists {
		doc := c.encode(after)
		for _, u := range more {
			doc[u.FieldPath[0]] = u.Value
		}
		return t.Create(ref, doc)
	}
	if us := append(c.updates(before, after), more...); len(us) > 0 {
		return t.Update(ref, us)
	}
	return nil
}

// wrap names what failed; the cause stays matchable.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
