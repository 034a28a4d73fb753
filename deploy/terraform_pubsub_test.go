package deploy_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/testkit/tfmodule"
)

// checkTopics holds the module's topics to those the code makes.
func checkTopics(p *tfmodule.Plan, way map[string]cty.Value, w *world) []string {
	var made, found []string
	want := slices.Clone(w.topics)
	if _, history := way["history"]; history {
		for _, table := range pubsubio.HistoryTables {
			want = append(want, pubsubio.HistoryTopic(table))
		}
	}
	for _, topic := range p.Of("google_pubsub_topic") {
		made = append(made, topic.Text("name"))
		if len(topic.Attributes) != 1 || len(topic.Blocks) != 0 {
			found = append(found, fmt.Sprintf("%s has settings; the code makes topics without any", topic.Address()))
		}
	}
	return append(found, compare("topic", want, made)...)
}

// compare lists missing and unneeded names.
func compare(what string, want, got []string) []string {
	var found []string
	for _, name := range want {
		if !slices.Contains(got, name) {
			found = append(found, fmt.Sprintf("%s %s is missing", what, name))
		}
	}
	for _, name := range got {
		if !slices.Contains(want, name) {
			found = append(found, fmt.Sprintf("%s %s is of no use", what, name))
		}
	}
	return found
}

// checkSubscriptions holds the module's subscriptions to those the code makes,
// setting by setting. Those for drones, which the code does not make, are like
// the State Manager's own. None has a dead-letter policy of Pub/Sub's: an outage
// of Firestore must not dead-letter good messages. // F-ACK-01, F-DLQ-01
func checkSubscriptions(p *tfmodule.Plan, w *world) []string {
	want := maps.Clone(w.subscriptions)
	var names, found []string
	for _, i := range p.Of("google_pubsub_subscription") {
		name := i.Text("name")
		if strings.HasSuffix(name, "-bigquery") {
			continue // see checkHistory
		}
		if archive, ok := i.Only("bigquery_config"); ok { // F-AUD-07
			if name != "telemetry-archive" || path.Base(i.Text("topic")) != pubsubio.TopicTelemetry || archive.Text("table") == "" {
				found = append(found, fmt.Sprintf("%s archives %s in table %q", name, i.Text("topic"), archive.Text("table")))
			}
			continue
		}
		names = append(names, name)
		if strings.HasPrefix(name, pubsubio.TopicMissions+"-") {
			want[name] = comparable(w.subscriptions[pubsubio.Subscription(pubsubio.TopicTelemetry)])
			want[name].Topic = pubsubio.TopicMissions
		}
		sub, err := subscription(i)
		if err != nil {
			found = append(found, err.Error())
			continue
		}
		if diff := cmp.Diff(comparable(want[name]), comparable(sub), protocmp.Transform()); want[name] != nil && diff != "" {
			found = append(found, fmt.Sprintf("subscription %s (-code +terraform):\n%s", name, diff))
		}
	}
	return append(found, compare("subscription", slices.Sorted(maps.Keys(want)), names)...)
}

// comparable keeps what a configuration says and drops what servers add.
func comparable(s *pubsubpb.Subscription) *pubsubpb.Subscription {
	return &pubsubpb.Subscription{
		Topic: path.Base(s.GetTopic()), AckDeadlineSeconds: s.GetAckDeadlineSeconds(), RetainAckedMessages: s.GetRetainAckedMessages(),
		MessageRetentionDuration: s.GetMessageRetentionDuration(), EnableMessageOrdering: s.GetEnableMessageOrdering(),
		ExpirationPolicy: s.GetExpirationPolicy(), Filter: s.GetFilter(), DeadLetterPolicy: s.GetDeadLetterPolicy(),
		RetryPolicy: s.GetRetryPolicy(), EnableExactlyOnceDelivery: s.GetEnableExactlyOnceDelivery(), Detached: s.GetDetached(),
	}
}

// subscription is what the provider would ask Pub/Sub for.
func subscription(i tfmodule.Instance) (*pubsubpb.Subscription, error) {
	s := &pubsubpb.Subscription{Topic: i.Text("topic"), Filter: i.Text("filter")}
	known := []string{"name", "topic", "filter", "ack_deadline_seconds", "enable_message_ordering", "message_retention_duration"}
	for name, v := range i.Attributes {
		switch {
		case !slices.Contains(known, name):
			return nil, fmt.Errorf("%s: this test does not know %s", i.Address(), name)
		case name == "ack_deadline_seconds":
			n, _ := v.AsBigFloat().Int64()
			s.AckDeadlineSeconds = int32(n)
		case name == "enable_message_ordering":
			s.EnableMessageOrdering = v.RawEquals(cty.True)
		}
	}
	var err error
	seconds := func(text string) *durationpb.Duration {
		d, parseErr := time.ParseDuration(text)
		if parseErr != nil {
			err = fmt.Errorf("%s: %w", i.Address(), parseErr)
		}
		return durationpb.New(d)
	}
	s.MessageRetentionDuration = seconds(i.Text("message_retention_duration"))
	if expiration, ok := i.Only("expiration_policy"); ok {
		s.ExpirationPolicy = &pubsubpb.ExpirationPolicy{}
		if ttl := expiration.Text("ttl"); ttl != "" {
			s.ExpirationPolicy.Ttl = seconds(ttl)
		}
	}
	if retry, ok := i.Only("retry_policy"); ok {
		s.RetryPolicy = &pubsubpb.RetryPolicy{MinimumBackoff: seconds(retry.Text("minimum_backoff")), MaximumBackoff: seconds(retry.Text("maximum_backoff"))}
	}
	if dead, ok := i.Only("dead_letter_policy"); ok {
		s.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: dead.Text("dead_letter_topic")}
	}
	return s, err
}
