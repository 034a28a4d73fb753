package pubsubemu

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/dronefleet/dronefleet/emulator/pubsub/internal/filter"
	"github.com/dronefleet/dronefleet/emulator/pubsub/internal/journal"
)

// messagesPerStart is how many message ids are reserved for each start. Ids rise
// from start to start, and none is used twice: not even that of a message that
// nothing held and that therefore is not on disk.
const messagesPerStart = 1 << 40

// restore opens the journal, if a data directory is set, and loads it. Leases and
// delivery attempts are not kept.
func (s *Server) restore() error {
	started := uint64(s.opts.Clock.Now().Unix())
	s.instances = started << 32
	if s.opts.DataDir == "" {
		return nil
	}
	j, state, err := journal.Open(s.opts.DataDir, s.unwritable)
	if err != nil {
		return err
	}
	s.journal = j
	// Ack ids of an earlier start must not match deliveries of this one, even
	// when the injected clock stands still.
	s.instances += state.Boots << 20
	s.lastMessage.Store((state.Boots - 1) * messagesPerStart)
	s.lastHolder.Store(state.LastHolder)
	s.mu.Lock()
	defer s.mu.Unlock()
	load := loader{server: s, state: state, messages: map[uint64]*message{}}
	for _, r := range state.Resources[journal.Topic] {
		if err := load.topic(r); err != nil {
			return fmt.Errorf("restore %s: %w", r.Name, err)
		}
	}
	for _, r := range state.Resources[journal.Subscription] {
		if err := load.subscription(r); err != nil {
			return fmt.Errorf("restore %s: %w", r.Name, err)
		}
	}
	for _, r := range state.Resources[journal.Snapshot] {
		if err := load.snapshot(r); err != nil {
			return fmt.Errorf("restore %s: %w", r.Name, err)
		}
	}
	for holder := range state.Holds { // of snapshots whose creation a crash interrupted
		if err := j.Apply(journal.Release(holder)); err != nil {
			return err
		}
	}
	return nil
}

// unwritable logs that the journal failed. Clients only see that each of their calls
// fails, and try again.
func (s *Server) unwritable(err error) {
	s.opts.Logger.Error("embedded Pub/Sub cannot write its data directory and keeps nothing from now on; repair the disk and restart it",
		slog.String("data_dir", s.opts.DataDir), slog.Any("err", err))
	if s.opts.OnUnwritable != nil {
		s.opts.OnUnwritable(err)
	}
}

// loader turns the content of a journal into resources. It consumes the holds.
type loader struct {
	server   *Server
	state    *journal.State
	messages map[uint64]*message
}

func (l *loader) topic(r journal.Resource) error {
	config := &pubsubpb.Topic{}
	if err := proto.Unmarshal(r.Config, config); err != nil {
		return err
	}
	t := &topic{name: r.Name, holder: r.Holder, journal: l.server.journal, config: config}
	held, err := l.held(r.Holder)
	if err != nil {
		return err
	}
	for _, h := range held {
		t.retained = append(t.retained, h.msg)
	}
	l.server.topics[r.Name] = t
	return nil
}

func (l *loader) subscription(r journal.Resource) error {
	config := &pubsubpb.Subscription{}
	if err := proto.Unmarshal(r.Config, config); err != nil {
		return err
	}
	parsed, err := filter.Parse(config.Filter)
	if err != nil {
		return err
	}
	t := l.server.topics[config.Topic]
	if config.Detached {
		t = nil
	}
	if t != nil { // the topic may have changed since the subscription was stored
		config.TopicMessageRetentionDuration = t.config.MessageRetentionDuration
	}
	sub := l.server.newSubscription(config, t, parsed, r.Holder)
	held, err := l.held(r.Holder)
	if err != nil {
		return err
	}
	for _, h := range held {
		if h.acked {
			sub.backlog.arrived(&entry{msg: h.msg, timer: -1, state: stateAcked})
		} else {
			sub.backlog.append(h.msg)
		}
	}
	if config.Detached {
		sub.end(errDetached(r.Name))
	}
	l.server.admit(sub)
	return nil
}

func (l *loader) snapshot(r journal.Resource) error {
	config := &pubsubpb.Snapshot{}
	if len(r.Config) == 0 {
		return errors.New("the record is empty")
	}
	if err := proto.Unmarshal(r.Config[1:], config); err != nil {
		return err
	}
	snap := &snapshot{
		name: r.Name, holder: r.Holder, config: config, topic: l.server.topics[config.Topic], ordered: r.Config[0] == 1,
	}
	held, err := l.held(r.Holder)
	if err != nil {
		return err
	}
	for _, h := range held {
		snap.messages = append(snap.messages, h.msg)
	}
	if snap.topic != nil {
		snap.topic.snapshots = append(snap.topic.snapshots, snap)
	}
	l.server.snapshots[r.Name] = snap
	return nil
}

type heldMessage struct {
	msg   *message
	acked bool
}

func (l *loader) held(holder uint64) ([]heldMessage, error) {
	var out []heldMessage
	for _, h := range l.state.Holds[holder] {
		m, err := l.message(h.ID)
		if err != nil {
			return nil, err
		}
		if m != nil {
			out = append(out, heldMessage{m, h.Acked})
		}
	}
	delete(l.state.Holds, holder)
	return out, nil
}

// message decodes a stored message once for all its holders.
func (l *loader) message(id uint64) (*message, error) {
	if m := l.messages[id]; m != nil {
		return m, nil
	}
	stored, ok := l.state.Messages[id]
	if !ok {
		return nil, nil
	}
	decoded := &pubsubpb.PubsubMessage{}
	if err := proto.Unmarshal(stored.Wire, decoded); err != nil {
		return nil, fmt.Errorf("message %d: %w", id, err)
	}
	m := &message{
		id: id, wire: stored.Wire, size: flowSize(decoded), key: decoded.OrderingKey,
		published: time.Unix(0, stored.Published), stored: stored.Stored,
	}
	l.messages[id] = m
	return m, nil
}

// record stores a publish and returns once it is on disk.
func (s *Server) record(msgs []*message, shares []share) error {
	if s.journal == nil || len(shares) == 0 {
		return nil
	}
	stored := make([]journal.Message, len(msgs))
	for i, m := range msgs {
		stored[i] = journal.Message{ID: m.id, Published: m.published.UnixNano(), Stored: m.stored, Wire: m.wire}
	}
	holds := make([]journal.Holds, len(shares))
	for i, share := range shares {
		holds[i] = journal.Holds{Holder: share.to.journalID(), IDs: idsOf(share.msgs)}
	}
	return onDisk(s.journal.Publish(stored, holds))
}

func (s *Server) persist(kind journal.Kind, name string, holder uint64, config proto.Message) error {
	put, err := putting(kind, name, holder, config)
	if err != nil {
		return err
	}
	return s.write(put)
}

func putting(kind journal.Kind, name string, holder uint64, config proto.Message) (journal.Edit, error) {
	encoded, err := proto.Marshal(config)
	if err != nil {
		return nil, invalid("%v", err)
	}
	return journal.Put(kind, journal.Resource{Name: name, Holder: holder, Config: encoded}), nil
}

func (s *Server) persistSnapshot(snap *snapshot, config *pubsubpb.Snapshot) error {
	put, err := puttingSnapshot(snap, config)
	if err != nil {
		return err
	}
	return s.write(put)
}

// puttingSnapshot stores a snapshot. The first byte of its record says whether it is
// of an ordered subscription, for which the resource has no field.
func puttingSnapshot(snap *snapshot, config *pubsubpb.Snapshot) (journal.Edit, error) {
	record := []byte{0}
	if snap.ordered {
		record[0] = 1
	}
	record, err := proto.MarshalOptions{}.MarshalAppend(record, config)
	if err != nil {
		return nil, invalid("%v", err)
	}
	return journal.Put(journal.Snapshot, journal.Resource{Name: snap.name, Holder: snap.holder, Config: record}), nil
}

func (s *Server) forget(kind journal.Kind, name string, holder uint64) error {
	return s.write(journal.Delete(kind, name, holder))
}

// write applies all edits or none, and returns once they are on disk.
func (s *Server) write(edits ...journal.Edit) error {
	if s.journal == nil {
		return nil
	}
	return onDisk(s.journal.Apply(edits...))
}

func (s *Server) sync() error {
	if s.journal == nil {
		return nil
	}
	return onDisk(s.journal.Sync())
}

func onDisk(err error) error {
	if err == nil {
		return nil
	}
	return status.Errorf(codes.Internal, "data directory: %v", err)
}

func idsOf(msgs []*message) []uint64 {
	ids := make([]uint64, len(msgs))
	for i, m := range msgs {
		ids[i] = m.id
	}
	return ids
}
