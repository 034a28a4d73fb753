package input_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/dronefleet/dronefleet/internal/input"
)

func readJSON(data []byte) error { _, err := input.JSON(data); return err }
func readYAML(data []byte) error { _, err := input.YAML(data); return err }
func readCSV(data []byte) error  { _, _, err := input.CSV(data); return err }

// F-IN-01: what is wrong with the bytes of a file is said with its place, in every format.
func TestInput_RefusesWithThePlace(t *testing.T) {
	deepJSON := strings.Repeat("[", input.MaxDepth+1) + strings.Repeat("]", input.MaxDepth+1)
	for _, c := range []struct {
		read       func([]byte) error
		data, want string // empty: accepted
	}{
		{readJSON, "\ufeff{\"a\": \"\u00e9\U0001f681\\ud83d\\ude81\"}", ""},
		{readJSON, "{\n\"a\": \"\xe9\"}", "line 2, byte offset 8: byte 0xe9 is not UTF-8; save or send the text as UTF-8"},
		{readJSON, "\xff\xfe{\x00}\x00", "is UTF-16; save or send the text as UTF-8"},
		{readJSON, `{"a": "x\ud800y"}`, "line 1, byte offset 8: half of a surrogate pair is not a character"},
		{readJSON, `{"a\udc00": 1}`, "line 1, byte offset 3: half of a surrogate pair"},
		{readJSON, "\ufeff{\"a\": tru}", "line 1, byte offset 12: not JSON: invalid character '}' in literal true"},
		{readJSON, `{"a": 1, "b": {"a": 1}, "a": 2}`, `line 1, byte offset 24: "a" is given twice; give it once`},
		{readJSON, `{"lat": 1, "Lat": 2}`, `byte offset 11: "lat" and "Lat" differ only in case; give one of them`},
		{readJSON, `{"kelvin": 1, "Kelvin": 2}`, "differ only in case"}, // the Kelvin sign, which the standard library takes for k
		{readJSON, `[{"a": 1}, {"a": 1, "\u0061": 2, "b": 1, "b": 2}]`, `"a" is given twice; give it once | line 1, byte offset 41: "b" is given twice`},
		{readJSON, deepJSON[1 : len(deepJSON)-1], ""},
		{readJSON, deepJSON, "byte offset 100: nested deeper than 100 levels"},
		{readJSON, strings.Repeat(`{"a":`, 1e6), "nested deeper than 100 levels"},
		{readJSON, `{} {}`, "byte offset 3: more than one JSON value; give one"},
		{readJSON, ` `, "there is no JSON; give one value"},
		{readJSON, `{"a": "`, "byte offset 7: not JSON: unexpected EOF"},
		{readYAML, "\ufeffa: {b: 1, c: [1, 2]}\n", ""},
		{readYAML, "# nothing\n", ""},
		{readYAML, "a: 1\nb: caf\xe9\n", "line 2, byte offset 11: byte 0xe9 is not UTF-8"},
		{readYAML, "a: 1\nb: {x: 1, y: 2, x: 3}\n'a': 2\n", `line 2: "x" is given twice; give it once | line 3: "a" is given twice`},
		{readYAML, "a: 1\nA: 2\n", `line 2: "a" and "A" differ only in case`},
		{readYAML, "a: 1\n---\nb: 1\n", "more than one YAML document"},
		{readYAML, "a: [", "is not valid YAML: line 1: did not find expected node content"},
		{readYAML, deepJSON, "nested deeper than 100 levels"},
		{readCSV, "\ufeffid, lat ,lon\r\nA,1,2\r\n,,\r\n", ""},
		{readCSV, "sep=,\nid,lat\nA,1\n", ""},
		{readCSV, "id,name\nA,caf\xe9\n", "line 2, byte offset 13: byte 0xe9 is not UTF-8"},
		{readCSV, "id,lat,lon,lat,Lon\nA,1,2,3,4\n", `line 1: "lat" is given twice; give it once | line 1: "lon" and "Lon" differ only in case`},
		{readCSV, "id,lat,,\nA,1,,\n", ""},
		{readCSV, "id;lat;lon\nA;1,5;2\n", `line 1: the columns are separated by ";"; save the table with commas between columns and points in decimals`},
		{readCSV, "sep=;\nid;lat\n", `line 1: the columns are separated by ";", as its first line says`},
		{readCSV, "id\tlat\nA\t1\n", "separated by tabs"},
		{readCSV, "id,lat,lon\nA,1,5,2\nB,1,2\nC,1\n", "line 2: has 4 cells, the header has 3; write decimals with a point, and put a cell that contains a comma in quotes | line 4: has 2 cells"},
		{readCSV, "id,lat\nA\"B,1\n", `line 2: column 2: bare "`},
	} {
		err := c.read([]byte(c.data))
		if c.want == "" && err != nil {
			t.Errorf("%.80q: %v", c.data, err)
		} else if problems, is := errors.AsType[input.Problems](err); c.want != "" && (!is || !strings.Contains(problems.Error(), c.want)) {
			t.Errorf("%.80q: %v, want %s", c.data, err, c.want)
		}
	}
}

func TestCSV_RowsKeepTheirLines(t *testing.T) {
	header, rows, err := input.CSV([]byte("id,name\n\n A , x\n,\n\"B\",\"two\nlines\"\nC,\n"))
	want := []input.Row{{3, []string{"A", "x"}}, {5, []string{"B", "two\nlines"}}, {7, []string{"C", ""}}}
	if diff := cmp.Diff(want, rows); diff != "" || err != nil || !cmp.Equal(header, []string{"id", "name"}) {
		t.Error(header, err, diff)
	}
}

// F-IN-01: no file is read whole that is too large to be meant.
func TestFile_IsBounded(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := input.File(name, 5); string(data) != "12345" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := input.File(name, 4); err == nil || err.Error() != "has more than 4 bytes; is it the right file?" {
		t.Error(err)
	}
	if _, err := input.File("/dev/zero", 1<<20); err == nil {
		t.Error("an endless file was read")
	}
}

// F-IN-02: RFC 3339 allows t and z.
func TestTime_TakesLowerCase(t *testing.T) {
	for _, text := range []string{"2026-11-21T10:15:30.5Z", "2026-11-21t10:15:30.5z", "2026-11-21t12:15:30.5+02:00"} {
		got, err := input.Time(text)
		if err != nil || got.UTC().String() != "2026-11-21 10:15:30.5 +0000 UTC" {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if _, err := input.Time("2026-11-21 10:15"); err == nil {
		t.Error("a time without a zone was read")
	}
}

// FuzzJSON compares the reader with the standard library and a plain search for what it
// adds: neither accepts what the other refuses.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{
		`{"a": [1, {"b": null}], "A": "\ud83d\ude81"}`, `{"a":"\ud800"}`, "\ufeff[]", `{"a":1,"a":2}`, "\"\xe9\"", `1 2`, `[`, `{"\u212a":1,"k":2}`, strings.Repeat("[", 102), `{"a\ufffd":"\\ud800"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := input.JSON(data)
		plain := strings.TrimPrefix(string(data), "\ufeff")
		valid := utf8.Valid(data) && json.Valid([]byte(plain))
		if err == nil {
			if string(text) != plain || !valid || badNames(t, plain) {
				t.Fatalf("accepted: %q", data)
			}
			return
		}
		problems, is := errors.AsType[input.Problems](err)
		if !is || strings.ContainsAny(err.Error(), "\n\r") || !utf8.ValidString(err.Error()) {
			t.Fatalf("error %#v", err)
		}
		if strings.Contains(err.Error(), "surrogate") || strings.Contains(err.Error(), "nested deeper") {
			return
		}
		if valid && !badNames(t, plain) {
			t.Errorf("refused with %s: %q", problems, data)
		}
	})
}

// badNames reports whether an object of valid JSON gives a name twice, however it is
// written.
func badNames(t *testing.T, text string) bool {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	var value func() bool
	value = func() (bad bool) {
		token, err := decoder.Token()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for delim, open := token.(json.Delim); open && decoder.More(); {
			if delim == '{' {
				key, err := decoder.Token()
				if err != nil {
					t.Fatal(err)
				}
				for _, before := range names {
					bad = bad || strings.EqualFold(before, key.(string))
				}
				names = append(names, key.(string))
			}
			bad = value() || bad
		}
		if _, open := token.(json.Delim); open {
			if _, err := decoder.Token(); err != nil {
				t.Fatal(err)
			}
		}
		return bad
	}
	return value()
}

// FuzzTables holds that YAML and CSV are read or refused in one line of text.
func FuzzTables(f *testing.F) {
	for _, text := range []string{"a: {b: 1}\nA: 2\n", "a: &a [*a]\n", "id,lat\nA,1\n", "id;lat\n", "\ufeffid\n\"", "? [a]\n: 3\n", "<<: {a: 1}\n", "a\xe9: 1\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, errYAML := input.YAML(data)
		header, rows, errCSV := input.CSV(data)
		for _, err := range []error{errYAML, errCSV} {
			if _, is := errors.AsType[input.Problems](err); err != nil && (!is || !utf8.ValidString(err.Error())) {
				t.Errorf("error %#v", err)
			}
		}
		if !utf8.Valid(data) && (errYAML == nil || errCSV == nil) {
			t.Errorf("accepted: %q", data)
		}
		for _, r := range rows {
			if len(r.Cells) != len(header) || r.Line < 1 {
				t.Errorf("row %+v of %q", r, header)
			}
		}
	})
}
