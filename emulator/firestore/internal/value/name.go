package value

import (
	"cmp"
	"strconv"
	"strings"
)

const (
	// MaxIDBytes bounds the id of a collection or document.
	MaxIDBytes = 1500
	// MaxDatabaseBytes bounds the id of a project or database.
	MaxDatabaseBytes = 100
	// MaxNameBytes bounds the name of a document, counted like in documentSize.
	MaxNameBytes = 6 << 10
)

// Name is a parsed resource name:
// projects/{Project}/databases/{Database}/documents/{Segments joined by "/"}. The
// segments are alternately collection ids and document ids. Without segments it is
// the root of the database, the parent of its top-level collections.
type Name struct {
	Project  string
	Database string
	Segments []string
}

// ParseName parses the full name of a document. The error is INVALID_ARGUMENT and says
// where the name is wrong.
func ParseName(s string) (Name, error) {
	n, err := parseResource("Document", s)
	if err != nil {
		return Name{}, err
	}
	if len(n.Segments) == 0 {
		return Name{}, invalidf(`Document name "%s" is invalid: Omit "/documents" when referencing a database (except as the parent of a document).`, s)
	}
	return n, nil
}

// ParseReference parses a reference value, which must be the name of a document of any
// database.
func ParseReference(s string) (Name, error) {
	n, err := parseResource("Resource", s)
	if err != nil {
		return Name{}, err
	}
	if len(n.Segments) == 0 {
		return Name{}, invalidf(`Resource name "%s" is invalid: Omit "/documents" when referencing a database (except as the parent of a document).`, s)
	}
	return n, nil
}

// ParseParent parses the parent of a query or listing, which is the root of a database
// (".../documents") or the name of a document.
func ParseParent(s string) (Name, error) {
	return parseResource("Document", s)
}

// ParseDatabase parses "projects/{project}/databases/{database}" into the Name of its
// root.
func ParseDatabase(s string) (Name, error) {
	p := nameParser{noun: "Database", whole: s}
	n := p.database()
	if p.err == nil && p.at < len(s) {
		return Name{}, invalidf(`Database name "%s" has invalid trailing "%s".`, s, s[p.at:])
	}
	switch {
	case len(n.Project) > MaxDatabaseBytes:
		return Name{}, invalidf("The project is longer than %d bytes.", MaxDatabaseBytes)
	case len(n.Database) > MaxDatabaseBytes:
		return Name{}, invalidf("The database is longer than %d bytes.", MaxDatabaseBytes)
	}
	return n, p.err
}

// IsDocument reports whether n is a document, and not a root or a collection.
func (n Name) IsDocument() bool {
	return len(n.Segments) > 0 && len(n.Segments)%2 == 0
}

// ID is the last segment, the document's id. It is empty for the root.
func (n Name) ID() string {
	if len(n.Segments) == 0 {
		return ""
	}
	return n.Segments[len(n.Segments)-1]
}

// CollectionID is the id of the document's collection. It is empty for the root.
func (n Name) CollectionID() string {
	if len(n.Segments) < 2 {
		return ""
	}
	return n.Segments[len(n.Segments)-2]
}

// Parent is the document or root that contains the document's collection. The root is
// its own parent.
func (n Name) Parent() Name {
	if len(n.Segments) < 2 {
		return Name{Project: n.Project, Database: n.Database}
	}
	return Name{Project: n.Project, Database: n.Database, Segments: n.Segments[:len(n.Segments)-2]}
}

// DatabaseName is "projects/{project}/databases/{database}".
func (n Name) DatabaseName() string {
	return "projects/" + n.Project + "/databases/" + n.Database
}

// String is the full resource name, which ParseName and ParseParent read.
func (n Name) String() string {
	var b strings.Builder
	b.WriteString(n.DatabaseName())
	b.WriteString("/documents")
	for _, segment := range n.Segments {
		b.WriteByte('/')
		b.WriteString(segment)
	}
	return b.String()
}

// CompareNameStrings compares unparsed names by project, database, and then segment by
// segment. Numeric ids (__id7__) come first, by number, then all others by their bytes.
// An ancestor sorts before its descendants. It does not allocate.
func CompareNameStrings(a, b string) int {
	for {
		aSegment, aRest, aMore := strings.Cut(a, "/")
		bSegment, bRest, bMore := strings.Cut(b, "/")
		if c := compareSegments(aSegment, bSegment); c != 0 {
			return c
		}
		if !aMore || !bMore {
			return compareBools(aMore, bMore)
		}
		a, b = aRest, bRest
	}
}

func compareSegments(a, b string) int {
	aNumber, aNumeric := numericID(a)
	bNumber, bNumeric := numericID(b)
	switch {
	case aNumeric && bNumeric:
		return cmp.Compare(aNumber, bNumber)
	case aNumeric:
		return -1
	case bNumeric:
		return 1
	default:
		return strings.Compare(a, b)
	}
}

// numericID parses an id of the form __idN__, where N is a 64-bit integer other than 0
// in its shortest decimal form.
func numericID(s string) (int64, bool) {
	digits, ok := numericIDDigits(s)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}

func numericIDDigits(s string) (string, bool) {
	const prefix, suffix = "__id", "__"
	if len(s) <= len(prefix)+len(suffix) || s[:len(prefix)] != prefix || s[len(s)-len(suffix):] != suffix {
		return "", false
	}
	digits := s[len(prefix) : len(s)-len(suffix)]
	unsigned := strings.TrimPrefix(digits, "-")
	if unsigned == "" || unsigned[0] == '0' {
		return "", false
	}
	for i := range len(unsigned) {
		if unsigned[i] < '0' || unsigned[i] > '9' {
			return "", false
		}
	}
	return digits, true
}
