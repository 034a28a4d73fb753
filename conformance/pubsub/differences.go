package conformance

import "google.golang.org/grpc/codes"

// Difference is one point in which the embedded server does not behave as
// another server does, on purpose.
type Difference struct {
	Topic string // what behaves differently
	From  string // Production or OfficialEmulator
	How   string // what the embedded server does
	Why   string
	Calls []CallDifference // calls of TestDifferential that show it
}

// The servers that the embedded one differs from.
const (
	Production       = "production"
	OfficialEmulator = "official emulator"
)

// CallDifference is a call of TestDifferential, by the beginning of its name, on
// which the two servers answer with different codes, or both with OK and
// different results.
type CallDifference struct {
	Operation      string
	Ours, Official codes.Code
}

// Deliberate lists every known difference, from production as documented and from
// Google's emulator as observed (version 0.8.20).
var Deliberate = []Difference{
	{
		Topic: "push, BigQuery, Cloud Storage and Bigtable subscriptions, ingestion, message transforms, schemas", From: Production,
		How: "UNIMPLEMENTED, naming the field", Why: "the fleet pulls",
	},
	{
		Topic: "expiration_policy", From: Production,
		How: "checked and stored; idle subscriptions are never deleted", Why: "a test must not lose a subscription to a clock that it advances",
	},
	{
		Topic: "broken stream", From: Production,
		How: "its unacked messages are redelivered at once, not after their deadlines, unless delivery is exactly-once",
		Why: "a test of a crashed subscriber need not wait",
	},
	{
		Topic: "half-closed stream", From: Production,
		How: "the leases of its messages continue, as its client may still ack them", Why: "not documented; Google's clients half-close a stream to reopen it",
	},
	{
		Topic: "connection whose client is frozen", From: Production,
		How: "closed, and its streams broken, after 20 s without an answer to a ping", Why: "not documented; a stream that settles nothing seems idle and would get the same messages again and again",
	},
	{
		Topic: "ack ids that are out of order, on an exactly-once subscription with message ordering", From: Production,
		How: "FAILED_PRECONDITION, with the result of each id", Why: "the status is not documented; with an expired id it is INVALID_ARGUMENT, as documented",
	},
	{
		Topic: "retry policy", From: Production,
		How: "backoff without jitter, applied to every message", Why: "a test with a fake clock knows when a message comes back",
	},
	{
		Topic: "message_retention_duration of a topic that is longer than the subscription's", From: Production,
		How: "a seek brings back what the topic retains only as far as the subscription's own retention reaches",
		Why: "one rule says when a subscription forgets a message; to seek further back, set both",
	},
	{
		Topic: "permissions, quotas, regions, encryption keys", From: Production,
		How: "not modelled; the fields are stored", Why: "tests do not need them",
	},
	{
		Topic: "ordering keys after a StreamingPull stream broke", From: OfficialEmulator,
		How: "the unacked messages of its keys, and all later ones, are delivered to the streams that are left; the official emulator keeps assigning those keys to the broken stream and delivers none of their messages to anyone who does not open another stream",
		Why: "production redelivers them; TestDeliberate_KeysOfBrokenStream holds both servers to it",
	},
	{
		Topic: "ListTopicSubscriptions of a missing topic", From: OfficialEmulator,
		How: "NOT_FOUND, not an empty list", Why: "production answers NOT_FOUND",
		Calls: []CallDifference{{"list", codes.NotFound, codes.OK}},
	},
	{
		Topic: "dead_letter_policy.max_delivery_attempts over 100", From: OfficialEmulator,
		How: "INVALID_ARGUMENT, not OUT_OF_RANGE", Why: "production answers INVALID_ARGUMENT",
		Calls: []CallDifference{{"create subscription", codes.InvalidArgument, codes.OutOfRange}},
	},
	{
		Topic: "ack_deadline_seconds of a subscription under 10, of ModifyAckDeadline over 600", From: OfficialEmulator,
		How: "INVALID_ARGUMENT, not accepted", Why: "the documented limit",
	},
	{
		Topic: "malformed ack ids", From: OfficialEmulator,
		How: "INVALID_ARGUMENT, not ignored", Why: "production answers INVALID_ARGUMENT; only ids that were once issued may be ignored",
		Calls: []CallDifference{
			{"ack a malformed id", codes.InvalidArgument, codes.OK},
			{"modify a malformed id", codes.InvalidArgument, codes.OK},
		},
	},
	{
		Topic: "Seek to a snapshot of a deleted topic from a subscription of a new topic of the same name", From: OfficialEmulator,
		How: "FAILED_PRECONDITION, not OK", Why: "they are different topics: the snapshot holds none of the subscription's messages",
		Calls: []CallDifference{{"seek", codes.FailedPrecondition, codes.OK}},
	},
	{
		Topic: "Seek to a snapshot of a younger subscription", From: OfficialEmulator,
		How: "acks what the snapshot does not hold, including messages older than the snapshot's subscription",
		Why: "a snapshot stands for the ack state to restore",
	},
	{
		Topic: "Seek to a time of a subscription with message ordering", From: OfficialEmulator,
		How: "implemented, not UNIMPLEMENTED", Why: "P-SEEK-01",
		Calls: []CallDifference{{"seek", codes.OK, codes.Unimplemented}},
	},
	{
		Topic: "Seek to a time of a subscription that retains acked messages", From: OfficialEmulator,
		How: "what the seek acks is retained too, for a later seek back", Why: "production marks it as acked and retains acked messages",
	},
	{
		Topic: "Seek to a time of a subscription whose topic is deleted", From: OfficialEmulator,
		How: "brings nothing back that only the topic retained", Why: "retained messages are deleted with their topic",
	},
	{
		Topic: "a new subscription of a topic that retains messages", From: OfficialEmulator,
		How: "gets what is published from then on; a seek brings back what is older", Why: "production does so",
	},
	{
		Topic: "filters", From: OfficialEmulator,
		How: "applied, and an ill-formed one is INVALID_ARGUMENT; the official emulator stores and ignores them", Why: "P-DEL-07",
		Calls: []CallDifference{{illFiltered, codes.InvalidArgument, codes.OK}},
	},
	{
		Topic: "retry_policy", From: OfficialEmulator,
		How: "applied: a nacked or expired message waits for its backoff; the official emulator stores and ignores it", Why: "P-DEL-03",
		Calls: []CallDifference{{"pull", codes.OK, codes.OK}},
	},
	{
		Topic: "UpdateSubscription of labels, of expiration_policy or of one field of a policy", From: OfficialEmulator,
		How: "applied, not INVALID_ARGUMENT", Why: "production applies it",
	},
	{
		Topic: "UpdateSnapshot, DetachSubscription", From: OfficialEmulator,
		How: "implemented, not UNIMPLEMENTED", Why: "P-RPC-01",
	},
	{
		Topic: "Publish of over 10,000,000 bytes, Acknowledge and ModifyAckDeadline of over 512 KiB", From: OfficialEmulator,
		How: "INVALID_ARGUMENT, not accepted", Why: "the limits of the service",
	},
	{
		Topic: "dead letters", From: OfficialEmulator,
		How: "forwarded on the last nack or expiry, not when a subscriber asks again", Why: "a subscription that nobody reads any more must not hold back its dead letters",
	},
	{
		Topic: "attribute keys that begin with goog but not with googclient_", From: OfficialEmulator,
		How: "INVALID_ARGUMENT, not accepted", Why: "the documented rule; Google's clients carry traces in the others",
	},
	{
		Topic: "attribute keys over 256 bytes, values over 1,024 bytes, ordering keys over 1,024 bytes", From: OfficialEmulator,
		How: "INVALID_ARGUMENT, not accepted", Why: "the documented limit",
	},
	{
		Topic: "expiration_policy.ttl under a day", From: OfficialEmulator,
		How: "INVALID_ARGUMENT, not accepted", Why: "the documented limit",
	},
	{
		Topic: "CreateSubscription and CreateSnapshot with several errors", From: OfficialEmulator,
		How: "may report another one of them", Why: "their order is not documented",
		Calls: []CallDifference{
			{"create subscription", codes.InvalidArgument, codes.AlreadyExists},
			{"create subscription", codes.InvalidArgument, codes.NotFound},
			{"snapshot", codes.InvalidArgument, codes.AlreadyExists},
		},
	},
	{
		Topic: "CreateSnapshot of a subscription whose topic is deleted", From: OfficialEmulator,
		How: "FAILED_PRECONDITION, not OK", Why: "nothing could be published after it, and no subscription of the topic could seek to it",
		Calls: []CallDifference{{"snapshot", codes.FailedPrecondition, codes.OK}},
	},
	{
		Topic: "CreateSnapshot with an ill-formed subscription name", From: OfficialEmulator,
		How: "INVALID_ARGUMENT, not NOT_FOUND", Why: "the text says what is wrong with the name",
		Calls: []CallDifference{{"snapshot", codes.InvalidArgument, codes.NotFound}},
	},
}

// illFiltered begins the name of a call of TestDifferential.
const illFiltered = "create subscription with an ill-formed filter "
