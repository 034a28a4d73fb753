package value

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// E-ER-01
func TestParseFieldPath_AcceptsLegalPaths(t *testing.T) {
	tests := map[string]FieldPath{
		"a":                                   {"a"},
		"_a1.B2":                              {"_a1", "B2"},
		"`a`":                                 {"a"},
		"`a.b`":                               {"a.b"},
		"`a b`.c":                             {"a b", "c"},
		"a.`b`.`c-d`":                         {"a", "b", "c-d"},
		"`a\\`b`":                             {"a`b"},
		"`a\\\\b`":                            {`a\b`},
		"`1`.`é`":                             {"1", "é"},
		"`\\a\\b\\f\\n\\r\\t\\v`":             {"\a\b\f\n\r\t\v"},
		"`\\'\\\"\\?`":                        {`'"?`},
		"`\\101\\x41\\X41\\u00e9\\U0001F600`": {"AAAé😀"},
		"`\\xe9`":                             {"é"}, // a character, not a byte
		"`a\\x2eb`.c":                         {"a.b", "c"},
		"__name__":                            {"__name__"},
		"___":                                 {"___"},
		"__x":                                 {"__x"},
	}
	for s, want := range tests {
		got, err := ParseFieldPath(s)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", s, got, err, want)
		}
	}
}

// E-ER-01
func TestParseFieldPath_RefusesIllegalPaths(t *testing.T) {
	for _, s := range []string{
		"", ".", "a.", ".a", "a..b", "1a", "a-b", "a b", "`a", "a`", "`", "``", "`a`b", "`a`.", "a.`b", "`a\\x`", "`a\\x4`", "`a\\1`", "`a\\400`", "`a\\u00e`", "`a\\ud800`", "`a\\U00110000`", "`a\\e`", "`a\\.`", "`\\x5f_x__`", "`a\\", "é", "*",
		"__x__", "a.__x__", "a.__name__", "____", "`__x__`",
		strings.Repeat("x", 1501), strings.Repeat("a.", 20) + "a",
	} {
		if got, err := ParseFieldPath(s); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%.40q: %q, %v, want InvalidArgument", s, got, err)
		}
	}
	if _, err := ParseWritePath(NameField); status.Code(err) != codes.InvalidArgument {
		t.Errorf("writing %s: %v, want InvalidArgument", NameField, err)
	}
	const want = "Invalid property path \"a..b\". Unquoted property paths must match regex ([a-zA-Z_][a-zA-Z_0-9]*), and quoted property paths must match regex (`(?:[^`\\\\]|(?:\\\\.))+`)"
	if _, err := ParseFieldPath("a..b"); status.Convert(err).Message() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func anyFieldPath() *rapid.Generator[FieldPath] {
	return rapid.Map(rapid.SliceOfN(rapid.StringMatching("[a-c`\\\\. é1]{1,4}"), 1, 4), func(segments []string) FieldPath { return segments })
}

func TestFieldPath_StringRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := anyFieldPath().Draw(t, "path")
		got, err := ParseFieldPath(path.String())
		if err != nil || !slices.Equal(got, path) {
			t.Fatalf("%q prints as %s, parses as %q, %v", path, path, got, err)
		}
	})
}

func FuzzParseFieldPath(f *testing.F) {
	f.Add("a.`b\\`c`.d")
	f.Add("`\\")
	f.Fuzz(func(t *testing.T, s string) {
		path, err := ParseFieldPath(s)
		if err != nil {
			if status.Code(err) != codes.InvalidArgument {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		again, err := splitFieldPath(path.String())
		if len(path.String()) <= maxFieldPathBytes && (err != nil || !slices.Equal(again, path)) {
			t.Fatalf("%q -> %q -> %q -> %q, %v", s, path, path.String(), again, err)
		}
	})
}

func TestSetAndDelete_CopyOnWrite(t *testing.T) {
	original := fields{"a": integer(1), "m": mapValue(fields{"x": integer(1), "y": integer(2)})}
	tests := map[string]struct {
		got, want fields
	}{
		"set a top field":          {Set(original, FieldPath{"b"}, integer(2)), fields{"a": integer(1), "b": integer(2), "m": original["m"]}},
		"set inside a map":         {Set(original, FieldPath{"m", "x"}, integer(9)), fields{"a": integer(1), "m": mapValue(fields{"x": integer(9), "y": integer(2)})}},
		"set makes maps":           {Set(nil, FieldPath{"p", "q"}, integer(1)), fields{"p": mapValue(fields{"q": integer(1)})}},
		"set replaces a scalar":    {Set(original, FieldPath{"a", "z"}, integer(1)), fields{"a": mapValue(fields{"z": integer(1)}), "m": original["m"]}},
		"delete a top field":       {Delete(original, FieldPath{"a"}), fields{"m": original["m"]}},
		"delete leaves the map":    {Delete(Delete(original, FieldPath{"m", "x"}), FieldPath{"m", "y"}), fields{"a": integer(1), "m": mapValue(nil)}},
		"delete through a scalar":  {Delete(original, FieldPath{"a", "z"}), original},
		"delete an absent subtree": {Delete(original, FieldPath{"n", "z"}), original},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			if !EqualFields(tt.got, tt.want) {
				t.Errorf("got %v, want %v", tt.got, tt.want)
			}
		})
	}
	if !EqualFields(original, fields{"a": integer(1), "m": mapValue(fields{"x": integer(1), "y": integer(2)})}) {
		t.Errorf("the argument changed: %v", original)
	}
}

// Get finds what Set stored and nothing after Delete, and neither changes its
// argument.
func TestSetAndDelete_AgreeWithGet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := rapid.MapOfN(rapid.StringMatching(`[ab]`), anyValue(2), 0, 2).Draw(t, "doc")
		before := proto.CloneOf(mapValue(doc))
		path := FieldPath(rapid.SliceOfN(rapid.StringMatching(`[ab]`), 1, 3).Draw(t, "path"))
		v := anyValue(1).Draw(t, "value")
		set := Set(doc, path, v)
		if Get(set, path) != v {
			t.Fatal("set value not found")
		}
		if Get(Delete(set, path), path) != nil {
			t.Fatal("deleted value found")
		}
		if !Equal(mapValue(doc), before) {
			t.Fatal("the argument changed")
		}
	})
}
