package query

import (
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// Any message is refused with INVALID_ARGUMENT, FAILED_PRECONDITION or UNIMPLEMENTED,
// or compiles into a plan that handles any document.
func FuzzCompile(f *testing.F) {
	for _, q := range []*structured{
		on(and(fieldFilter("v", "IN", ints(1, 3)), or(unaryFilter("w", "IS_NULL"), fieldFilter("__name__", "LESS_THAN", reference("c/a")))), "-v"),
		with(with(on(nil, "v", "__name__"), startAt(true, intValue(1), reference("c/1"))), limit(2)),
		on(fieldFilter("v", "NOT_IN", array(null, nan))),
	} {
		seed, err := proto.Marshal(q)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		var q structured
		if proto.Unmarshal(message, &q) != nil {
			return
		}
		p, err := Compile(testRoot, &q)
		if err != nil {
			if code := status.Code(err); code != codes.InvalidArgument && code != codes.FailedPrecondition && code != codes.Unimplemented {
				t.Fatalf("%v", err)
			}
			return
		}
		ids(p, types)
		p.Disjuncts()
		for _, doc := range types {
			p.Project(doc)
		}
	})
}

// A query that ends at a document and one that starts after it together have all
// results, in order.
func TestPlan_CursorsPartitionResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		order := rapid.SampledFrom([]string{"v", "-v"}).Draw(t, "order")
		name := rapid.SampledFrom([]string{"__name__", "-__name__"}).Draw(t, "name")
		pivot := rapid.SampledFrom(types[1:]).Draw(t, "pivot")
		at := []*pb.Value{pivot.GetFields()["v"], {ValueType: &pb.Value_ReferenceValue{ReferenceValue: pivot.GetName()}}}

		compile := func(change func(*structured)) []string {
			p, err := Compile(testRoot, with(on(nil, order, name), change))
			if err != nil {
				t.Fatal(err)
			}
			return ids(p, types)
		}
		whole := compile(func(*structured) {})
		joined := append(compile(endAt(false, at...)), compile(startAt(false, at...))...)
		if len(whole) != len(types)-1 || len(joined) != len(whole) {
			t.Fatalf("whole %q, joined %q", whole, joined)
		}
		for i := range whole {
			if whole[i] != joined[i] {
				t.Fatalf("whole %q, joined %q", whole, joined)
			}
		}
	})
}
