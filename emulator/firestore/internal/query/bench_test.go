package query

import (
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
)

// Matches runs for every write while a transaction or a listener holds the plan, so
// it must not allocate.
func BenchmarkPlan_Matches(b *testing.B) {
	doc := document("c/x", "owner", text("ann"), "n", intValue(7), "tags", array(text("a"), text("b")))
	elsewhere := document("d/x", "owner", text("ann"), "n", intValue(7))
	p := mustCompile(b, with(on(and(fieldFilter("owner", "EQUAL", text("ann")), fieldFilter("n", "GREATER_THAN", intValue(3)),
		fieldFilter("tags", "ARRAY_CONTAINS", text("b"))), "n"), endAt(false, intValue(100))))
	for name, doc := range map[string]*pb.Document{"match": doc, "out of scope": elsewhere} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Matches(doc)
			}
		})
	}
}
