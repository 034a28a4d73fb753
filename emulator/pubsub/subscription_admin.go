package pubsubemu

import (
	"context"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/dronefleet/dronefleet/emulator/pubsub/internal/filter"
	"github.com/dronefleet/dronefleet/emulator/pubsub/internal/journal"
)

// CreateSubscription adds a pull subscription to a topic.
func (s *Server) CreateSubscription(_ context.Context, req *pubsubpb.Subscription) (*pubsubpb.Subscription, error) {
	if err := checkName("topic", req.Topic, topics); err != nil {
		return nil, err
	}
	config := proto.CloneOf(req)
	if config.Name == "" {
		config.Name = assignedName(config.Topic, subscriptions)
	}
	if err := checkName("name", config.Name, subscriptions); err != nil {
		return nil, err
	}
	if err := completeAckDeadline(config); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closing: // Close has ended all subscriptions that it found
		return nil, errClosing
	default:
	}
	if s.subscriptions[config.Name] != nil {
		return nil, alreadyExists(config.Name)
	}
	t := s.topics[config.Topic]
	if t == nil {
		return nil, notFound(config.Topic)
	}
	if err := s.checkDeadLetterTopic(config); err != nil {
		return nil, err
	}
	if err := completeSubscription(config); err != nil {
		return nil, err
	}
	parsed, err := filter.Parse(config.Filter)
	if err != nil {
		return nil, invalid("%v", err) // the error names the field
	}
	config.TopicMessageRetentionDuration = t.describe().MessageRetentionDuration
	holder := s.lastHolder.Add(1)
	if err := s.persist(journal.Subscription, config.Name, holder, config); err != nil {
		return nil, err
	}
	sub := s.newSubscription(config, t, parsed, holder)
	s.admit(sub)
	return sub.describe(), nil
}

// admit makes a subscription reachable and starts its timer. The caller holds
// the lock of the server.
func (s *Server) admit(sub *subscription) {
	s.subscriptions[sub.name] = sub
	if sub.topic != nil {
		sub.topic.attach(sub)
	}
	s.serving.Go(sub.run)
}

var mutableSubscriptionFields = map[string]bool{
	"push_config": true, "bigquery_config": true, "cloud_storage_config": true, "bigtable_config": true,
	"message_transforms": true, "ack_deadline_seconds": true, "retain_acked_messages": true,
	"message_retention_duration": true, "labels": true, "expiration_policy": true,
	"dead_letter_policy": true, "retry_policy": true, "enable_exactly_once_delivery": true,
}

// UpdateSubscription changes the fields that the mask names. Running leases keep
// their deadlines.
func (s *Server) UpdateSubscription(_ context.Context, req *pubsubpb.UpdateSubscriptionRequest) (*pubsubpb.Subscription, error) {
	sub, err := s.subscription("subscription.name", req.Subscription.GetName())
	if err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.subscriptions[sub.name] != sub { // deleted meanwhile
		return nil, notFound(sub.name)
	}
	sub.mu.Lock()
	defer sub.unlock()
	config := proto.CloneOf(sub.config)
	if err := applyMask(config, req.Subscription, req.UpdateMask, mutableSubscriptionFields); err != nil {
		return nil, err
	}
	detached := config.Detached
	if err := completeSubscription(config); err != nil {
		return nil, err
	}
	config.Detached = detached
	if proto.Equal(config.DeadLetterPolicy, sub.config.DeadLetterPolicy) {
		// unchanged: its topic may have been deleted meanwhile
	} else if err := s.checkDeadLetterTopic(config); err != nil {
		return nil, err
	}
	if err := s.persist(journal.Subscription, sub.name, sub.holder, config); err != nil {
		return nil, err
	}
	sub.config = config
	sub.backlog.rules = rulesOf(config)
	if !config.RetainAckedMessages {
		sub.backlog.stopRetaining()
	}
	return proto.CloneOf(config), nil
}

// ModifyPushConfig accepts only the empty configuration, which means pull.
func (s *Server) ModifyPushConfig(_ context.Context, req *pubsubpb.ModifyPushConfigRequest) (*emptypb.Empty, error) {
	if _, err := s.subscription("subscription", req.Subscription); err != nil {
		return nil, err
	}
	if req.PushConfig.GetPushEndpoint() != "" {
		return nil, unsupported("push_config")
	}
	return &emptypb.Empty{}, nil
}

// GetSubscription returns a subscription's settings.
func (s *Server) GetSubscription(_ context.Context, req *pubsubpb.GetSubscriptionRequest) (*pubsubpb.Subscription, error) {
	sub, err := s.subscription("subscription", req.Subscription)
	if err != nil {
		return nil, err
	}
	return sub.describe(), nil
}

// ListSubscriptions lists the subscriptions of a project by name.
func (s *Server) ListSubscriptions(_ context.Context, req *pubsubpb.ListSubscriptionsRequest) (*pubsubpb.ListSubscriptionsResponse, error) {
	if err := checkProject("project", req.Project); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	names, next, err := page(namesIn(s.subscriptions, req.Project), req.PageSize, req.PageToken)
	if err != nil {
		return nil, err
	}
	out := &pubsubpb.ListSubscriptionsResponse{NextPageToken: next}
	for _, name := range names {
		out.Subscriptions = append(out.Subscriptions, s.subscriptions[name].describe())
	}
	return out, nil
}

// DeleteSubscription removes a subscription with its backlog and ends its streams.
func (s *Server) DeleteSubscription(_ context.Context, req *pubsubpb.DeleteSubscriptionRequest) (*emptypb.Empty, error) {
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
	sub.end(status.Errorf(codes.NotFound, "Subscription does not exist (resource=%s).", idOf(sub.name))) // after this nothing is added to what is removed
	if err := s.forget(journal.Subscription, sub.name, sub.holder); err != nil {
		return nil, err
	}
	delete(s.subscriptions, sub.name)
	return &emptypb.Empty{}, nil
}

// leaveTopic removes a subscription from its topic.
func (sub *subscription) leaveTopic() {
	sub.mu.Lock()
	t := sub.topic
	sub.topic = nil
	sub.mu.Unlock()
	if t != nil {
		t.detach(sub)
	}
}
