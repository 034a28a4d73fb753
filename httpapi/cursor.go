package httpapi

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/domain"
)

// A cursor names the entry that a page ended with, so that pages neither repeat nor skip
// an entry that exists throughout, whatever is written meanwhile. It also names its
// collection: the cursor of another one is refused.

const cursorSeparator = "\x00" // no document id contains it

// cursor is the cursor of the page after the one that ended with id.
func cursor(collection, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(collection + cursorSeparator + id))
}

// afterCursor is the id and the collection that a cursor was made of; both are empty if it
// cannot be decoded.
func afterCursor(value string) (id, collection string) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(value)
	if err != nil {
		return "", ""
	}
	collection, id, _ = strings.Cut(string(data), cursorSeparator)
	return id, collection
}

// cursorOf is the parameter cursor of a collection's list.
func cursorOf(collection string) parameter {
	return parameter{"cursor", "nextCursor of the page before.", schema{"type": "string"}, cursor(collection, "A"), func(value string) string {
		id, of := afterCursor(value)
		// A page may end with a document that is not an entity's.
		if of != collection || domain.CheckDocumentID(id) != nil {
			return fmt.Sprintf("is %.64q; give nextCursor of a page of %s, unchanged", value, collection)
		}
		return ""
	}}
}

// pages answers GET /api/v1/{collection} with one page: items, the id that the next page
// starts after, if there is one, and documents that could not be decoded.
func pages[J any](collection string, read func(context.Context, *request) (items []J, next string, malformed []error, err error)) answer {
	return answer{
		func(ctx context.Context, r *request) (any, error) {
			items, next, malformed, err := read(ctx, r)
			if err != nil {
				return nil, err
			}
			page := entity.Page(collection, items, "", malformed)
			if next != "" {
				page["nextCursor"] = cursor(collection, next)
			}
			return page, nil
		},
		func(s *schemas) content { return content{"application/json", s.page(collection, typeOf[J]())} },
	}
}
