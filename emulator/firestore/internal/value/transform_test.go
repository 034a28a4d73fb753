package value

import (
	"math"
	"strconv"
	"testing"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

var requestTime = time.Date(2026, 1, 2, 3, 4, 5, 678_999_999, time.UTC)

func incrementBy(v *pb.Value) *fieldTransform {
	return &fieldTransform{FieldPath: "f", TransformType: &fieldTransformIncrement{Increment: v}}
}
func maximumOf(v *pb.Value) *fieldTransform {
	return &fieldTransform{FieldPath: "f", TransformType: &fieldTransformMaximum{Maximum: v}}
}
func minimumOf(v *pb.Value) *fieldTransform {
	return &fieldTransform{FieldPath: "f", TransformType: &fieldTransformMinimum{Minimum: v}}
}
func unionWith(v ...*pb.Value) *fieldTransform {
	return &fieldTransform{FieldPath: "f", TransformType: &fieldTransformAppend{AppendMissingElements: &pb.ArrayValue{Values: v}}}
}
func removeAll(v ...*pb.Value) *fieldTransform {
	return &fieldTransform{FieldPath: "f", TransformType: &fieldTransformRemove{RemoveAllFromArray: &pb.ArrayValue{Values: v}}}
}
func serverTime() *fieldTransform {
	return &fieldTransform{FieldPath: "f", TransformType: &fieldTransformServerValue{SetToServerValue: pb.DocumentTransform_FieldTransform_REQUEST_TIME}}
}

// E-WR-06
func TestApplyTransform_AllOperations(t *testing.T) {
	nan := double(math.NaN())
	tests := map[string]struct {
		old       *pb.Value
		transform *fieldTransform
		want      *pb.Value
	}{
		"request time to the millisecond": {nil, serverTime(), instant(requestTime.Unix(), 678_000_000)},

		"increment an absent field":              {nil, incrementBy(integer(2)), integer(2)},
		"increment of a non-number":              {text("x"), incrementBy(double(2)), double(2)},
		"increment integer by integer":           {integer(1), incrementBy(integer(2)), integer(3)},
		"increment integer by double":            {integer(1), incrementBy(double(2)), double(3)},
		"increment double by integer":            {double(1.5), incrementBy(integer(2)), double(3.5)},
		"increment saturates above":              {integer(math.MaxInt64 - 1), incrementBy(integer(2)), integer(math.MaxInt64)},
		"increment saturates below":              {integer(math.MinInt64 + 1), incrementBy(integer(-2)), integer(math.MinInt64)},
		"increment reaches the end":              {integer(math.MaxInt64 - 1), incrementBy(integer(1)), integer(math.MaxInt64)},
		"increment across zero":                  {integer(math.MinInt64), incrementBy(integer(math.MaxInt64)), integer(-1)},
		"increment NaN":                          {nan, incrementBy(integer(1)), nan},
		"maximum of an absent field":             {nil, maximumOf(integer(1)), integer(1)},
		"maximum over a non-number":              {nullValue(), maximumOf(integer(1)), integer(1)},
		"maximum takes the larger's type":        {integer(1), maximumOf(double(2)), double(2)},
		"maximum keeps the larger":               {double(2), maximumOf(integer(1)), double(2)},
		"maximum of equals keeps the stored":     {integer(3), maximumOf(double(3)), integer(3)},
		"maximum of NaN":                         {nan, maximumOf(integer(1)), nan},
		"maximum with NaN":                       {integer(1), maximumOf(nan), nan},
		"maximum of zeros keeps the stored":      {integer(0), maximumOf(double(0)), integer(0)},
		"minimum takes the smaller":              {integer(2), minimumOf(double(1)), double(1)},
		"minimum keeps the smaller":              {integer(1), minimumOf(double(2)), integer(1)},
		"minimum of equals keeps the stored":     {double(3), minimumOf(integer(3)), double(3)},
		"minimum of NaN":                         {nan, minimumOf(integer(1)), nan},
		"minimum with NaN":                       {integer(1), minimumOf(nan), nan},
		"union with an absent field":             {nil, unionWith(integer(1)), array(integer(1))},
		"union over a non-array":                 {integer(1), unionWith(integer(2)), array(integer(2))},
		"union with nothing makes an array":      {nil, unionWith(), array()},
		"union keeps order, appends missing":     {array(integer(2), integer(1)), unionWith(integer(1), integer(3)), array(integer(2), integer(1), integer(3))},
		"union takes 1.0 for 1":                  {array(integer(1)), unionWith(double(1)), array(integer(1))},
		"union takes NaN for NaN, null for null": {array(nan, nullValue()), unionWith(nan, nullValue()), array(nan, nullValue())},
		"union adds one of two equal elements":   {nil, unionWith(integer(1), double(1)), array(integer(1))},
		"union keeps stored duplicates":          {array(integer(1), integer(1)), unionWith(integer(2)), array(integer(1), integer(1), integer(2))},
		"remove from an absent field":            {nil, removeAll(integer(1)), array()},
		"remove over a non-array":                {text("x"), removeAll(integer(1)), array()},
		"remove takes every occurrence":          {array(integer(1), double(1), integer(2)), removeAll(integer(1)), array(integer(2))},
		"union compares what would be stored":    {array(instant(1, 2000)), unionWith(instant(1, 2345)), array(instant(1, 2000))},
		"remove compares what would be stored":   {array(instant(1, 2000)), removeAll(instant(1, 2345)), array()},
		"remove takes NaN for NaN":               {array(nan, nullValue()), removeAll(nan, nullValue()), array()},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			next, result, err := ApplyTransform(tt.old, tt.transform, requestTime)
			if err != nil {
				t.Fatal(err)
			}
			if !Equal(next, tt.want) {
				t.Errorf("new value %v, want %v", next, tt.want)
			}
			wantResult := tt.want
			if KindOf(tt.want) == KindArray {
				wantResult = nullValue()
			}
			if !Equal(result, wantResult) {
				t.Errorf("result %v, want %v", result, wantResult)
			}
		})
	}
}

// E-WR-06, E-ER-01
func TestValidateTransforms_RefusesInvalid(t *testing.T) {
	at := func(path string, t *fieldTransform) *fieldTransform {
		t = proto.CloneOf(t)
		t.FieldPath = path
		return t
	}
	several := func(n int) []*fieldTransform {
		transforms := make([]*fieldTransform, n)
		for i := range transforms {
			transforms[i] = at("f"+strconv.Itoa(i), serverTime())
		}
		return transforms
	}
	tests := map[string]struct {
		transforms []*fieldTransform
		want       codes.Code
	}{
		"none":                        {nil, codes.OK},
		"one field twice":             {[]*fieldTransform{incrementBy(integer(1)), incrementBy(integer(2))}, codes.OK},
		"500":                         {several(500), codes.OK},
		"501":                         {several(501), codes.InvalidArgument},
		"a field and one inside":      {[]*fieldTransform{at("a.b", serverTime()), at("a", serverTime())}, codes.InvalidArgument},
		"neighbours in a map":         {[]*fieldTransform{at("a.b", serverTime()), at("a.c", serverTime())}, codes.OK},
		"no operation":                {[]*fieldTransform{{FieldPath: "f"}}, codes.InvalidArgument},
		"no server value":             {[]*fieldTransform{{FieldPath: "f", TransformType: &fieldTransformServerValue{}}}, codes.InvalidArgument},
		"bad path":                    {[]*fieldTransform{at("a..b", serverTime())}, codes.InvalidArgument},
		"the name":                    {[]*fieldTransform{at(NameField, serverTime())}, codes.InvalidArgument},
		"increment by a string":       {[]*fieldTransform{incrementBy(text("x"))}, codes.InvalidArgument},
		"increment by nothing":        {[]*fieldTransform{incrementBy(&pb.Value{})}, codes.InvalidArgument},
		"maximum with null":           {[]*fieldTransform{maximumOf(nullValue())}, codes.InvalidArgument},
		"minimum with an array":       {[]*fieldTransform{minimumOf(array())}, codes.InvalidArgument},
		"array directly in the union": {[]*fieldTransform{unionWith(array())}, codes.InvalidArgument},
		"untyped element":             {[]*fieldTransform{removeAll(&pb.Value{})}, codes.InvalidArgument},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			if err := ValidateTransforms(tt.transforms); status.Code(err) != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	if _, _, err := ApplyTransform(nil, &fieldTransform{}, requestTime); status.Code(err) != codes.InvalidArgument {
		t.Errorf("applying no operation: %v, want InvalidArgument", err)
	}
}

// For any operands: union is idempotent, remove undoes it, maximum and minimum bound
// both operands, and the old value does not change.
func TestApplyTransform_Properties(t *testing.T) {
	apply := func(t *rapid.T, old *pb.Value, transform *fieldTransform) *pb.Value {
		next, _, err := ApplyTransform(old, transform, requestTime)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	scalar := anyValue(1).Filter(func(v *pb.Value) bool { return ValidateFields(fields{"f": array(v)}) == nil })
	number := anyValue(0).Filter(isNumeric)
	rapid.Check(t, func(t *rapid.T) {
		old := anyValue(2).Draw(t, "old")
		before := proto.CloneOf(old)
		elements := rapid.SliceOfN(scalar, 0, 3).Draw(t, "elements")

		united := apply(t, old, unionWith(elements...))
		if !Equal(apply(t, united, unionWith(elements...)), united) {
			t.Fatal("a second union changed the array")
		}
		for _, v := range apply(t, united, removeAll(elements...)).GetArrayValue().GetValues() {
			if normal, _ := normalizeElements(elements); containsSame(normal, v) {
				t.Fatalf("%v survived its removal", v)
			}
		}
		x, y := number.Draw(t, "x"), number.Draw(t, "y")
		if KindOf(x) == KindNumber && KindOf(y) == KindNumber {
			if most := apply(t, x, maximumOf(y)); Compare(most, x) < 0 || Compare(most, y) < 0 {
				t.Fatalf("maximum of %v and %v is %v", x, y, most)
			}
			if least := apply(t, x, minimumOf(y)); Compare(least, x) > 0 || Compare(least, y) > 0 {
				t.Fatalf("minimum of %v and %v is %v", x, y, least)
			}
		}
		if !Equal(old, before) {
			t.Fatal("the old value changed")
		}
	})
}
