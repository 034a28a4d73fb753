package pubsubemu

import "google.golang.org/grpc/codes"

// Difference is one deliberate deviation.
type Difference struct {
	Topic string // what behaves differently
	From  string // "production" or "official emulator"
	How   string // what this server does
	Why   string
	Calls []CallDifference // calls on which the differential test sees it
}

// CallDifference is a call of the differential test, by the start of its name,
// on which the two servers answer with different codes, or both OK but otherwise.
type CallDifference struct {
	Operation      string
	Ours, Official codes.Code
}

// Differences lists every deliberate deviation from production and from the
// official emulator that is known.
var Differences = []Difference{
	{
		Topic: "push, BigQuery, Cloud Storage and Bigtable subscriptions, ingestion, message transforms, schemas", From: "production",
		How: "UNIMPLEMENTED, naming the field", Why: "the fleet pulls",
	},
	{
		Topic: "expiration_policy", From: "production",
		How: "checked and stored; idle subscriptions are never deleted", Why: "a test must not lose a subscription to a clock it advances",
	},
	{
		Topic: "broken stream", From: "production",
		How: "its unacked messages are redelivered at once, not after their deadlines; not so with exactly-once delivery",
		Why: "a test of a crashed subscriber need not wait",
	},
	{
		Topic: "retry policy", From: "production",
		How: "backoff without jitter, kept by every message", Why: "a test with a fake clock knows when a message comes back",
	},
	{
		Topic: "message_retention_duration of a topic, longer than the subscription's", From: "production",
		How: "a seek brings back what the topic retains only as far as the subscription's own retention reaches",
		Why: "one rule says when a subscription forgets a message; set both to seek further back",
	},
	{
		Topic: "permissions, quotas, regions, encryption keys", From: "production",
		How: "not modelled; the fields are stored", Why: "outside of what the tests need",
	},
	{
		Topic: "ListTopicSubscriptions of a missing topic", From: "official emulator",
		How: "NOT_FOUND, not an empty list", Why: "production says NOT_FOUND",
		Calls: []CallDifference{{"list", codes.NotFound, codes.OK}},
	},
	{
		Topic: "dead_letter_policy.max_delivery_attempts over 100", From: "official emulator",
		How: "INVALID_ARGUMENT, not OUT_OF_RANGE", Why: "production says INVALID_ARGUMENT",
		Calls: []CallDifference{{"create subscription", codes.InvalidArgument, codes.OutOfRange}},
	},
	{
		Topic: "ack_deadline_seconds under 10 of a subscription, over 600 of ModifyAckDeadline", From: "official emulator",
		How: "INVALID_ARGUMENT, not accepted", Why: "the documented limit",
	},
	{
		Topic: "malformed ack ids", From: "official emulator",
		How: "INVALID_ARGUMENT, not ignored", Why: "production says INVALID_ARGUMENT; only ids that were once issued may be ignored",
		Calls: []CallDifference{
			{"ack a malformed id", codes.InvalidArgument, codes.OK},
			{"modify a malformed id", codes.InvalidArgument, codes.OK},
		},
	},
	{
		Topic: "Seek to a snapshot of a deleted topic from a subscription of a new topic of the same name", From: "official emulator",
		How: "FAILED_PRECONDITION, not OK", Why: "they are different topics: the snapshot holds none of the subscription's messages",
		Calls: []CallDifference{{"seek", codes.FailedPrecondition, codes.OK}},
	},
	{
		Topic: "Seek to a snapshot of a younger subscription", From: "official emulator",
		How: "acks what the snapshot does not hold, also messages older than the snapshot's subscription",
		Why: "a snapshot stands for the ack state to restore",
	},
	{
		Topic: "Seek to a time of a subscription with message ordering", From: "official emulator",
		How: "implemented, not UNIMPLEMENTED", Why: "P-SEEK-01",
		Calls: []CallDifference{{"seek", codes.OK, codes.Unimplemented}},
	},
	{
		Topic: "Seek to a time of a subscription that retains acked messages", From: "official emulator",
		How: "what it acks is retained too, for a later seek back", Why: "production marks it as acked, and retains what is acked",
	},
	{
		Topic: "Seek to a time of a subscription whose topic is deleted", From: "official emulator",
		How: "brings nothing back that only the topic retained", Why: "what a topic retains goes with it",
	},
	{
		Topic: "a new subscription of a topic that retains messages", From: "official emulator",
		How: "gets what is published from then on; a seek brings back what is older", Why: "production does so",
	},
	{
		Topic: "filters", From: "official emulator",
		How: "applied, and an ill-formed one is INVALID_ARGUMENT; not stored and ignored", Why: "P-DEL-07",
		Calls: []CallDifference{{"create subscription with an ill-formed filter", codes.InvalidArgument, codes.OK}},
	},
	{
		Topic: "retry_policy", From: "official emulator",
		How: "kept: a nacked or expired message waits for its backoff; not stored and ignored", Why: "P-DEL-03",
		Calls: []CallDifference{{"pull", codes.OK, codes.OK}},
	},
	{
		Topic: "UpdateSubscription of labels, of expiration_policy or of one field of a policy", From: "official emulator",
		How: "applied, not INVALID_ARGUMENT", Why: "production applies it",
	},
	{
		Topic: "UpdateSnapshot, DetachSubscription", From: "official emulator",
		How: "implemented, not UNIMPLEMENTED", Why: "P-RPC-01",
	},
	{
		Topic: "Publish of over 10,000,000 bytes, Acknowledge and ModifyAckDeadline of over 512 KiB", From: "official emulator",
		How: "INVALID_ARGUMENT, not accepted", Why: "the limits of the service",
	},
	{
		Topic: "dead letters", From: "official emulator",
		How: "forwarded by the last nack or expiry, not when a subscriber asks again", Why: "a subscription nobody reads any more must not keep its dead letters back",
	},
	{
		Topic: "attribute keys over 256 bytes, values over 1,024 bytes, ordering keys over 1,024 bytes", From: "official emulator",
		How: "INVALID_ARGUMENT, not accepted", Why: "the documented limit",
	},
	{
		Topic: "expiration_policy.ttl under a day", From: "official emulator",
		How: "INVALID_ARGUMENT, not accepted", Why: "the documented limit",
	},
	{
		Topic: "CreateSubscription and CreateSnapshot with several faults", From: "official emulator",
		How: "another one may be reported first", Why: "the order is not documented",
		Calls: []CallDifference{
			{"create subscription", codes.InvalidArgument, codes.AlreadyExists},
			{"create subscription", codes.InvalidArgument, codes.NotFound},
			{"snapshot", codes.InvalidArgument, codes.AlreadyExists},
		},
	},
	{
		Topic: "CreateSnapshot of a subscription whose topic is deleted", From: "official emulator",
		How: "FAILED_PRECONDITION, not OK", Why: "nothing could be published after it, and no subscription of the topic could seek to it",
		Calls: []CallDifference{{"snapshot", codes.FailedPrecondition, codes.OK}},
	},
	{
		Topic: "CreateSnapshot with an ill-formed subscription name", From: "official emulator",
		How: "INVALID_ARGUMENT, not NOT_FOUND", Why: "the text says what is wrong with the name",
		Calls: []CallDifference{{"snapshot", codes.InvalidArgument, codes.NotFound}},
	},
}
