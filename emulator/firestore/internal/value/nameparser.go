package value

import (
	"strconv"
	"strings"
)

// parseResource parses the name of a document or of a database's root. Errors call it
// by the noun, "Document" or "Resource".
func parseResource(noun, s string) (Name, error) {
	p := nameParser{noun: noun, whole: s}
	n := p.database()
	p.slash()
	p.literal("documents")
	if p.err == nil && p.at == len(s) {
		return n, nil
	}
	if p.err == nil && s[p.at:] == "/" {
		return Name{}, invalidf(`%s name "%s" is invalid: Omit trailing "/".`, noun, s)
	}
	n.Segments = make([]string, 0, 1+strings.Count(s[p.at:], "/"))
	for p.err == nil && p.at < len(s) {
		p.slash()
		collection := p.id("collection")
		p.slash()
		document := p.id("resource")
		n.Segments = append(n.Segments, collection, document)
	}
	if p.err != nil {
		return Name{}, p.err
	}
	if nameSize(n.Segments) > MaxNameBytes {
		return Name{}, invalidf("%s name is longer than %d bytes.", noun, MaxNameBytes)
	}
	return n, nil
}

// nameParser consumes a resource name from left to right and keeps the first error.
// After an error every step does nothing.
type nameParser struct {
	noun  string
	whole string
	at    int // bytes consumed
	err   error
}

func (p *nameParser) database() Name {
	p.literal("projects")
	p.slash()
	project := p.id("project")
	p.slash()
	p.literal("databases")
	p.slash()
	database := p.id("database")
	return Name{Project: project, Database: database}
}

func (p *nameParser) literal(word string) {
	if p.err != nil {
		return
	}
	if p.peek() != word {
		p.fail(`lacks "` + word + `"`)
		return
	}
	p.at += len(word)
}

func (p *nameParser) slash() {
	if p.err != nil {
		return
	}
	if p.at >= len(p.whole) {
		p.fail(`lacks "/"`)
		return
	}
	p.at++ // peek stops at a slash or the end, so this is one
	if p.at == len(p.whole) && p.whole[:p.at] != "" {
		p.err = invalidf(`%s name "%s" has invalid trailing "/".`, p.noun, p.whole)
	}
}

// id consumes an id of the given kind: project, database, collection or resource (a
// document).
func (p *nameParser) id(what string) string {
	if p.err != nil {
		return ""
	}
	id := p.peek()
	switch id {
	case "":
		p.fail("lacks a " + what + " id")
		return ""
	case ".", "..":
		p.fail(`contains a ` + what + ` id "` + id + `"`)
		return ""
	}
	switch what {
	case "collection":
		p.err = ValidateCollectionID(id)
	case "resource":
		p.err = validateDocumentID(id)
	}
	p.at += len(id)
	return id
}

// peek is the text up to the next slash or the end.
func (p *nameParser) peek() string {
	rest := p.whole[p.at:]
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[:i]
	}
	return rest
}

func (p *nameParser) fail(complaint string) {
	p.err = invalidf(`%s name "%s" %s at index %d.`, p.noun, p.whole, complaint, p.at)
}

// ValidateCollectionID returns an error if id is not a legal collection id: it is empty,
// "." or "..", contains a slash, is reserved (__x__) or longer than MaxIDBytes.
func ValidateCollectionID(id string) error {
	switch {
	case id == "" || id == "." || id == ".." || strings.Contains(id, "/"):
		return invalidf(`Collection id "%s" is invalid.`, id)
	case isReserved(id):
		return invalidf(`Collection id "%s" is invalid because it is reserved.`, id)
	case len(id) > MaxIDBytes:
		return invalidf("The key path element kind is longer than %d bytes.", MaxIDBytes)
	}
	return nil
}

// validateDocumentID returns an error if id is not a legal document id. Of the numeric ids
// it accepts those that the official emulator accepts: __id7__ and __id-7__, but not
// zero or leading zeros, because ids with the same number have no order (E-ER-01).
func validateDocumentID(id string) error {
	if digits, ok := numericIDDigits(id); ok {
		if _, err := strconv.ParseInt(digits, 10, 64); err != nil {
			return invalidf(`Resource id "%s" is invalid because it is not a 64 bit integer.`, id)
		}
		return nil
	}
	switch {
	case isReserved(id):
		return invalidf(`Resource id "%s" is invalid because it is reserved.`, id)
	case len(id) > MaxIDBytes:
		return invalidf("The key path element name is longer than %d bytes.", MaxIDBytes)
	}
	return nil
}

// isReserved reports whether an id matches __.+__ . Four underscores are an ordinary
// id.
func isReserved(id string) bool {
	return len(id) > 4 && strings.HasPrefix(id, "__") && strings.HasSuffix(id, "__")
}
