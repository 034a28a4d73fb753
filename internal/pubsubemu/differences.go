package pubsubemu

// Difference is one deliberate deviation.
type Difference struct {
	Topic string // what behaves differently
	From  string // "production" or "official emulator"
	How   string // what this server does
	Why   string
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
		Topic: "permissions, quotas, regions, encryption keys", From: "production",
		How: "not modelled; the fields are stored", Why: "outside of what the tests need",
	},
}
