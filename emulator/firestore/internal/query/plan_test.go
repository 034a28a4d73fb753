package query

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func TestPlan_MatchesFilters(t *testing.T) {
	finer := &pb.Value{ValueType: &pb.Value_TimestampValue{TimestampValue: &timestamppb.Timestamp{Seconds: 1, Nanos: 999}}}
	everyV := sorted("null", "false", "true", "nan", "1", "1.0", "1.5", "2", "time", "a", "b", "ref", "geo", "[1 2]", "[nan]", "vector", "map")
	without := func(names ...string) []string {
		return slices.DeleteFunc(slices.Clone(everyV), func(name string) bool { return slices.Contains(names, name) })
	}
	tests := map[string]struct {
		filter *pb.StructuredQuery_Filter
		want   []string // sorted; TestPlan_OrdersResults checks the order
	}{
		// E-QY-03
		"less than a number":               {fieldFilter("v", "LESS_THAN", intValue(2)), sorted("1", "1.0", "1.5")},
		"at most a number":                 {fieldFilter("v", "LESS_THAN_OR_EQUAL", doubleValue(1)), sorted("1", "1.0")},
		"more than a string":               {fieldFilter("v", "GREATER_THAN", text("a")), sorted("b")},
		"at least a bool":                  {fieldFilter("v", "GREATER_THAN_OR_EQUAL", boolean(false)), sorted("false", "true")},
		"at most a map is not a vector":    {fieldFilter("v", "LESS_THAN_OR_EQUAL", mapping("z", intValue(0))), sorted("map")},
		"more than null":                   {fieldFilter("v", "GREATER_THAN", null), nil},
		"at least null":                    {fieldFilter("v", "GREATER_THAN_OR_EQUAL", null), nil},
		"at most NaN":                      {fieldFilter("v", "LESS_THAN_OR_EQUAL", nan), nil},
		"equal, integer to double":         {fieldFilter("v", "EQUAL", doubleValue(1)), sorted("1", "1.0")},
		"equal to null":                    {fieldFilter("v", "EQUAL", null), nil},
		"equal to NaN":                     {fieldFilter("v", "EQUAL", nan), nil},
		"equal to an array":                {fieldFilter("v", "EQUAL", array(doubleValue(1), intValue(2))), sorted("[1 2]")},
		"not equal":                        {fieldFilter("v", "NOT_EQUAL", intValue(1)), without("null", "1", "1.0")},
		"not equal to null":                {fieldFilter("v", "NOT_EQUAL", null), nil},
		"not equal to NaN":                 {fieldFilter("v", "NOT_EQUAL", nan), without("null")},
		"in":                               {fieldFilter("v", "IN", array(intValue(1), text("a"), text("zz"))), sorted("1", "1.0", "a")},
		"in ignores null and NaN":          {fieldFilter("v", "IN", array(null, nan, intValue(2))), sorted("2")},
		"in null alone":                    {fieldFilter("v", "IN", array(null)), nil},
		"in, an array among them":          {fieldFilter("v", "IN", array(array(intValue(1), intValue(2)))), sorted("[1 2]")},
		"not in":                           {fieldFilter("v", "NOT_IN", array(intValue(1), text("a"))), without("null", "1", "1.0", "a")},
		"not in with null":                 {fieldFilter("v", "NOT_IN", array(intValue(1), null)), nil},
		"not in with NaN":                  {fieldFilter("v", "NOT_IN", array(intValue(1), nan)), without("null", "1", "1.0")},
		"array contains":                   {fieldFilter("v", "ARRAY_CONTAINS", doubleValue(1)), sorted("[1 2]")},
		"array contains NaN":               {fieldFilter("v", "ARRAY_CONTAINS", nan), nil},
		"array contains any":               {fieldFilter("v", "ARRAY_CONTAINS_ANY", array(intValue(7), intValue(2))), sorted("[1 2]")},
		"array contains any null":          {fieldFilter("v", "ARRAY_CONTAINS_ANY", array(null)), nil},
		"a vector is not an array":         {fieldFilter("v", "ARRAY_CONTAINS", text("x")), nil},
		"is null":                          {unaryFilter("v", "IS_NULL"), sorted("null")},
		"is NaN":                           {unaryFilter("v", "IS_NAN"), sorted("nan")},
		"is not null":                      {unaryFilter("v", "IS_NOT_NULL"), without("null")},
		"is not NaN drops null too":        {unaryFilter("v", "IS_NOT_NAN"), without("null", "nan")},
		"inside a map":                     {fieldFilter("v.k", "EQUAL", intValue(1)), sorted("map")},
		"inside a value that is not a map": {fieldFilter("v.k.z", "EQUAL", intValue(1)), nil},
		"inside a vector":                  {unaryFilter("v.value", "IS_NOT_NULL"), nil},

		"a finer timestamp equals none":         {fieldFilter("v", "EQUAL", finer), nil},
		"a finer timestamp is more":             {fieldFilter("v", "LESS_THAN", finer), sorted("time")},
		"a finer timestamp in a list is coarse": {fieldFilter("v", "IN", array(finer)), sorted("time")},

		"and":                 {and(fieldFilter("v", "GREATER_THAN", intValue(1)), fieldFilter("w", "EQUAL", intValue(3))), sorted("2")},
		"an empty and":        {and(), append(sorted("absent"), everyV...)},
		"or":                  {or(fieldFilter("v", "EQUAL", text("a")), fieldFilter("w", "EQUAL", intValue(1))), sorted("a", "absent", "1")},
		"or inside and":       {and(fieldFilter("w", "EQUAL", intValue(1)), or(fieldFilter("v", "EQUAL", intValue(1)), fieldFilter("v", "EQUAL", text("a")))), sorted("1")},
		"name equal":          {fieldFilter("__name__", "EQUAL", reference("c/a")), sorted("a")},
		"name below":          {fieldFilter("__name__", "LESS_THAN", reference("c/1.5")), sorted("1", "1.0")},
		"name at least":       {fieldFilter("__name__", "GREATER_THAN_OR_EQUAL", reference("c/true")), sorted("true", "vector")},
		"name not equal":      {fieldFilter("__name__", "NOT_EQUAL", reference("c/a")), slices.DeleteFunc(append(sorted("absent"), everyV...), func(s string) bool { return s == "a" })},
		"name in":             {fieldFilter("__name__", "IN", array(reference("c/a"), reference("c/b"), reference("d/a"))), sorted("a", "b")},
		"name not in":         {and(fieldFilter("v", "EQUAL", intValue(1)), fieldFilter("__name__", "NOT_IN", array(reference("c/1")))), sorted("1.0")},
		"name and inequality": {and(fieldFilter("v", "GREATER_THAN", intValue(0)), fieldFilter("__name__", "LESS_THAN", reference("c/1.5"))), sorted("1", "1.0")},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			got := sorted(ids(mustCompile(t, on(tt.filter)), types)...)
			if !slices.Equal(got, sorted(tt.want...)) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPlan_OrdersResults(t *testing.T) {
	byValue := []string{"null", "false", "true", "nan", "1", "1.0", "1.5", "2", "time", "a", "b", "ref", "geo", "[1 2]", "[nan]", "vector", "map"}
	arraysInOrder := func(names []string) []string { // [NaN] sorts before [1 2]
		names = slices.Clone(names)
		i, j := slices.Index(names, "[1 2]"), slices.Index(names, "[nan]")
		names[i], names[j] = names[j], names[i]
		return names
	}(byValue)
	reversed := slices.Clone(arraysInOrder)
	slices.Reverse(reversed)

	tests := map[string]struct {
		query *structured
		want  []string
	}{
		// E-QY-01, E-QY-02
		"ascending drops absent fields":   {on(nil, "v"), arraysInOrder},
		"descending, names too":           {on(nil, "-v"), reversed},
		"ties by name, given direction":   {on(fieldFilter("v", "EQUAL", intValue(1)), "v", "-__name__"), []string{"1.0", "1"}},
		"implicit order of an inequality": {on(fieldFilter("w", "GREATER_THAN", intValue(0))), []string{"1", "absent", "1.0", "2"}},
		"implicit order after explicit":   {on(fieldFilter("w", "GREATER_THAN", intValue(0)), "-v"), []string{"2", "1.0", "1"}},
		"or: implicit order excludes":     {on(or(fieldFilter("w", "GREATER_THAN", intValue(2)), fieldFilter("v", "EQUAL", text("a")))), []string{"2"}},
		"equality has no implicit order":  {on(fieldFilter("w", "EQUAL", intValue(1))), []string{"1", "absent"}},
		"unspecified direction ascends":   {with(on(fieldFilter("v", "EQUAL", intValue(1)), "w"), func(q *structured) { q.OrderBy[0].Direction = 0 }), []string{"1", "1.0"}},
		"by name":                         {with(on(nil, "__name__"), limit(3)), []string{"1", "1.0", "1.5"}},
		"by name, descending":             {with(on(nil, "-__name__"), limit(2)), []string{"vector", "true"}},

		// E-QY-04
		"limit":                      {with(on(nil, "v"), limit(2)), []string{"null", "false"}},
		"limit zero":                 {with(on(nil, "v"), limit(0)), nil},
		"offset":                     {with(on(nil, "v"), func(q *structured) { q.Offset = 15 }), []string{"vector", "map"}},
		"offset, then limit":         {with(with(on(nil, "v"), limit(2)), func(q *structured) { q.Offset = 1 }), []string{"false", "true"}},
		"offset past the end":        {with(on(nil, "v"), func(q *structured) { q.Offset = 99 }), nil},
		"start at":                   {with(with(on(nil, "v"), startAt(true, intValue(1))), limit(2)), []string{"1", "1.0"}},
		"start after":                {with(with(on(nil, "v"), startAt(false, intValue(1))), limit(2)), []string{"1.5", "2"}},
		"end at":                     {with(on(nil, "v"), endAt(false, intValue(1))), arraysInOrder[:6]},
		"end before":                 {with(on(nil, "v"), endAt(true, intValue(1))), arraysInOrder[:4]},
		"descending cursors":         {with(with(on(nil, "-v"), startAt(true, intValue(2))), endAt(true, intValue(1))), []string{"2", "1.5"}},
		"cursor of another type":     {with(on(fieldFilter("v", "GREATER_THAN", intValue(1)), "v"), endAt(false, text("z"))), []string{"1.5", "2"}},
		"cursor past the filter":     {with(on(fieldFilter("v", "GREATER_THAN", intValue(1)), "v"), startAt(true, text("z"))), nil},
		"cursor at null":             {with(with(on(nil, "v"), startAt(false, null)), limit(1)), []string{"false"}},
		"cursor with the name":       {with(with(on(nil, "v", "__name__"), startAt(false, intValue(1), reference("c/1"))), limit(2)), []string{"1.0", "1.5"}},
		"cursor on the first of two": {with(with(on(nil, "v", "w"), startAt(false, intValue(1))), limit(2)), []string{"2"}},
		"cursor without values, before everything": {with(with(on(nil, "v"), startAt(true)), limit(1)), []string{"null"}},
		"cursor without values, after everything":  {with(on(nil, "v"), startAt(false)), nil},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			if got := ids(mustCompile(t, tt.query), types); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// E-QY-02
func TestPlan_CompletesOrders(t *testing.T) {
	less := func(field string) *pb.StructuredQuery_Filter { return fieldFilter(field, "LESS_THAN", intValue(1)) }
	tests := map[string]struct {
		query *structured
		want  string
	}{
		"nothing":                          {on(nil), "__name__"},
		"explicit":                         {on(nil, "b", "-a"), "b -a -__name__"},
		"explicit name":                    {on(nil, "-a", "__name__"), "-a __name__"},
		"inequalities by field name":       {on(and(less("z"), less("a"), less("`m.x`"))), "a `m.x` z __name__"},
		"missing inequalities follow":      {on(and(less("z"), less("a")), "-z"), "-z -a -__name__"},
		"name inequality":                  {on(and(fieldFilter("__name__", "LESS_THAN", reference("c/1")), less("a"))), "a __name__"},
		"equality and array-contains none": {on(and(fieldFilter("a", "EQUAL", intValue(1)), fieldFilter("b", "ARRAY_CONTAINS", intValue(1)), fieldFilter("d", "IN", array(intValue(1))))), "__name__"},
		"negations are inequalities":       {on(unaryFilter("a", "IS_NOT_NULL")), "a __name__"},
		"an inequality twice":              {on(and(less("a"), fieldFilter("a", "GREATER_THAN", intValue(0)))), "a __name__"},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			var got []string
			for _, o := range mustCompile(t, tt.query).Orders() {
				sign := ""
				if o.Descending {
					sign = "-"
				}
				got = append(got, sign+o.Field.String())
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("got %s, want %s", text, tt.want)
			}
		})
	}
}

func manyFilters(n int, op string) *pb.StructuredQuery_Filter {
	var filters []*pb.StructuredQuery_Filter
	for i := range n {
		filters = append(filters, fieldFilter("f"+strconv.Itoa(i), op, intValue(0)))
	}
	return and(filters...)
}

func ints(from, to int64) *pb.Value {
	var values []*pb.Value
	for i := from; i <= to; i++ {
		values = append(values, intValue(i))
	}
	return array(values...)
}

func TestCompile_RefusesInvalidQueries(t *testing.T) {
	eq := func(field string, i int64) *pb.StructuredQuery_Filter {
		return fieldFilter(field, "EQUAL", intValue(i))
	}
	less := func(field string) *pb.StructuredQuery_Filter { return fieldFilter(field, "LESS_THAN", intValue(1)) }
	longText := func(n int) *pb.Value { return text(strings.Repeat("x", n)) }
	foreign := &pb.Value{ValueType: &pb.Value_ReferenceValue{ReferenceValue: "projects/p/databases/other/documents/c/a"}}
	from := func(selectors ...*pb.StructuredQuery_CollectionSelector) *structured {
		return &structured{From: selectors}
	}

	tests := map[string]struct {
		query *structured
		want  string // empty: legal
	}{
		// E-QY-05
		"in without values":             {on(fieldFilter("v", "IN", array())), "'IN' requires an non-empty ArrayValue."},
		"in with a scalar":              {on(fieldFilter("v", "IN", intValue(1))), "'IN' requires an ArrayValue."},
		"in of 30":                      {on(fieldFilter("v", "IN", ints(1, 30))), ""},
		"in of 31":                      {on(fieldFilter("v", "IN", ints(1, 31))), "'IN' supports up to 30 comparison values."},
		"not-in of 10":                  {on(fieldFilter("v", "NOT_IN", ints(1, 10))), ""},
		"not-in of 11":                  {on(fieldFilter("v", "NOT_IN", ints(1, 11))), "'NOT_IN' supports up to 10 comparison values."},
		"not-in without values":         {on(fieldFilter("v", "NOT_IN", array())), "'NOT_IN' requires an non-empty ArrayValue."},
		"array-contains-any of 31":      {on(fieldFilter("v", "ARRAY_CONTAINS_ANY", ints(1, 31))), "'ARRAY_CONTAINS_ANY' supports up to 30 comparison values."},
		"30 disjunctions":               {on(and(fieldFilter("v", "IN", ints(1, 5)), fieldFilter("w", "IN", ints(1, 6)))), ""},
		"36 disjunctions":               {on(and(fieldFilter("v", "IN", ints(1, 6)), fieldFilter("w", "IN", ints(1, 6)))), "Too many disjunctions after normalization. Result had 36 disjunctions which is more than the maximum of 30"},
		"31 disjunctions by or":         {on(or(fieldFilter("v", "IN", ints(1, 30)), eq("w", 1))), "Too many disjunctions after normalization. Result had 31 disjunctions which is more than the maximum of 30"},
		"a value twice counts once":     {on(and(fieldFilter("v", "IN", array(intValue(1), intValue(1))), fieldFilter("w", "IN", ints(1, 30)))), ""},
		"a null counts":                 {on(and(fieldFilter("v", "IN", array(intValue(1), null)), fieldFilter("w", "IN", ints(1, 30)))), "Too many disjunctions after normalization. Result had 60 disjunctions which is more than the maximum of 30"},
		"two not-equals":                {on(and(fieldFilter("v", "NOT_EQUAL", intValue(1)), fieldFilter("w", "NOT_EQUAL", intValue(1)))), "Only a single 'NOT_EQUAL', 'NOT_IN', 'IS_NOT_NAN', or 'IS_NOT_NULL' filter allowed per query."},
		"not-equal and is-not-null":     {on(and(fieldFilter("v", "NOT_EQUAL", intValue(1)), unaryFilter("v", "IS_NOT_NULL"))), "Only a single 'NOT_EQUAL', 'NOT_IN', 'IS_NOT_NAN', or 'IS_NOT_NULL' filter allowed per query."},
		"not-in and in":                 {on(and(fieldFilter("v", "NOT_IN", ints(1, 1)), fieldFilter("w", "IN", ints(1, 1)))), "'NOT_IN' cannot be used in the same query with 'IN', 'ARRAY_CONTAINS_ANY' or 'OR'."},
		"not-in and array-contains-any": {on(and(fieldFilter("v", "NOT_IN", ints(1, 1)), fieldFilter("w", "ARRAY_CONTAINS_ANY", ints(1, 1)))), "'NOT_IN' cannot be used in the same query with 'IN', 'ARRAY_CONTAINS_ANY' or 'OR'."},
		"not-in and or":                 {on(or(fieldFilter("v", "NOT_IN", ints(1, 1)), eq("w", 1))), "'NOT_IN' cannot be used in the same query with 'IN', 'ARRAY_CONTAINS_ANY' or 'OR'."},
		"not-in and array-contains":     {on(and(fieldFilter("v", "NOT_IN", ints(1, 1)), fieldFilter("w", "ARRAY_CONTAINS", intValue(1)))), ""},
		"two array-contains":            {on(and(fieldFilter("v", "ARRAY_CONTAINS", intValue(1)), fieldFilter("w", "ARRAY_CONTAINS_ANY", ints(1, 1)))), "A maximum of 1 'ARRAY_CONTAINS' filter is allowed per disjunction."},
		"array-contains in each or":     {on(or(fieldFilter("v", "ARRAY_CONTAINS", intValue(1)), fieldFilter("v", "ARRAY_CONTAINS", intValue(2)))), ""},
		"one field ordered twice":       {on(nil, "v", "-v"), "order by clause cannot contain duplicate fields v"},
		"order after the name":          {on(nil, "__name__", "v"), "order by clause cannot contain more fields after the key"},
		"not-in null after the name":    {on(fieldFilter("v", "NOT_IN", array(null, null)), "__name__"), ""},
		"not-in NaN after the name":     {on(fieldFilter("v", "NOT_IN", array(null, nan)), "__name__"), "order by clause cannot contain more fields after the key"},
		"inequality after the name":     {on(less("v"), "__name__"), "order by clause cannot contain more fields after the key"},
		"name against a string":         {on(fieldFilter("__name__", "EQUAL", text("x"))), "__name__ filter value must be a document reference"},
		"name in strings":               {on(fieldFilter("__name__", "IN", array(text("x")))), "__name__ filter value must be a document reference"},
		"name is null":                  {on(unaryFilter("__name__", "IS_NULL")), "__name__ filter value must be a document reference"},
		"name against a collection":     {on(fieldFilter("__name__", "EQUAL", reference("c"))), `Resource name "` + testRoot + `/c" lacks "/" at index 42.`},
		"name in another database":      {on(fieldFilter("__name__", "EQUAL", foreign)), "The request was for database 'projects/p/databases/(default)' but was attempting to access database 'projects/p/databases/other'"},
		"name as an array":              {on(fieldFilter("__name__", "ARRAY_CONTAINS", reference("c/a"))), "the name __name__ is reserved"},
		"inequality and name equality":  {on(and(less("v"), fieldFilter("__name__", "EQUAL", reference("c/a")))), "Equality on key is not allowed if there are other inequality fields and key does not appear in inequalities."},
		"inequality and name in":        {on(and(less("v"), fieldFilter("__name__", "IN", array(reference("c/a"))))), "Equality on key is not allowed if there are other inequality fields and key does not appear in inequalities."},
		"equality and name equality":    {on(and(eq("v", 1), fieldFilter("__name__", "EQUAL", reference("c/a")))), ""},
		"10 inequality fields":          {on(manyFilters(10, "LESS_THAN")), ""},
		"11 inequality fields":          {on(manyFilters(11, "LESS_THAN")), "The query contains 11 distinct inequality fields: [f0, f1, f10, f2, f3, f4, f5, f6, f7, f8, f9]. A query may not have more than 10 distinct inequality fields."},
		"100 filters":                   {on(manyFilters(100, "EQUAL")), ""},
		"100 filters and an order":      {on(manyFilters(100, "EQUAL"), "x"), "The query may not have more than 100 filters + sort orders + ancestor total. Currently there are 100 filters, 1 sort orders, and no ancestor filter."},

		// E-QY-05: an index holds 1500 bytes of a value; a string of n bytes takes n+1
		"operand of 1500 bytes":   {on(fieldFilter("v", "EQUAL", longText(1499))), ""},
		"operand of 1501 bytes":   {on(fieldFilter("v", "LESS_THAN", longText(1500))), "value for v is too large to be used in a query"},
		"array as operand":        {on(fieldFilter("v", "EQUAL", array(longText(1491), intValue(1)))), ""},
		"large array as operand":  {on(fieldFilter("v", "EQUAL", array(longText(1492), intValue(1)))), "value for v is too large to be used in a query"},
		"each in a list is small": {on(fieldFilter("v", "IN", array(longText(1499), longText(1498)))), ""},
		"one in a list is large":  {on(fieldFilter("v", "NOT_IN", array(intValue(1), longText(1500)))), "value for v is too large to be used in a query"},
		"large element":           {on(fieldFilter("v", "ARRAY_CONTAINS", longText(1500))), "value for v[*] is too large to be used in a query"},
		"one of several large":    {on(fieldFilter("v", "ARRAY_CONTAINS_ANY", array(intValue(1), longText(1500)))), "value for v[*] is too large to be used in a query"},
		"large reference":         {on(fieldFilter("v", "EQUAL", reference("c/"+strings.Repeat("x", 1482)))), "value for v is too large to be used in a query"},
		"long name":               {on(fieldFilter("__name__", "EQUAL", reference("c/"+strings.Repeat("x", 1500)))), ""},
		"long cursor":             {with(on(nil, "v"), startAt(true, longText(5000))), ""},

		// E-QY-04
		"negative limit":            {with(on(nil), limit(-1)), "limit is negative"},
		"negative offset":           {with(on(nil), func(q *structured) { q.Offset = -1 }), "offset is negative"},
		"cursor without an order":   {with(on(nil), startAt(true, intValue(1))), "Cursor has too many values."},
		"implicit name not counted": {with(on(nil, "v"), endAt(true, intValue(1), reference("c/a"))), "Cursor has too many values."},
		"cursor name as string":     {with(on(nil, "__name__"), startAt(true, text("a"))), "Cursor __name__ value is not a document reference."},
		"cursor name elsewhere":     {with(on(nil, "__name__"), startAt(true, foreign)), "The request was for database 'projects/p/databases/(default)' but was attempting to access database 'projects/p/databases/other'"},
		"cursor without a type":     {with(on(nil, "v"), startAt(true, &pb.Value{})), "Cannot convert firestore.v1.Value with type unset."},

		// malformed
		"filter without a type": {on(&pb.StructuredQuery_Filter{}), "Unknown Filter type."},
		"no field operator":     {on(fieldFilter("v", "", intValue(1))), "Unknown FieldFilter operator."},
		"no unary operator":     {on(unaryFilter("v", "")), "Unknown UnaryFilter operator."},
		"no composite operator": {on(composite(0, eq("v", 1))), "Unsupported CompositeFilter operator."},
		"an empty or":           {on(or()), "Composite filter must have at least one sub-filter."},
		"bad filter inside":     {on(and(or(unaryFilter("a..b", "IS_NULL")))), "Invalid property path \"a..b\". Unquoted property paths must match regex ([a-zA-Z_][a-zA-Z_0-9]*), and quoted property paths must match regex (`(?:[^`\\\\]|(?:\\\\.))+`)"},
		"no operand":            {on(fieldFilter("v", "EQUAL", nil)), "Cannot convert firestore.v1.Value with type unset."},
		"no field":              {on(fieldFilter("", "EQUAL", intValue(1))), "Invalid empty property path string."},
		"bad order":             {on(nil, "__x__"), "Invalid reserved name in field path __x__"},
		"unknown direction":     {with(on(nil, "v"), func(q *structured) { q.OrderBy[0].Direction = 9 }), "Unknown Order direction."},
		"bad projection": {with(on(nil), func(q *structured) {
			q.Select = &pb.StructuredQuery_Projection{Fields: []*pb.StructuredQuery_FieldReference{fieldRef("")}}
		}), "Invalid empty property path string."},
		"two collections":              {from(&pb.StructuredQuery_CollectionSelector{CollectionId: "a"}, &pb.StructuredQuery_CollectionSelector{CollectionId: "b"}), "StructuredQuery.from cannot have more than one collection selector."},
		"reserved collection":          {from(&pb.StructuredQuery_CollectionSelector{CollectionId: "__x__"}), `Collection id "__x__" is invalid because it is reserved.`},
		"every collection, by field":   {&structured{Where: eq("v", 1)}, "kind is required for filter: v"},
		"every collection, ordered":    {&structured{OrderBy: on(nil, "v").OrderBy}, "kind is required for all orders except ascending __name__"},
		"every collection, descending": {&structured{OrderBy: on(nil, "-__name__").OrderBy}, "kind is required for all orders except ascending __name__"}, // E-QY-05
		"every collection, by name":    {&structured{Where: fieldFilter("__name__", "LESS_THAN", reference("c/a"))}, ""},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			_, err := Compile(testRoot, tt.query)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

func TestCompile_ChecksParent(t *testing.T) {
	if _, err := Compile(testRoot+"/c", on(nil)); status.Code(err) != codes.InvalidArgument {
		t.Errorf("collection as parent: %v", err)
	}
	if _, err := Compile(testRoot+"/c/d", on(manyFilters(100, "EQUAL"))); status.Code(err) != codes.InvalidArgument {
		t.Errorf("100 conditions and a parent: %v", err) // E-QY-05
	}
	group := on(fieldFilter("v", "EQUAL", intValue(1)))
	group.From[0].AllDescendants = true
	if _, err := Compile(testRoot+"/c/d", group); status.Code(err) != codes.InvalidArgument {
		t.Errorf("filtered collection group below a document: %v", err)
	}
	group.Where, group.OrderBy = nil, on(nil, "-__name__").OrderBy
	if _, err := Compile(testRoot+"/c/d", group); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("collection group below a document, by descending name: %v", err)
	}
	group.OrderBy = on(nil, "__name__").OrderBy
	if _, err := Compile(testRoot+"/c/d", group); err != nil {
		t.Errorf("collection group below a document, by name: %v", err)
	}
}

// E-RPC-03
func TestCompile_RefusesFindNearest(t *testing.T) {
	_, err := Compile(testRoot, with(on(nil), func(q *structured) { q.FindNearest = &pb.StructuredQuery_FindNearest{} }))
	const want = "embedded firestore: find_nearest not implemented (E-RPC-03)"
	if status.Code(err) != codes.Unimplemented || status.Convert(err).Message() != want {
		t.Errorf("%v, want Unimplemented %s", err, want)
	}
}

// E-QY-06
func TestPlan_ProjectsFields(t *testing.T) {
	doc := document("c/x", "a", intValue(1), "b", intValue(2))
	doc.UpdateTime = &timestamppb.Timestamp{Seconds: 1}
	project := func(fields ...string) *pb.Document {
		s := &pb.StructuredQuery_Projection{}
		for _, field := range fields {
			s.Fields = append(s.Fields, fieldRef(field))
		}
		return mustCompile(t, with(on(nil), func(q *structured) { q.Select = s })).Project(doc)
	}
	if got := project("a", "absent"); len(got.GetFields()) != 1 || got.GetName() != doc.GetName() || got.GetUpdateTime() != doc.GetUpdateTime() {
		t.Errorf("one field: %v", got)
	}
	if got := project("__name__"); len(got.GetFields()) != 0 {
		t.Errorf("the name alone: %v", got)
	}
	if got := project(); got != doc {
		t.Errorf("empty projection: %v, want the whole document", got)
	}
}
