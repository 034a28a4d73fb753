package capacity

import "math"

// Prices are a list's, in US dollars. Free quotas are left out.
type Prices struct {
	Name                   string
	Reads, Writes, Deletes float64 // for 100,000
	// Units says that units are billed, of 4 KiB read and of 1 KiB written or deleted, instead of documents.
	Units     bool
	PubSubTiB float64
	Source    string
}

// pricesOf is when the lists were looked up.
const pricesOf = "2026-11-27"

// Lists are the price lists.
var Lists = []Prices{
	{
		Name: "multi-region, Standard", Reads: 0.06, Writes: 0.18, Deletes: 0.02, PubSubTiB: 40,
		Source: "[Firestore pricing](https://cloud.google.com/firestore/pricing), as quoted [here](https://www.twblogs.net/a/5e4f845fbd9eee101e8581aa); the page renders its table of locations by script only",
	},
	{
		Name: "us-central1, Standard", Reads: 0.03, Writes: 0.09, Deletes: 0.01, PubSubTiB: 40,
		Source: "[editions compared](https://firebase.google.com/docs/firestore/pipelines/pricing)",
	},
	{
		Name: "us-central1, Enterprise", Reads: 0.005, Writes: 0.026, Deletes: 0.026, Units: true, PubSubTiB: 40,
		Source: "the same: units of 4 KiB read and of 1 KiB written, [counted](https://firebase.google.com/docs/firestore/enterprise/pricing-examples) with the entries of indexes",
	},
}

// Cost is what a day costs in Firestore.
func (p Prices) Cost(parts map[Kind]Count, documents map[string]float64) (dollars float64) {
	const readUnit = 4 << 10
	for at, c := range parts {
		if p.Units {
			c.Reads *= max(1, math.Ceil(documents[at.Collection]/readUnit))
			c.Writes, c.Deletes = c.Units, 0
		}
		dollars += (c.Reads*p.Reads + c.Writes*p.Writes + c.Deletes*p.Deletes) / 100_000
	}
	return dollars
}
