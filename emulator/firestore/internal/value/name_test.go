package value

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"
)

// E-ER-01
func TestParseName_AcceptsLegalNames(t *testing.T) {
	for _, path := range []string{
		"a/b", "a/b/c/d", "a/____", "a/___", "a/__id5__", "a/__id-9223372036854775808__", "a/é", "a/x y", "a/" + strings.Repeat("x", MaxIDBytes),
		"a/...", "a/__x", "a/x__",
	} {
		s := testRoot + "/" + path
		n, err := ParseName(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if n.String() != s || !n.IsDocument() || n.Project != "p" || n.Database != "(default)" {
			t.Errorf("%s parsed as %+v", s, n)
		}
	}
}

// E-ER-01
func TestParseName_RefusesIllegalNames(t *testing.T) {
	tests := map[string]string{
		"":                        `Document name "" lacks "projects" at index 0.`,
		"projects":                `Document name "projects" lacks "/" at index 8.`,
		"projects/p":              `Document name "projects/p" lacks "/" at index 10.`,
		"projects/":               `Document name "projects/" has invalid trailing "/".`,
		"projects//databases/d":   `Document name "projects//databases/d" lacks a project id at index 9.`,
		"projects/p/database/x":   `Document name "projects/p/database/x" lacks "databases" at index 11.`,
		"projects/p/databases/..": `Document name "projects/p/databases/.." contains a database id ".." at index 21.`,
		"/" + testRoot + "/a/b":   `Document name "/` + testRoot + `/a/b" lacks "projects" at index 0.`,
		testRoot:                  `Document name "` + testRoot + `" is invalid: Omit "/documents" when referencing a database (except as the parent of a document).`,
		testRoot + "/":            `Document name "` + testRoot + `/" is invalid: Omit trailing "/".`,
		testRoot + "/a":           `Document name "` + testRoot + `/a" lacks "/" at index 42.`,
		testRoot + "/a/":          `Document name "` + testRoot + `/a/" has invalid trailing "/".`,
		testRoot + "/a/b/":        `Document name "` + testRoot + `/a/b/" has invalid trailing "/".`,
		testRoot + "/a/b/c":       `Document name "` + testRoot + `/a/b/c" lacks "/" at index 46.`,
		testRoot + "/a//b":        `Document name "` + testRoot + `/a//b" lacks a resource id at index 43.`,
		testRoot + "//b":          `Document name "` + testRoot + `//b" lacks a collection id at index 41.`,
		testRoot + "/a/.":         `Document name "` + testRoot + `/a/." contains a resource id "." at index 43.`,
		testRoot + "/../b":        `Document name "` + testRoot + `/../b" contains a collection id ".." at index 41.`,
		testRoot + "/a/__x__":     `Resource id "__x__" is invalid because it is reserved.`,
		testRoot + "/a/_____":     `Resource id "_____" is invalid because it is reserved.`,
		testRoot + "/a/__id__":    `Resource id "__id__" is invalid because it is reserved.`,
		testRoot + "/a/__id05__":  `Resource id "__id05__" is invalid because it is reserved.`,
		testRoot + "/a/__id0__":   `Resource id "__id0__" is invalid because it is reserved.`,
		testRoot + "/a/__id-0__":  `Resource id "__id-0__" is invalid because it is reserved.`,
		testRoot + "/__id5__/a":   `Collection id "__id5__" is invalid because it is reserved.`,
		testRoot + "/a/__id9223372036854775808__":                     `Resource id "__id9223372036854775808__" is invalid because it is not a 64 bit integer.`,
		testRoot + "/a/" + strings.Repeat("x", MaxIDBytes+1):          "The key path element name is longer than 1500 bytes.",
		testRoot + "/" + strings.Repeat("x", MaxIDBytes+1) + "/b":     "The key path element kind is longer than 1500 bytes.",
		testRoot + strings.Repeat("/c/"+strings.Repeat("d", 1400), 5): "Document name is longer than 6144 bytes.",
	}
	for s, want := range tests {
		_, err := ParseName(s)
		if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != want {
			t.Errorf("%.80s: %v, want %s", s, err, want)
		}
	}
}

func TestParseParent_AcceptsRootAndDocuments(t *testing.T) {
	root, err := ParseParent(testRoot)
	if err != nil || len(root.Segments) != 0 || root.IsDocument() || root.String() != testRoot {
		t.Errorf("root: %+v, %v", root, err)
	}
	if _, err := ParseParent(testRoot + "/a"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("collection as parent: %v", err)
	}
}

func TestParseDatabase_RefusesIllegalNames(t *testing.T) {
	longest := strings.Repeat("x", MaxDatabaseBytes)
	for _, s := range []string{"projects/p/databases/d", "projects/" + longest + "/databases/" + longest} {
		if n, err := ParseDatabase(s); err != nil || n.DatabaseName() != s {
			t.Errorf("%+v, %v", n, err)
		}
	}
	for _, s := range []string{
		"", "projects/p", "projects/p/databases/d/", "projects/p/databases/d/documents",
		"projects/" + longest + "x/databases/d", "projects/p/databases/" + longest + "x", // E-ER-01
	} {
		if _, err := ParseDatabase(s); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%q: %v, want InvalidArgument", s, err)
		}
	}
}

func TestName_HasParts(t *testing.T) {
	n, err := ParseName(testRoot + "/a/b/c/d")
	if err != nil {
		t.Fatal(err)
	}
	if n.ID() != "d" || n.CollectionID() != "c" || n.Parent().String() != testRoot+"/a/b" || n.Parent().Parent().String() != testRoot {
		t.Errorf("parts of %+v", n)
	}
	if root := n.Parent().Parent(); root.ID() != "" || root.CollectionID() != "" || root.Parent().String() != testRoot {
		t.Errorf("parts of the root %+v", root)
	}
}

func checkName(t *rapid.T) {
	segment := rapid.OneOf(
		rapid.StringMatching(`[a-c_./]{0,5}`),
		rapid.SampledFrom([]string{"__id7__", "__id-3__", "__id12__", "__x__", "documents", "é"}),
	)
	draw := func(label string) string {
		return testRoot + "/" + strings.Join(rapid.SliceOfN(segment, 0, 5).Draw(t, label), "/")
	}
	a, b := draw("a"), draw("b")
	x, err := ParseName(a)
	if err != nil {
		if status.Code(err) != codes.InvalidArgument {
			t.Fatalf("%v, want InvalidArgument", err)
		}
		return
	}
	if x.String() != a {
		t.Fatalf("%q prints as %q", a, x)
	}
	y, err := ParseName(b)
	if err != nil {
		return
	}
	if got, want := sign(CompareNameStrings(a, b)), sign(compareNames(x, y)); got != want {
		t.Fatalf("as strings %d, parsed %d", got, want)
	}
	if (compareNames(x, y) == 0) != (a == b) {
		t.Fatal("two names sort as one")
	}
}

// compareNames is CompareNameStrings for parsed names.
func compareNames(a, b Name) int {
	return cmp.Or(
		strings.Compare(a.Project, b.Project),
		strings.Compare(a.Database, b.Database),
		slices.CompareFunc(a.Segments, b.Segments, compareSegments),
	)
}

func TestParseName_RoundTrip(t *testing.T) { rapid.Check(t, checkName) }

func FuzzParseName(f *testing.F) {
	f.Add(testRoot + "/a/__id7__")
	f.Add("projects/p/databases/d/documents//")
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseName(s)
		if err == nil && (n.String() != s || !n.IsDocument()) {
			t.Fatalf("%q parsed as %+v", s, n)
		}
		if err != nil && status.Code(err) != codes.InvalidArgument {
			t.Fatalf("%q: %v", s, err)
		}
	})
}
