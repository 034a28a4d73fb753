package index

import (
	"strings"
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/query"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

const root = "projects/p/databases/(default)/documents"

// where is a field filter in protocol JSON.
func where(field, op string) string {
	return `{"fieldFilter":{"field":{"fieldPath":"` + field + `"},"op":"` + op + `","value":` + operandFor(op) + `}}`
}

func operandFor(op string) string {
	switch op {
	case "IN", "NOT_IN", "ARRAY_CONTAINS_ANY":
		return `{"arrayValue":{"values":[{"integerValue":"1"},{"integerValue":"2"}]}}`
	default:
		return `{"integerValue":"1"}`
	}
}

func composite(op string, filters ...string) string {
	return `{"compositeFilter":{"op":"` + op + `","filters":[` + strings.Join(filters, ",") + `]}}`
}

func and(filters ...string) string { return composite("AND", filters...) }
func or(filters ...string) string  { return composite("OR", filters...) }

// orderBy is an order in protocol JSON. A leading minus makes a field descending.
func orderBy(fields ...string) string {
	var orders []string
	for _, field := range fields {
		direction := "ASCENDING"
		if strings.HasPrefix(field, "-") {
			field, direction = field[1:], "DESCENDING"
		}
		orders = append(orders, `{"field":{"fieldPath":"`+field+`"},"direction":"`+direction+`"}`)
	}
	return "[" + strings.Join(orders, ",") + "]"
}

type testQuery struct {
	filter string
	orders string
	group  bool
	sums   []string
}

func (q testQuery) compile(t testing.TB) (*query.Plan, []value.FieldPath) {
	t.Helper()
	from := `[{"collectionId":"c"}]`
	if q.group {
		from = `[{"collectionId":"c","allDescendants":true}]`
	}
	text := `{"from":` + from
	if q.filter != "" {
		text += `,"where":` + q.filter
	}
	if q.orders != "" {
		text += `,"orderBy":` + q.orders
	}
	var structured pb.StructuredQuery
	if err := protojson.Unmarshal([]byte(text+"}"), &structured); err != nil {
		t.Fatal(err)
	}
	plan, err := query.Compile(root, &structured)
	if err != nil {
		t.Fatal(err)
	}
	var sums []value.FieldPath
	for _, field := range q.sums {
		sums = append(sums, value.FieldPath{field})
	}
	return plan, sums
}

func mustLoad(t testing.TB, text string) *Set {
	t.Helper()
	s, err := Load([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// declare is the JSON of a composite index. A leading minus makes a field descending,
// a leading plus means array-contains.
func declare(scope string, fields ...string) string {
	var declared []string
	for _, field := range fields {
		config := `"order":"ASCENDING"`
		switch field[0] {
		case '-':
			field, config = field[1:], `"order":"DESCENDING"`
		case '+':
			field, config = field[1:], `"arrayConfig":"CONTAINS"`
		}
		declared = append(declared, `{"fieldPath":"`+field+`",`+config+`}`)
	}
	return `{"collectionGroup":"c","queryScope":"` + scope + `","fields":[` + strings.Join(declared, ",") + `]}`
}

func indexes(declared ...string) string {
	return `{"indexes":[` + strings.Join(declared, ",") + `]}`
}

func TestSet_ServesQueries(t *testing.T) {
	const noIndexOnX = `{"fieldOverrides":[{"collectionGroup":"c","fieldPath":"x","indexes":[]}]}`
	const groupIndexOnX = `{"fieldOverrides":[{"collectionGroup":"c","fieldPath":"x","indexes":[{"queryScope":"COLLECTION_GROUP","order":"ASCENDING"}]}]}`
	eq := func(field string) string { return where(field, "EQUAL") }
	less := func(field string) string { return where(field, "LESS_THAN") }
	has := func(field string) string { return where(field, "ARRAY_CONTAINS") }

	tests := map[string]struct {
		indexes string
		query   testQuery
		served  bool
	}{
		// E-IX-03 if served, else E-IX-02: an index has first the equalities, then
		// the rest of the order, then the summed fields, for each disjunct.
		"everything, unordered":                         {`{}`, testQuery{}, true},
		"by ascending name":                             {`{}`, testQuery{orders: orderBy("__name__")}, true},
		"one equality":                                  {`{}`, testQuery{filter: eq("x")}, true},
		"equalities merge":                              {`{}`, testQuery{filter: and(eq("x"), eq("y"), where("z", "IN"))}, true},
		"equality and array-contains merge":             {`{}`, testQuery{filter: and(eq("x"), has("y"))}, true},
		"one inequality":                                {`{}`, testQuery{filter: less("x")}, true},
		"one inequality, ordered by it, descending":     {`{}`, testQuery{filter: less("x"), orders: orderBy("-x")}, true},
		"one order":                                     {`{}`, testQuery{orders: orderBy("x")}, true},
		"one order, name in the same direction":         {`{}`, testQuery{orders: orderBy("-x", "-__name__")}, true},
		"an equality field in the order does not count": {`{}`, testQuery{filter: eq("x"), orders: orderBy("x")}, true},
		"one sum":                                         {`{}`, testQuery{sums: []string{"x"}}, true},
		"sum over its own inequality":                     {`{}`, testQuery{filter: less("x"), sums: []string{"x"}}, true},
		"alternatives are judged one by one":              {`{}`, testQuery{filter: or(eq("x"), eq("y"))}, true},
		"array-contains-any alone":                        {`{}`, testQuery{filter: where("x", "ARRAY_CONTAINS_ANY")}, true},
		"not-in alone":                                    {`{}`, testQuery{filter: where("x", "NOT_IN")}, true},
		"name equality needs no index":                    {`{}`, testQuery{filter: and(eq("x"), `{"fieldFilter":{"field":{"fieldPath":"__name__"},"op":"EQUAL","value":{"referenceValue":"`+root+`/c/1"}}}`)}, true},
		"one order, name against it":                      {`{}`, testQuery{orders: orderBy("x", "-__name__")}, false},
		"by descending name":                              {`{}`, testQuery{orders: orderBy("-__name__")}, false}, // E-IX-06
		"equality ordered by another field":               {`{}`, testQuery{filter: eq("x"), orders: orderBy("q")}, false},
		"equality with another field's inequality":        {`{}`, testQuery{filter: and(eq("owner"), less("t"))}, false},
		"equality, descending name":                       {`{}`, testQuery{filter: eq("x"), orders: orderBy("-__name__")}, false},
		"two inequalities":                                {`{}`, testQuery{filter: and(less("x"), less("y"))}, false},
		"two orders":                                      {`{}`, testQuery{orders: orderBy("x", "y")}, false},
		"sum beside an equality":                          {`{}`, testQuery{filter: eq("x"), sums: []string{"y"}}, false},
		"two sums":                                        {`{}`, testQuery{sums: []string{"x", "y"}}, false},
		"one alternative lacks its index":                 {`{}`, testQuery{filter: or(eq("x"), and(eq("y"), less("x")))}, false},
		"array-contains ordered by another field":         {`{}`, testQuery{filter: has("x"), orders: orderBy("y")}, false},
		"inequality of one alternative orders the others": {`{}`, testQuery{filter: or(eq("x"), less("y"))}, false},

		// E-IX-04
		"equality then order":                    {indexes(declare("COLLECTION", "x", "q")), testQuery{filter: eq("x"), orders: orderBy("q")}, true},
		"equality in either direction":           {indexes(declare("COLLECTION", "-x", "q")), testQuery{filter: eq("x"), orders: orderBy("q")}, true},
		"equalities in any sequence":             {indexes(declare("COLLECTION", "y", "x", "q")), testQuery{filter: and(eq("x"), eq("y")), orders: orderBy("q")}, true},
		"no reverse scan":                        {indexes(declare("COLLECTION", "x", "q")), testQuery{filter: eq("x"), orders: orderBy("-q")}, false},
		"declared descending":                    {indexes(declare("COLLECTION", "x", "-q")), testQuery{filter: eq("x"), orders: orderBy("-q")}, true},
		"name follows the last direction":        {indexes(declare("COLLECTION", "x", "-q")), testQuery{filter: eq("x"), orders: orderBy("-q", "__name__")}, false},
		"name listed against the last direction": {indexes(declare("COLLECTION", "x", "-q", "__name__")), testQuery{filter: eq("x"), orders: orderBy("-q", "__name__")}, true},
		"descending name listed":                 {indexes(declare("COLLECTION", "x", "-__name__")), testQuery{filter: eq("x"), orders: orderBy("-__name__")}, true},
		"descending name alone":                  {indexes(declare("COLLECTION", "-__name__")), testQuery{orders: orderBy("-__name__")}, true},
		"extra leading field":                    {indexes(declare("COLLECTION", "z", "x", "q")), testQuery{filter: eq("x"), orders: orderBy("q")}, false},
		"extra trailing field":                   {indexes(declare("COLLECTION", "x", "q", "z")), testQuery{filter: eq("x"), orders: orderBy("q")}, false},
		"order before equality":                  {indexes(declare("COLLECTION", "q", "x")), testQuery{filter: eq("x"), orders: orderBy("q")}, false},
		"an uncovered equality":                  {indexes(declare("COLLECTION", "x", "q")), testQuery{filter: and(eq("x"), eq("y")), orders: orderBy("q")}, false},
		"two indexes merge":                      {indexes(declare("COLLECTION", "x", "q"), declare("COLLECTION", "y", "q")), testQuery{filter: and(eq("x"), eq("y")), orders: orderBy("q")}, true},
		"two indexes of different orders do not": {indexes(declare("COLLECTION", "x", "q"), declare("COLLECTION", "y", "-q")), testQuery{filter: and(eq("x"), eq("y")), orders: orderBy("q")}, false},
		"array-contains declared":                {indexes(declare("COLLECTION", "+x", "q")), testQuery{filter: has("x"), orders: orderBy("q")}, true},
		"array-contains is not equality":         {indexes(declare("COLLECTION", "+x", "q")), testQuery{filter: eq("x"), orders: orderBy("q")}, false},
		"two orders declared":                    {indexes(declare("COLLECTION", "x", "-y")), testQuery{orders: orderBy("x", "-y")}, true},
		"two inequalities declared":              {indexes(declare("COLLECTION", "x", "y")), testQuery{filter: and(less("y"), less("x"))}, true},
		"two inequalities in the other order":    {indexes(declare("COLLECTION", "y", "x")), testQuery{filter: and(less("y"), less("x"))}, false},
		"sum declared":                           {indexes(declare("COLLECTION", "x", "y")), testQuery{filter: eq("x"), sums: []string{"y"}}, true},
		"another collection scope":               {indexes(declare("COLLECTION_GROUP", "x", "q")), testQuery{filter: eq("x"), orders: orderBy("q")}, false},
		"each alternative has its index":         {indexes(declare("COLLECTION", "x", "q"), declare("COLLECTION", "y", "q")), testQuery{filter: or(eq("x"), eq("y")), orders: orderBy("q")}, true},

		// E-IX-05
		"group, unfiltered and unordered":            {`{}`, testQuery{group: true}, true},
		"group, by ascending name":                   {`{}`, testQuery{group: true, orders: orderBy("__name__")}, true},
		"group, one equality":                        {`{}`, testQuery{group: true, filter: eq("x")}, false},
		"group, one order":                           {`{}`, testQuery{group: true, orders: orderBy("x")}, false},
		"group, one equality, declared":              {groupIndexOnX, testQuery{group: true, filter: eq("x")}, true},
		"group, one order, declared":                 {groupIndexOnX, testQuery{group: true, orders: orderBy("x")}, true},
		"group, declared in the other direction":     {groupIndexOnX, testQuery{group: true, orders: orderBy("-x")}, false},
		"group, composite":                           {indexes(declare("COLLECTION_GROUP", "x", "q")), testQuery{group: true, filter: eq("x"), orders: orderBy("q")}, true},
		"group, composite of collection scope":       {indexes(declare("COLLECTION", "x", "q")), testQuery{group: true, filter: eq("x"), orders: orderBy("q")}, false},
		"override takes the automatic indexes away":  {groupIndexOnX, testQuery{filter: eq("x")}, false},
		"override without indexes: equality":         {noIndexOnX, testQuery{filter: eq("x")}, false},
		"override without indexes: order":            {noIndexOnX, testQuery{orders: orderBy("x")}, false},
		"override without indexes: array-contains":   {noIndexOnX, testQuery{filter: has("x")}, false},
		"override without indexes: another equality": {noIndexOnX, testQuery{filter: eq("y")}, true},
		"override without indexes: both equalities":  {noIndexOnX, testQuery{filter: and(eq("x"), eq("y"))}, false},
		"override reaches into a map":                {noIndexOnX, testQuery{filter: eq("x.inner")}, false},
		"override of every field":                    {`{"fieldOverrides":[{"collectionGroup":"c","fieldPath":"*","indexes":[]}]}`, testQuery{filter: eq("y")}, false},
		"override of another collection":             {`{"fieldOverrides":[{"collectionGroup":"d","fieldPath":"x","indexes":[]}]}`, testQuery{filter: eq("x")}, true},
		"a composite covers an overridden field":     {`{"indexes":[` + declare("COLLECTION", "x", "y") + `],"fieldOverrides":[{"collectionGroup":"c","fieldPath":"x","indexes":[]}]}`, testQuery{filter: and(eq("x"), eq("y"))}, true},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			plan, sums := tt.query.compile(t)
			err := mustLoad(t, tt.indexes).Check(plan, sums)
			if got := err == nil; got != tt.served {
				t.Fatalf("served: %t (%v), want %t", got, err, tt.served)
			}
			if err != nil && status.Code(err) != codes.FailedPrecondition {
				t.Errorf("code %s, want FailedPrecondition", status.Code(err))
			}
		})
	}
}

// E-IX-06
func TestSet_ErrorHasJSON(t *testing.T) {
	tests := map[string]struct {
		query testQuery
		want  string
	}{
		"composite": {
			testQuery{filter: and(where("owner", "EQUAL"), where("t", "LESS_THAN"))},
			`The query requires an index. Add to firestore.indexes.json: {"indexes":[{"collectionGroup":"c","queryScope":"COLLECTION","fields":[{"fieldPath":"owner","order":"ASCENDING"},{"fieldPath":"t","order":"ASCENDING"}]}]}`,
		},
		"name against the direction": {
			testQuery{orders: orderBy("x", "-__name__")},
			`The query requires an index. Add to firestore.indexes.json: {"indexes":[{"collectionGroup":"c","queryScope":"COLLECTION","fields":[{"fieldPath":"x","order":"ASCENDING"},{"fieldPath":"__name__","order":"DESCENDING"}]}]}`,
		},
		"single field over a group": {
			testQuery{group: true, filter: where("x", "ARRAY_CONTAINS")},
			`The query requires an index. Add to firestore.indexes.json: {"fieldOverrides":[{"collectionGroup":"c","fieldPath":"x","indexes":[{"queryScope":"COLLECTION","order":"ASCENDING"},{"queryScope":"COLLECTION","order":"DESCENDING"},{"queryScope":"COLLECTION","arrayConfig":"CONTAINS"},{"queryScope":"COLLECTION_GROUP","arrayConfig":"CONTAINS"}]}]}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			plan, sums := tt.query.compile(t)
			err := mustLoad(t, `{}`).Check(plan, sums)
			if got := status.Convert(err).Message(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
