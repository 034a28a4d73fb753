package pubsubemu

import (
	"context"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/dronefleet/dronefleet/emulator/pubsub/internal/journal"
)

// CreateTopic adds a topic.
func (s *Server) CreateTopic(_ context.Context, req *pubsubpb.Topic) (*pubsubpb.Topic, error) {
	if err := checkName("name", req.Name, topics); err != nil {
		return nil, err
	}
	config := proto.CloneOf(req)
	if err := completeTopic(config); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topics[req.Name] != nil {
		return nil, alreadyExists(req.Name)
	}
	t := &topic{name: req.Name, holder: s.lastHolder.Add(1), journal: s.journal, config: config}
	if err := s.persist(journal.Topic, t.name, t.holder, config); err != nil {
		return nil, err
	}
	s.topics[t.name] = t
	return proto.CloneOf(config), nil
}

// completeTopic checks the settings and fills in what the service sets.
func completeTopic(config *pubsubpb.Topic) error {
	if config.SchemaSettings != nil {
		return errNoSchemas
	}
	if config.IngestionDataSourceSettings != nil {
		return unsupported("ingestion_data_source_settings")
	}
	if len(config.MessageTransforms) > 0 {
		return unsupported("message_transforms")
	}
	if d := config.MessageRetentionDuration; d != nil {
		if err := checkRange("message_retention_duration", d, minRetention, maxTopicRetention); err != nil {
			return err
		}
	}
	config.State = pubsubpb.Topic_ACTIVE
	return nil
}

func unsupported(field string) error {
	return status.Errorf(codes.Unimplemented, "%s: not supported by the embedded Pub/Sub server; leave it unset", field)
}

var mutableTopicFields = map[string]bool{
	"labels": true, "message_storage_policy": true, "kms_key_name": true, "message_retention_duration": true,
	"schema_settings": true, "ingestion_data_source_settings": true, "message_transforms": true,
}

// UpdateTopic changes the fields the mask names.
func (s *Server) UpdateTopic(_ context.Context, req *pubsubpb.UpdateTopicRequest) (*pubsubpb.Topic, error) {
	t, err := s.topic("topic.name", req.Topic.GetName())
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deleted {
		return nil, notFound(t.name)
	}
	config := proto.CloneOf(t.config)
	if err := applyMask(config, req.Topic, req.UpdateMask, mutableTopicFields); err != nil {
		return nil, err
	}
	if err := completeTopic(config); err != nil {
		return nil, err
	}
	if err := s.persist(journal.Topic, t.name, t.holder, config); err != nil {
		return nil, err
	}
	t.config = config
	t.retainedMu.Lock()
	t.trim(s.now())
	t.retainedMu.Unlock()
	for _, sub := range t.subscriptions {
		sub.mu.Lock()
		sub.config.TopicMessageRetentionDuration = config.MessageRetentionDuration
		sub.mu.Unlock()
	}
	return proto.CloneOf(config), nil
}

// GetTopic returns a topic's settings.
func (s *Server) GetTopic(_ context.Context, req *pubsubpb.GetTopicRequest) (*pubsubpb.Topic, error) {
	t, err := s.topic("topic", req.Topic)
	if err != nil {
		return nil, err
	}
	return t.describe(), nil
}

func (t *topic) describe() *pubsubpb.Topic {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return proto.CloneOf(t.config)
}

// ListTopics lists the topics of a project by name.
func (s *Server) ListTopics(_ context.Context, req *pubsubpb.ListTopicsRequest) (*pubsubpb.ListTopicsResponse, error) {
	if err := checkProject("project", req.Project); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	names, next, err := page(namesIn(s.topics, req.Project), req.PageSize, req.PageToken)
	if err != nil {
		return nil, err
	}
	out := &pubsubpb.ListTopicsResponse{NextPageToken: next}
	for _, name := range names {
		out.Topics = append(out.Topics, s.topics[name].describe())
	}
	return out, nil
}

// ListTopicSubscriptions lists the names of a topic's subscriptions.
func (s *Server) ListTopicSubscriptions(_ context.Context, req *pubsubpb.ListTopicSubscriptionsRequest) (*pubsubpb.ListTopicSubscriptionsResponse, error) {
	t, err := s.topic("topic", req.Topic)
	if err != nil {
		return nil, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	var names []string
	for _, sub := range t.subscriptions {
		names = append(names, sub.name)
	}
	names, next, err := page(names, req.PageSize, req.PageToken)
	if err != nil {
		return nil, err
	}
	return &pubsubpb.ListTopicSubscriptionsResponse{Subscriptions: names, NextPageToken: next}, nil
}

// ListTopicSnapshots lists the names of a topic's snapshots.
func (s *Server) ListTopicSnapshots(_ context.Context, req *pubsubpb.ListTopicSnapshotsRequest) (*pubsubpb.ListTopicSnapshotsResponse, error) {
	t, err := s.topic("topic", req.Topic)
	if err != nil {
		return nil, err
	}
	s.dropExpiredSnapshots()
	t.mu.RLock()
	defer t.mu.RUnlock()
	var names []string
	for _, snap := range t.snapshots {
		names = append(names, snap.name)
	}
	names, next, err := page(names, req.PageSize, req.PageToken)
	if err != nil {
		return nil, err
	}
	return &pubsubpb.ListTopicSnapshotsResponse{Snapshots: names, NextPageToken: next}, nil
}

// DeleteTopic removes a topic. Its subscriptions keep their backlog.
func (s *Server) DeleteTopic(_ context.Context, req *pubsubpb.DeleteTopicRequest) (*emptypb.Empty, error) {
	t, err := s.topic("topic", req.Topic)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topics[req.Topic] != t {
		return nil, notFound(req.Topic)
	}
	t.mu.Lock() // waits for running publishes, so that the subscriptions have their messages
	defer t.mu.Unlock()
	edits := []journal.Edit{journal.Delete(journal.Topic, t.name, t.holder)}
	orphans, remains := map[*subscription]*pubsubpb.Subscription{}, make([]*pubsubpb.Snapshot, len(t.snapshots))
	for _, sub := range s.subscriptions { // also those detached from it, which still name it
		orphan := sub.describe()
		if orphan.Topic != t.name {
			continue
		}
		orphan.Topic, orphan.TopicMessageRetentionDuration = deletedTopic, nil
		orphans[sub] = orphan
		put, err := putting(journal.Subscription, sub.name, sub.holder, orphan)
		if err != nil {
			return nil, err
		}
		edits = append(edits, put)
	}
	for i, snap := range t.snapshots {
		remains[i] = snap.describe()
		remains[i].Topic = deletedTopic
		put, err := puttingSnapshot(snap, remains[i])
		if err != nil {
			return nil, err
		}
		edits = append(edits, put)
	}
	if err := s.write(edits...); err != nil {
		return nil, err
	}
	delete(s.topics, req.Topic)
	t.deleted = true
	for sub, orphan := range orphans {
		sub.mu.Lock()
		sub.topic, sub.config = nil, orphan
		sub.mu.Unlock()
	}
	for i, snap := range t.snapshots {
		snap.mu.Lock()
		snap.topic, snap.config = nil, remains[i]
		snap.mu.Unlock()
	}
	t.subscriptions, t.snapshots, t.retained = nil, nil, nil
	return &emptypb.Empty{}, nil
}

// DetachSubscription cuts a subscription from its topic and drops its backlog.
func (s *Server) DetachSubscription(_ context.Context, req *pubsubpb.DetachSubscriptionRequest) (*pubsubpb.DetachSubscriptionResponse, error) {
	sub, err := s.subscription("subscription", req.Subscription)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subscriptions[sub.name] != sub {
		return nil, notFound(sub.name)
	}
	sub.leaveTopic()
	sub.end(errDetached(sub.name)) // after this nothing is added to what is released
	sub.mu.Lock()
	sub.config.Detached = true
	put, err := putting(journal.Subscription, sub.name, sub.holder, sub.config)
	sub.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return &pubsubpb.DetachSubscriptionResponse{}, s.write(put, journal.Release(sub.holder))
}

func errDetached(name string) error {
	return status.Errorf(codes.FailedPrecondition, "subscription %s is detached from its topic; create another one", name)
}
