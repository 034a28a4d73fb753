package pubsubemu

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dronefleet/dronefleet/emulator/pubsub/internal/journal"
)

// A snapshot lives for snapshotLife minus the age of its oldest message, and
// is refused when less than minSnapshotLife would remain.
const (
	snapshotLife    = 7 * 24 * time.Hour
	minSnapshotLife = time.Hour
)

// snapshot holds the messages that were unacked when it was taken, and every
// message published to the topic since.
type snapshot struct {
	name   string
	holder uint64 // its id in the journal

	mu       sync.Mutex
	config   *pubsubpb.Snapshot
	topic    *topic // nil once deleted
	ordered  bool   // taken from a subscription with message ordering
	messages []*message
}

func (snap *snapshot) hold(msgs []*message) {
	snap.mu.Lock()
	snap.messages = append(snap.messages, msgs...)
	snap.mu.Unlock()
}

func (snap *snapshot) journalID() uint64 { return snap.holder }

func (snap *snapshot) describe() *pubsubpb.Snapshot {
	snap.mu.Lock()
	defer snap.mu.Unlock()
	return proto.CloneOf(snap.config)
}

// CreateSnapshot takes a snapshot of a subscription's backlog.
func (s *Server) CreateSnapshot(_ context.Context, req *pubsubpb.CreateSnapshotRequest) (*pubsubpb.Snapshot, error) {
	if err := checkName("subscription", req.Subscription, subscriptions); err != nil {
		return nil, err
	}
	name := req.Name
	if name == "" {
		name = assignedName(req.Subscription, snapshots)
	}
	if err := checkName("name", name, snapshots); err != nil {
		return nil, err
	}
	if sub, err := s.subscription("subscription", req.Subscription); err == nil {
		sub.catchUp()
	}
	s.dropExpiredSnapshots()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshots[name] != nil {
		return nil, alreadyExists(name)
	}
	sub := s.subscriptions[req.Subscription]
	if sub == nil {
		return nil, notFound(req.Subscription)
	}
	sub.mu.Lock()
	t, ended, isOrdered := sub.topic, sub.ended, sub.backlog.rules.ordered
	sub.mu.Unlock()
	if ended != nil {
		return nil, ended
	}
	if t == nil {
		return nil, status.Errorf(codes.FailedPrecondition, "subscription %s: its topic is deleted, and a snapshot needs a topic", sub.name)
	}
	t.mu.Lock() // waits for running publishes: a snapshot has all messages of a publish or none
	defer t.mu.Unlock()
	holder := s.lastHolder.Add(1)
	messages := sub.unacked(holder)
	now := s.opts.Clock.Now()
	life := snapshotLife
	if len(messages) > 0 {
		life -= max(now.Sub(time.Unix(0, messages[0].stored)), 0) // negative if the clock was set back
	}
	if life < minSnapshotLife {
		if err := s.write(journal.Release(holder)); err != nil {
			return nil, err
		}
		return nil, status.Errorf(codes.FailedPrecondition,
			"subscription %s: its oldest unacked message leaves the snapshot less than %v to live; ack or seek first", sub.name, minSnapshotLife)
	}
	snap := &snapshot{name: name, holder: holder, topic: t, ordered: isOrdered, messages: messages, config: &pubsubpb.Snapshot{
		Name: name, Topic: t.name, Labels: req.Labels, ExpireTime: timestamppb.New(now.Add(life)),
	}}
	if err := s.persistSnapshot(snap, snap.config); err != nil {
		return nil, err
	}
	s.snapshots[name] = snap
	t.snapshots = append(t.snapshots, snap)
	return snap.describe(), nil
}

// unacked lists the unacked messages by arrival and records them in the journal for
// a new holder before any of them can be settled.
func (sub *subscription) unacked(holder uint64) []*message {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	var messages []*message
	for e := sub.backlog.all.head; e != nil; e = sub.backlog.all.after(e) {
		if e.state != stateAcked {
			messages = append(messages, e.msg)
		}
	}
	if sub.backlog.tracked {
		sub.server.journal.Settle(holder, idsOf(messages), nil, nil)
	}
	return messages
}

func (s *Server) snapshot(field, name string) (*snapshot, error) {
	if err := checkName(field, name, snapshots); err != nil {
		return nil, err
	}
	s.dropExpiredSnapshots()
	s.mu.RLock()
	defer s.mu.RUnlock()
	snap := s.snapshots[name]
	if snap == nil {
		return nil, notFound(name)
	}
	return snap, nil
}

func (snap *snapshot) expired(now time.Time) bool {
	snap.mu.Lock()
	defer snap.mu.Unlock()
	return !snap.config.ExpireTime.AsTime().After(now)
}

func (t *topic) hasExpiredSnapshot(now time.Time) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.ContainsFunc(t.snapshots, func(snap *snapshot) bool { return snap.expired(now) })
}

// dropExpiredSnapshots removes expired snapshots. Calls that use snapshots or would
// add a message to one call it, and so does housekeeping.
func (s *Server) dropExpiredSnapshots() {
	now := s.opts.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, snap := range s.snapshots {
		if snap.expired(now) {
			if err := s.removeSnapshot(snap); err != nil {
				s.opts.Logger.Error("could not remove an expired snapshot", slog.String("snapshot", snap.name), slog.Any("err", err))
			}
		}
	}
}

// removeSnapshot removes a snapshot. The caller holds the lock of the server.
func (s *Server) removeSnapshot(snap *snapshot) error {
	snap.leaveTopic() // after this nothing is added to what is removed
	if err := s.forget(journal.Snapshot, snap.name, snap.holder); err != nil {
		return err
	}
	delete(s.snapshots, snap.name)
	return nil
}

// leaveTopic removes a snapshot from its topic and drops its messages.
func (snap *snapshot) leaveTopic() {
	snap.mu.Lock()
	t := snap.topic
	snap.topic, snap.messages = nil, nil
	snap.mu.Unlock()
	if t == nil {
		return
	}
	t.mu.Lock()
	if i := slices.Index(t.snapshots, snap); i >= 0 {
		t.snapshots = slices.Delete(t.snapshots, i, i+1)
	}
	t.mu.Unlock()
}

// GetSnapshot returns a snapshot's settings.
func (s *Server) GetSnapshot(_ context.Context, req *pubsubpb.GetSnapshotRequest) (*pubsubpb.Snapshot, error) {
	snap, err := s.snapshot("snapshot", req.Snapshot)
	if err != nil {
		return nil, err
	}
	return snap.describe(), nil
}

// ListSnapshots lists the snapshots of a project by name.
func (s *Server) ListSnapshots(_ context.Context, req *pubsubpb.ListSnapshotsRequest) (*pubsubpb.ListSnapshotsResponse, error) {
	if err := checkProject("project", req.Project); err != nil {
		return nil, err
	}
	s.dropExpiredSnapshots()
	s.mu.RLock()
	defer s.mu.RUnlock()
	names, next, err := page(namesIn(s.snapshots, req.Project), req.PageSize, req.PageToken)
	if err != nil {
		return nil, err
	}
	out := &pubsubpb.ListSnapshotsResponse{NextPageToken: next}
	for _, name := range names {
		out.Snapshots = append(out.Snapshots, s.snapshots[name].describe())
	}
	return out, nil
}

var mutableSnapshotFields = map[string]bool{"labels": true, "expire_time": true}

// UpdateSnapshot changes the fields the mask names.
func (s *Server) UpdateSnapshot(_ context.Context, req *pubsubpb.UpdateSnapshotRequest) (*pubsubpb.Snapshot, error) {
	snap, err := s.snapshot("snapshot.name", req.Snapshot.GetName())
	if err != nil {
		return nil, err
	}
	return s.changeSnapshot(snap, req)
}

func (s *Server) changeSnapshot(snap *snapshot, req *pubsubpb.UpdateSnapshotRequest) (*pubsubpb.Snapshot, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.snapshots[snap.name] != snap { // deleted meanwhile
		return nil, notFound(snap.name)
	}
	snap.mu.Lock()
	defer snap.mu.Unlock()
	config := proto.CloneOf(snap.config)
	if err := applyMask(config, req.Snapshot, req.UpdateMask, mutableSnapshotFields); err != nil {
		return nil, err
	}
	if err := config.ExpireTime.CheckValid(); err != nil {
		return nil, invalid("snapshot.expire_time: %v", err)
	}
	if latest := s.opts.Clock.Now().Add(snapshotLife); config.ExpireTime.AsTime().After(latest) {
		return nil, invalid("snapshot.expire_time: more than %v from now; use an earlier time", snapshotLife)
	}
	if err := s.persistSnapshot(snap, config); err != nil {
		return nil, err
	}
	snap.config = config
	return proto.CloneOf(config), nil
}

// DeleteSnapshot removes a snapshot.
func (s *Server) DeleteSnapshot(_ context.Context, req *pubsubpb.DeleteSnapshotRequest) (*emptypb.Empty, error) {
	snap, err := s.snapshot("snapshot", req.Snapshot)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshots[snap.name] != snap {
		return nil, notFound(snap.name)
	}
	return &emptypb.Empty{}, s.removeSnapshot(snap)
}
