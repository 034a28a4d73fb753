package value

import (
	"cmp"
	"math"
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// E-QY-01: each value sorts after the one before.
func TestCompare_OrdersAllTypes(t *testing.T) {
	ascending := []*pb.Value{
		nullValue(),
		boolean(false), boolean(true),
		double(math.NaN()),
		double(math.Inf(-1)), integer(math.MinInt64), double(-1.5), integer(-1),
		integer(0), double(math.SmallestNonzeroFloat64), integer(1), double(1.5), integer(2),
		integer(1 << 53), integer(1<<53 + 1), double(1<<53 + 2),
		integer(math.MaxInt64), double(1 << 63), double(math.Inf(1)),
		instant(-1, 0), instant(0, 0), instant(0, 1), instant(1, 0),
		text(""), text("a"), text("aa"), text("b"), text("é"), text("\uffff"), text("\U0001f600"),
		blob(""), blob("a"), blob("b"),
		reference("a/__id-5__"), reference("a/__id7__"), reference("a/__id12__"),
		reference("a/B"), reference("a/____"), reference("a/b"), reference("a/b/c/d"), reference("a/ba"), reference("b/a"),
		geoPoint(-1, 5), geoPoint(0, -1), geoPoint(0, 1), geoPoint(1, 0),
		array(), array(nullValue()), array(integer(1)), array(integer(1), integer(0)), array(integer(2)),
		vector(9), vector(1, 2), vector(1, 3), vector(0, 0, 0),
		mapValue(nil), mapValue(fields{"a": integer(1)}), mapValue(fields{"a": integer(1), "b": integer(0)}),
		mapValue(fields{"a": integer(2)}), mapValue(fields{"b": integer(0)}),
	}
	for i, a := range ascending {
		for j, b := range ascending {
			if got, want := sign(Compare(a, b)), cmp.Compare(i, j); got != want {
				t.Errorf("Compare(%v, %v) = %d, want %d", a, b, got, want)
			}
		}
	}
}

// E-QY-01
func TestCompare_TreatsAsEqual(t *testing.T) {
	same := map[string][2]*pb.Value{
		"integer and double":     {integer(1), double(1)},
		"zero and negative zero": {double(0), double(math.Copysign(0, -1))},
		"integer and minus zero": {integer(0), double(math.Copysign(0, -1))},
		"two NaNs":               {double(math.NaN()), double(math.Float64frombits(0x7ff8000000000001))},
		"numbers inside":         {array(mapValue(fields{"a": integer(1)})), array(mapValue(fields{"a": double(1)}))},
	}
	for rule, pair := range same {
		t.Run(rule, func(t *testing.T) {
			if c := Compare(pair[0], pair[1]); c != 0 {
				t.Errorf("Compare = %d, want 0", c)
			}
		})
	}
}

func sign(c int) int { return cmp.Compare(c, 0) }

func checkTotalOrder(t *rapid.T) {
	g := anyValue(2)
	a, b, c := g.Draw(t, "a"), g.Draw(t, "b"), g.Draw(t, "c")
	if Compare(a, a) != 0 {
		t.Fatal("not reflexive")
	}
	ab, ba := sign(Compare(a, b)), sign(Compare(b, a))
	if ab != -ba {
		t.Fatalf("not antisymmetric: %d and %d", ab, ba)
	}
	bc, ac := sign(Compare(b, c)), sign(Compare(a, c))
	if ab <= 0 && bc <= 0 && ac > 0 || ab >= 0 && bc >= 0 && ac < 0 {
		t.Fatalf("not transitive: %d, %d, %d", ab, bc, ac)
	}
	if ab == 0 && bc != ac {
		t.Fatalf("equal values compare differently: %d and %d", ac, bc)
	}
}

// E-QY-01
func TestCompare_IsTotalOrder(t *testing.T) { rapid.Check(t, checkTotalOrder) }

func FuzzCompare(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkTotalOrder)) }

// E-WR-04
func TestEqual_DistinguishesTypes(t *testing.T) {
	tests := map[string]struct {
		a, b *pb.Value
		want bool
	}{
		"integer is not double":        {integer(1), double(1), false},
		"nor inside a map":             {mapValue(fields{"a": integer(1)}), mapValue(fields{"a": double(1)}), false},
		"nor inside an array":          {array(integer(1)), array(double(1)), false},
		"NaN is NaN":                   {double(math.NaN()), double(math.NaN()), true},
		"zero is not negative zero":    {double(0), double(math.Copysign(0, -1)), false},
		"maps need the same keys":      {mapValue(fields{"a": nullValue()}), mapValue(fields{"b": nullValue()}), false},
		"null is not absent":           {mapValue(fields{"a": nullValue()}), mapValue(nil), false},
		"empty map and nil map":        {mapValue(fields{}), mapValue(nil), true},
		"string is not bytes":          {text("a"), blob("a"), false},
		"timestamps to the nanosecond": {instant(1, 1), instant(1, 2), false},
		"vectors":                      {vector(1, 2), vector(1, 2), true},
		"absent is not null":           {nil, nullValue(), false},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			if got := Equal(tt.a, tt.b); got != tt.want {
				t.Errorf("Equal = %t, want %t", got, tt.want)
			}
		})
	}
}

// Equal values compare as equal, and a value equals its copy.
func TestEqual_RefinesCompare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyValue(2).Draw(t, "a"), anyValue(2).Draw(t, "b")
		if Equal(a, b) != Equal(b, a) {
			t.Fatal("not symmetric")
		}
		if Equal(a, b) && Compare(a, b) != 0 {
			t.Fatal("equal values compare as different")
		}
		if !Equal(a, proto.CloneOf(a)) {
			t.Fatal("a copy differs")
		}
	})
}
