package pubsubemu

import (
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// completeSubscription checks the settings and fills in the defaults.
func completeSubscription(config *pubsubpb.Subscription) error {
	for field, set := range map[string]bool{
		"push_config":          config.PushConfig.GetPushEndpoint() != "",
		"bigquery_config":      config.BigqueryConfig != nil,
		"cloud_storage_config": config.CloudStorageConfig != nil,
		"bigtable_config":      config.BigtableConfig != nil,
		"message_transforms":   len(config.MessageTransforms) > 0,
	} {
		if set {
			return unsupported(field)
		}
	}
	if err := completeAckDeadline(config); err != nil {
		return err
	}
	if config.MessageRetentionDuration == nil {
		config.MessageRetentionDuration = durationpb.New(defaultSubRetention)
	}
	if err := checkRange("message_retention_duration", config.MessageRetentionDuration, minRetention, maxSubRetention); err != nil {
		return err
	}
	if err := completeExpiration(config); err != nil {
		return err
	}
	if err := completeDeadLetter(config.DeadLetterPolicy); err != nil {
		return err
	}
	if err := completeRetry(config.RetryPolicy); err != nil {
		return err
	}
	if config.PushConfig == nil {
		config.PushConfig = &pubsubpb.PushConfig{}
	}
	config.State = pubsubpb.Subscription_ACTIVE
	config.Detached = false
	return nil
}

func completeAckDeadline(config *pubsubpb.Subscription) error {
	if config.AckDeadlineSeconds == 0 {
		config.AckDeadlineSeconds = minAckDeadline
	}
	if seconds := config.AckDeadlineSeconds; seconds < minAckDeadline || seconds > maxAckDeadline {
		return invalid("ack_deadline_seconds: %d is out of range; use %d to %d", seconds, minAckDeadline, maxAckDeadline)
	}
	return nil
}

func completeExpiration(config *pubsubpb.Subscription) error {
	if config.ExpirationPolicy == nil {
		config.ExpirationPolicy = &pubsubpb.ExpirationPolicy{Ttl: durationpb.New(defaultExpirationTTL)}
	}
	ttl := config.ExpirationPolicy.Ttl
	if ttl == nil {
		return nil // never expires
	}
	if ttl.AsDuration() < minExpirationTTL {
		return invalid("expiration_policy.ttl: %v; use at least %v, or none", ttl.AsDuration(), minExpirationTTL)
	}
	if retention := config.MessageRetentionDuration.AsDuration(); ttl.AsDuration() < retention {
		return invalid("expiration_policy.ttl: %v is less than message_retention_duration %v", ttl.AsDuration(), retention)
	}
	return nil
}

func completeDeadLetter(p *pubsubpb.DeadLetterPolicy) error {
	if p == nil {
		return nil
	}
	if p.MaxDeliveryAttempts == 0 {
		p.MaxDeliveryAttempts = defaultDeadLetter
	}
	if n := p.MaxDeliveryAttempts; n < minDeadLetterTries || n > maxDeadLetterTries {
		return invalid("dead_letter_policy.max_delivery_attempts: %d is out of range; use %d to %d",
			n, minDeadLetterTries, maxDeadLetterTries)
	}
	return nil
}

func completeRetry(p *pubsubpb.RetryPolicy) error {
	if p == nil {
		return nil
	}
	if p.MinimumBackoff == nil {
		p.MinimumBackoff = durationpb.New(min(defaultMinBackoff, backoffOr(p.MaximumBackoff, defaultMinBackoff)))
	}
	if p.MaximumBackoff == nil {
		p.MaximumBackoff = durationpb.New(defaultMaxBackoff)
	}
	if err := checkRange("retry_policy.minimum_backoff", p.MinimumBackoff, 0, defaultMaxBackoff); err != nil {
		return err
	}
	if err := checkRange("retry_policy.maximum_backoff", p.MaximumBackoff, 0, defaultMaxBackoff); err != nil {
		return err
	}
	if p.MinimumBackoff.AsDuration() > p.MaximumBackoff.AsDuration() {
		return invalid("retry_policy: minimum_backoff %v is more than maximum_backoff %v",
			p.MinimumBackoff.AsDuration(), p.MaximumBackoff.AsDuration())
	}
	return nil
}

func backoffOr(d *durationpb.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.AsDuration()
}

// checkDeadLetterTopic refuses a dead-letter topic that is ill-named or does not
// exist. The caller holds the lock of the server.
func (s *Server) checkDeadLetterTopic(config *pubsubpb.Subscription) error {
	p := config.DeadLetterPolicy
	if p == nil {
		return nil
	}
	if err := checkName("dead_letter_policy.dead_letter_topic", p.DeadLetterTopic, topics); err != nil {
		return err
	}
	if s.topics[p.DeadLetterTopic] == nil {
		return notFound(p.DeadLetterTopic)
	}
	return nil
}
