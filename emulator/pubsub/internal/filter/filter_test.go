package filter_test

import (
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/emulator/pubsub/internal/filter"
)

// P-DEL-07
func TestFilter_Matches(t *testing.T) {
	com := map[string]string{"name": "com", "lang": "en"}
	odd := map[string]string{"iana.org/tag": "en", "k-1_x": "a\"b\\c", "みんな": "é", "-x": "1"}
	cases := []struct {
		text       string
		attributes map[string]string
		want       bool
	}{
		{``, nil, true},
		{`  `, com, true},
		{`attributes:name`, com, true},
		{`attributes:other`, com, false},
		{`attributes:"name"`, com, true},
		{`attributes.name = "com"`, com, true},
		{`attributes.name="com"`, com, true},
		{`attributes.name = "org"`, com, false},
		{`attributes.other = ""`, com, false},
		{`attributes.name != "org"`, com, true},
		{`attributes.name != "com"`, com, false},
		{`attributes.other != "com"`, com, true},
		{`hasPrefix(attributes.name, "co")`, com, true},
		{`hasPrefix ( attributes."name" , "om" )`, com, false},
		{`hasPrefix(attributes.other, "")`, com, false},
		{`NOT attributes:other`, com, true},
		{`-attributes:name`, com, false},
		{`-(attributes:name AND attributes:other)`, com, true},
		{`attributes:name AND attributes:lang`, com, true},
		{`attributes:name AND attributes:lang AND attributes:x`, com, false},
		{`attributes:x OR attributes:y OR attributes:lang`, com, true},
		{`attributes:x AND (attributes:y OR attributes:lang)`, com, false},
		{`(attributes:x AND attributes:y) OR attributes:lang`, com, true},
		{`NOT attributes:x AND attributes:lang`, com, true},
		{`((attributes:lang))`, com, true},
		{`attributes:"iana.org/tag"`, odd, true},
		{`attributes."iana.org/tag" = "en"`, odd, true},
		{`attributes.k-1_x = "a\"b\\c"`, odd, true},
		{`attributes.k-1_x = "\x61\"\142\u005cc"`, odd, true},
		{`attributes."みんな" = "é"`, odd, true},
		{`attributes.-x = "1"`, odd, true},
		{"attributes:name\n\tAND attributes:lang", com, true},
		{`attributes.AND = "x"`, map[string]string{"AND": "x"}, true},
		{`attributes:attributes`, map[string]string{"attributes": ""}, true},
	}
	for _, c := range cases {
		t.Run(c.text, func(t *testing.T) {
			f, err := filter.Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Matches(c.attributes); got != c.want {
				t.Errorf("matches %v = %v, want %v", c.attributes, got, c.want)
			}
		})
	}
}

// P-DEL-07
func TestParse_RefusesBadFilters(t *testing.T) {
	for _, text := range []string{
		`attributes`, `name = "x"`, `attributes.name`, `attributes.name = com`, `attributes.name = $`,
		`attributes.name = `, `(attributes:name`, `attributes:name)`, `hasPrefix(attributes.name)`,
		`hasPrefix(attributes:name, "x")`, `attributes:name and attributes:lang`, `not attributes:name`,
		`attributes:a AND attributes:b OR attributes:c`, `attributes:a attributes:b`, `NOT NOT attributes:a`,
		`attributes.name = "unclosed`, `attributes.name = "bad \q"`, `attributes.name = "\xff"`, `attributes.name = 'x'`,
		`attributes.name > "x"`, `AND attributes:a`, `attributes:a AND`, `attributes:みんな`, `data = "x"`,
		`attributes:` + strings.Repeat("k", filter.MaxLength),
	} {
		t.Run(text, func(t *testing.T) {
			if _, err := filter.Parse(text); err == nil {
				t.Error("accepted")
			} else if !strings.HasPrefix(err.Error(), "filter") {
				t.Errorf("error %q does not name the filter", err)
			}
		})
	}
}

// FuzzParse looks for texts that crash the parser, and for accepted ones whose
// negation does not decide the opposite. P-DEL-07
func FuzzParse(f *testing.F) {
	f.Add(`attributes.name = "com" AND -attributes:"lang"`)
	f.Add(`NOT (hasPrefix(attributes.a, "\u00e9") OR attributes.b != "")`)
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := filter.Parse(text)
		if err != nil || parsed.Everything() || len(text) > filter.MaxLength-len("NOT ()") {
			return
		}
		negated, err := filter.Parse("NOT (" + text + ")")
		if err != nil {
			t.Fatalf("negation of %q is refused: %v", text, err)
		}
		for _, attributes := range []map[string]string{nil, {"a": "x"}, {"name": "com", "b": ""}} {
			if parsed.Matches(attributes) == negated.Matches(attributes) {
				t.Fatalf("%q and its negation agree on %v", text, attributes)
			}
		}
	})
}
