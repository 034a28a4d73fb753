package value

import (
	"cmp"
	"strconv"
	"strings"
)

const (
	// MaxIDBytes bounds one collection or document id.
	MaxIDBytes = 1500
	// MaxDatabaseBytes bounds a project's id and a database's.
	MaxDatabaseBytes = 100
	// MaxNameBytes bounds a document's name, counted as documentSize counts it.
	MaxNameBytes = 6 << 10
)

// Name is a parsed resource name:
// projects/{Project}/databases/{Database}/documents/{Segments joined by "/"}.
// Segments alternate collection id, document id; none at all is the database's
// root, the parent of its top-level collections.
type Name struct {
	Project  string
	Database string
	Segments []string
}

// ParseName parses a document's full name. The error is INVALID_ARGUMENT and
// says where the name goes wrong.
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

// ParseReference parses the content of a reference value, which must name a
// document, of any database.
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

// ParseParent parses what a query or a listing hangs under: a database's root
// (".../documents") or a document's name.
func ParseParent(s string) (Name, error) {
	return parseResource("Document", s)
}

// ParseDatabase parses "projects/{project}/databases/{database}" into a root
// Name. It refuses ids that no database has.
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

// IsDocument reports whether n names a document rather than a root or a
// collection.
func (n Name) IsDocument() bool {
	return len(n.Segments) > 0 && len(n.Segments)%2 == 0
}

// ID is the last segment, the document's own id; empty for the root.
func (n Name) ID() string {
	if len(n.Segments) == 0 {
		return ""
	}
	return n.Segments[len(n.Segments)-1]
}

// CollectionID is the id of the collection the document is in; empty for the
// root.
func (n Name) CollectionID() string {
	if len(n.Segments) < 2 {
		return ""
	}
	return n.Segments[len(n.Segments)-2]
}

// Parent is the document or root that holds the document's collection; the
// root is its own parent.
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

// String is the full resource name, as ParseName and ParseParent take it.
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

// CompareNameStrings orders unparsed names by project, database and then segment by
// segment: numeric ids (__id7__) first, by number, then all others by their bytes; an
// ancestor sorts before its descendants. It does not allocate.
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

// numericID reads an id of the form __idN__, N a 64-bit integer in its
// shortest decimal form and not zero.
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
