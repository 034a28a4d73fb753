package index

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc/status"
	"pgregory.net/rapid"
)

// E-IX-06: for any query, the JSON in the error is legal and serves the query.
func TestSet_SuggestsIndexThatServes(t *testing.T) {
	field := rapid.SampledFrom([]string{"x", "y", "m.z"})
	inequality := rapid.SampledFrom([]string{"LESS_THAN", "GREATER_THAN_OR_EQUAL"})
	equality := rapid.SampledFrom([]string{"EQUAL", "IN"})
	conjunction := rapid.Custom(func(t *rapid.T) string {
		var filters []string
		for range rapid.IntRange(0, 2).Draw(t, "equalities") {
			filters = append(filters, where(field.Draw(t, "equal"), equality.Draw(t, "operator")))
		}
		if rapid.Bool().Draw(t, "has array-contains") {
			filters = append(filters, where(field.Draw(t, "contains"), "ARRAY_CONTAINS"))
		}
		for range rapid.IntRange(0, 2).Draw(t, "inequalities") {
			filters = append(filters, where(field.Draw(t, "unequal"), inequality.Draw(t, "operator")))
		}
		return and(filters...)
	})
	starting := rapid.SampledFrom([]string{
		`{}`,
		indexes(declare("COLLECTION", "x", "y"), declare("COLLECTION_GROUP", "+x", "-y")),
		`{"fieldOverrides":[{"collectionGroup":"c","fieldPath":"x","indexes":[]}]}`,
		`{"fieldOverrides":[{"collectionGroup":"c","fieldPath":"*","indexes":[{"queryScope":"COLLECTION_GROUP","order":"DESCENDING"}]}]}`,
	})
	rapid.Check(t, func(rt *rapid.T) {
		q := testQuery{filter: or(rapid.SliceOfN(conjunction, 1, 2).Draw(rt, "alternatives")...), group: rapid.Bool().Draw(rt, "group")}
		var orders []string
		for _, name := range rapid.SliceOfNDistinct(field, 0, 2, rapid.ID).Draw(rt, "orders") {
			orders = append(orders, rapid.SampledFrom([]string{"", "-"}).Draw(rt, "direction")+name)
		}
		q.orders = orderBy(orders...)
		q.sums = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "s"}), 0, 2, rapid.ID).Draw(rt, "sums")
		plan, sums := q.compile(t)

		declared := starting.Draw(rt, "declared")
		err := mustLoad(t, declared).Check(plan, sums)
		if err == nil {
			return
		}
		_, fragment, found := strings.Cut(status.Convert(err).Message(), "Add to firestore.indexes.json: ")
		if !found {
			rt.Fatalf("no JSON in %v", err)
		}
		if err := mustLoad(t, paste(rt, declared, fragment)).Check(plan, sums); err != nil {
			rt.Fatalf("still refused after pasting %s: %v", fragment, err)
		}
	})
}

// paste merges a fragment into a file like a person would: it adds indexes, and
// replaces overrides of the same field.
func paste(t *rapid.T, declared, fragment string) string {
	var whole, addition file
	if err := json.Unmarshal([]byte(declared), &whole); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(fragment), &addition); err != nil {
		t.Fatal(err)
	}
	whole.Indexes = append(whole.Indexes, addition.Indexes...)
	overrides := addition.FieldOverrides
	for _, old := range whole.FieldOverrides {
		replaced := false
		for _, o := range addition.FieldOverrides {
			replaced = replaced || o.CollectionGroup == old.CollectionGroup && o.FieldPath == old.FieldPath
		}
		if !replaced {
			overrides = append(overrides, old)
		}
	}
	whole.FieldOverrides = overrides
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
