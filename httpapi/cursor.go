package httpapi

import (
	"context"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
)

// cursorOf is the parameter cursor of a collection's list: example is an entry's name, and
// check says what is wrong with one.
func cursorOf(collection, example string, check func(string) error) parameter {
	return parameter{"cursor", "nextCursor of the page before.", schema{"type": "string"}, entity.Cursor(collection, example), checked(func(value string) error {
		return entity.CheckCursor(collection, value, check)
	}), false}
}

// ofDocuments is the parameter cursor of a collection of documents. A page may end with a
// document that is not an entity's.
func ofDocuments(collection string) parameter {
	return cursorOf(collection, "A", domain.CheckDocumentID)
}

var (
	letterCursor = cursorOf("deadletters", "2026-11-21T12:00:00Z orders 4711", operator.CheckLetterPlace)
	lockCursor   = cursorOf("locks", "00ff", operator.CheckKeyHash)
)

// pages answers GET /api/v1/{collection} with one page: items, the id that the next page
// starts after, if there is one, and documents that could not be decoded.
func pages[J any](collection string, read func(context.Context, *request) (items []J, next string, malformed []error, err error)) answer {
	return answer{
		func(ctx context.Context, r *request) (any, error) {
			items, next, malformed, err := read(ctx, r)
			if err != nil {
				return nil, err
			}
			return entity.Page(collection, items, next, malformed), nil
		},
		func(s *schemas) content { return content{"application/json", s.page(collection, typeOf[J]())} },
	}
}
