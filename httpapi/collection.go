package httpapi

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
)

// Entries on a page.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

var limit = parameter{
	name: "limit", says: "How many entries to list at most.", example: 50,
	schema: schema{"type": "integer", "minimum": 1, "maximum": MaxLimit, "default": DefaultLimit},
	wrong: func(value string) string {
		if n, err := strconv.Atoi(value); err != nil || n < 1 || n > MaxLimit {
			return fmt.Sprintf("is %.64q; give 1 to %d", value, MaxLimit)
		}
		return ""
	},
}

// cursorOf is the parameter cursor of a collection's list: example is an entry's name, and
// check says what is wrong with one.
func cursorOf(collection, example string, check func(string) error) parameter {
	return parameter{
		name: "cursor", says: "nextCursor of the page before.", example: entity.Cursor(collection, example), schema: schema{"type": "string"},
		wrong: checked(func(value string) error { return entity.CheckCursor(collection, value, check) }),
	}
}

// listed are the parameters of a collection's list: its filters, and those of its pages. A
// page may end with a document that is not an entity's.
func listed(collection string, filters ...parameter) []parameter {
	return append(filters, limit, cursorOf(collection, "A", domain.CheckDocumentID))
}

// choice is a parameter with a list of legal values.
func choice[T ~string](name string, legal []T) parameter {
	return parameter{
		name: name, says: "Only those with this " + name + ".", example: string(legal[0]), schema: schema{"type": "string", "enum": legal},
		wrong: func(value string) string {
			if slices.Contains(legal, T(value)) {
				return ""
			}
			return fmt.Sprintf("is %.64q; give %s", value, oneOf(legal))
		},
	}
}

// page is the page that limit and cursor ask for.
func (r *request) page() firestoretx.Page {
	_, after := entity.ReadCursor(r.value("cursor")) // checked
	page := firestoretx.Page{Limit: DefaultLimit, After: after}
	if n, err := strconv.Atoi(r.value("limit")); err == nil { // checked; absent otherwise
		page.Limit = n
	}
	return page
}

// pages answers GET /api/v1/{collection} with one page: items, the id that the next page
// starts after, if there is one, and documents that could not be decoded.
func pages[J any](collection string, read func(context.Context, *request) (items []J, next string, malformed []error, err error)) answer {
	return answer{
		do: func(ctx context.Context, r *request) (any, error) {
			items, next, malformed, err := read(ctx, r)
			if err != nil {
				return nil, err
			}
			page := entity.Page(collection, items, next, malformed)
			page["serverTime"] = r.serverTime().ServerTime
			return page, nil
		},
		shape: func(s *schemas) content { return content{"application/json", s.page(collection, typeOf[J]())} },
	}
}

// list answers GET /api/v1/{collection} with one page.
//
// Cost: 1 RPC; one read per entity listed and one more.
func list[D, J any](collection string, read func(context.Context, *request) (firestoretx.Listing[D], error), form func(D) J) answer {
	return pages(collection, func(ctx context.Context, r *request) (items []J, next string, malformed []error, err error) {
		l, err := read(ctx, r)
		return entity.Each(l.Items, form), l.Next, l.Malformed, err
	})
}

// single answers GET /api/v1/{collection}/{id}.
//
// Cost: 1 RPC, 1 read.
func single[ID ~string, D, J any](read func(context.Context, ID) (D, error), form func(D) J) answer {
	return writes(func(ctx context.Context, r *request) (now J, err error) {
		v, err := read(ctx, ID(r.id()))
		if err != nil {
			return now, err
		}
		return form(v), nil
	})
}

// storyNow is a story as a page reads it.
type storyNow struct {
	serverTime
	operator.StoryJSON
}

// story answers GET /api/v1/{collection}/{id}/story with what the command audit prints
// with --format json.
//
// Cost: 3 or 4 RPCs; a read per event and decision that names the entity. For an order
// that waits, 1 + D RPCs and 2 D reads more for D depots.
func (a *API) story(subject operator.Subject) answer {
	return writes(func(ctx context.Context, r *request) (storyNow, error) {
		story, err := a.operator.Story(ctx, subject, r.id())
		return storyNow{r.serverTime(), story}, err
	})
}
