package firestoretx

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/genproto/googleapis/type/latlng"

	"github.com/dronefleet/dronefleet/domain"
)

// A field maps a document field to a field of T, in both directions. Only the tables
// in documents.go know the form of a document.
type field[T any] struct {
	name string
	// get is the stored value; nil when the field is absent.
	get func(*T) any
	set func(*T, any) error
	// needed says what to give if the field is missing; "" if it may be missing.
	needed string
}

// codec is the form of one kind of document.
type codec[T any] []field[T]

// decode reads a document. A field with the wrong type, or a missing one that is
// needed, is a *MalformedError that names it; other missing fields and unknown ones
// are allowed.
func (c codec[T]) decode(snap *firestore.DocumentSnapshot) (T, error) {
	var v T
	data := snap.Data()
	for _, f := range c {
		stored, ok := data[f.name]
		if !ok || stored == nil {
			if f.needed != "" {
				return v, &MalformedError{fmt.Errorf("document %s: field %s is missing; give %s", snap.Ref.Path, f.name, f.needed)}
			}
			continue
		}
		if err := f.set(&v, stored); err != nil {
			return v, &MalformedError{fmt.Errorf("document %s: field %s %w", snap.Ref.Path, f.name, err)}
		}
	}
	return v, nil
}

// encode is a whole new document.
func (c codec[T]) encode(v T) map[string]any {
	doc := make(map[string]any, len(c))
	for _, f := range c {
		if stored := f.get(&v); stored != nil {
			doc[f.name] = stored
		}
	}
	return doc
}

// updates are the fields that differ between before and after.
func (c codec[T]) updates(before, after T) []firestore.Update {
	var us []firestore.Update
	for _, f := range c {
		if was, is := f.get(&before), f.get(&after); !reflect.DeepEqual(was, is) {
			us = append(us, f.update(is))
		}
	}
	return us
}

// all are the fields of v, whatever the document has.
func (c codec[T]) all(v T) []firestore.Update {
	us := make([]firestore.Update, len(c))
	for i, f := range c {
		us[i] = f.update(f.get(&v))
	}
	return us
}

// update stores a value; nil makes the field absent.
func (f field[T]) update(value any) firestore.Update {
	if value == nil {
		value = firestore.Delete
	}
	return firestore.Update{FieldPath: firestore.FieldPath{f.name}, Value: value}
}

func wrongType(want string, got any) error {
	return fmt.Errorf("should be %s, is %T; correct it in the document", want, got)
}

// text is a string field; empty is absent.
func text[T any, S ~string](name string, at func(*T) *S) field[T] {
	return field[T]{
		name: name,
		get: func(v *T) any {
			if s := *at(v); s != "" {
				return string(s)
			}
			return nil
		},
		set: func(v *T, stored any) error {
			s, ok := stored.(string)
			if !ok {
				return wrongType("a string", stored)
			}
			*at(v) = S(s)
			return nil
		},
	}
}

// texts is a list of strings; empty is absent.
func texts[T any, S ~string](name string, at func(*T) *[]S) field[T] {
	return listOf(name, "an array of strings", at, func(s S) string { return string(s) }, func(s string) S { return S(s) })
}

// reference is the id of another document; empty is absent. Firestore refuses a whole read if
// one of its ids cannot be a document's.
func reference[T any, S ~string](name string, at func(*T) *S) field[T] {
	return checked(text(name, at), at, func(id S) error {
		if id == "" {
			return nil
		}
		return checkReference(id)
	})
}

// references is a list of ids of other documents; empty is absent.
func references[T any, S ~string](name string, at func(*T) *[]S) field[T] {
	return checked(texts(name, at), at, func(ids []S) error {
		for i, id := range ids {
			if err := checkReference(id); err != nil {
				return fmt.Errorf("entry %d, %w", i, err)
			}
		}
		return nil
	})
}

func checkReference[S ~string](id S) error {
	if err := domain.CheckDocumentID(string(id)); err != nil {
		return fmt.Errorf("%w; correct it in the document", err)
	}
	return nil
}

// listOf is an array of values that are stored as F; empty is absent. want describes it.
func listOf[T, E, F any](name, want string, at func(*T) *[]E, stored func(E) F, read func(F) E) field[T] {
	return field[T]{
		name: name,
		get: func(v *T) any {
			if len(*at(v)) == 0 {
				return nil
			}
			values := make([]any, len(*at(v)))
			for i, e := range *at(v) {
				values[i] = stored(e)
			}
			return values
		},
		set: func(v *T, found any) error {
			values, ok := found.([]any)
			if !ok {
				return wrongType(want, found)
			}
			for _, value := range values {
				f, ok := value.(F)
				if !ok {
					return wrongType(want, found)
				}
				*at(v) = append(*at(v), read(f))
			}
			return nil
		},
	}
}

// flag is a boolean field, always written.
func flag[T any](name string, at func(*T) *bool) field[T] {
	return field[T]{
		name: name,
		get:  func(v *T) any { return *at(v) },
		set: func(v *T, stored any) error {
			b, ok := stored.(bool)
			if !ok {
				return wrongType("a boolean", stored)
			}
			*at(v) = b
			return nil
		},
	}
}

// real is a double field, always written; integers are read too.
func real[T any](name string, at func(*T) *float64) field[T] {
	return field[T]{
		name: name,
		get:  func(v *T) any { return *at(v) },
		set: func(v *T, stored any) error {
			switch n := stored.(type) {
			case float64:
				*at(v) = n
			case int64:
				*at(v) = float64(n)
			default:
				return wrongType("a number", stored)
			}
			return nil
		},
	}
}

// known is a double above 0 that is absent when it is not known. Other tools may say so by 0,
// and what cannot be meant, such as NaN, reads as that.
func known[T any](name string, at func(*T) *float64) field[T] {
	f := real(name, at)
	set := f.set
	f.get = func(v *T) any {
		if n := *at(v); n != 0 {
			return n
		}
		return nil
	}
	f.set = func(v *T, stored any) error {
		err := set(v, stored)
		if n := *at(v); math.IsInf(n, 0) || !(n > 0) { // or NaN
			*at(v) = 0
		}
		return err
	}
	return f
}

// whole is an integer field, always written; integral doubles are read too.
func whole[T any, N ~int | ~int64](name string, at func(*T) *N) field[T] {
	return field[T]{
		name: name,
		get:  func(v *T) any { return int64(*at(v)) },
		set: func(v *T, stored any) error {
			switch n := stored.(type) {
			case int64:
				*at(v) = N(n)
			case float64:
				if n != float64(int64(n)) {
					return wrongType("a whole number", stored)
				}
				*at(v) = N(n)
			default:
				return wrongType("a whole number", stored)
			}
			return nil
		},
	}
}

// index counts stops of a route or names one of them. A negative one would make the code that
// cuts the route there panic.
func index[T any](name string, at func(*T) *int) field[T] {
	return checked(whole(name, at), at, checkIndex)
}

// indexes is a list of stops of a route; empty is absent.
func indexes[T any](name string, at func(*T) *[]int) field[T] {
	f := listOf(name, "an array of whole numbers", at, func(n int) int64 { return int64(n) }, func(n int64) int { return int(n) })
	return checked(f, at, func(list []int) error {
		if i := slices.IndexFunc(list, func(n int) bool { return n < 0 }); i >= 0 {
			return checkIndex(list[i])
		}
		return nil
	})
}

func checkIndex(n int) error {
	if n < 0 {
		return fmt.Errorf("is %d; give 0 or more", n)
	}
	return nil
}

// checked is the field with a condition on the values that it reads.
func checked[T, V any](f field[T], at func(*T) *V, check func(V) error) field[T] {
	set := f.set
	f.set = func(v *T, stored any) error {
		err := set(v, stored)
		if err == nil {
			err = check(*at(v))
		}
		if err != nil {
			*at(v) = *new(V)
		}
		return err
	}
	return f
}

// instant is a timestamp field; the zero time is absent. Times are kept to the
// microsecond, as Firestore keeps them.
func instant[T any](name string, at func(*T) *time.Time) field[T] {
	return field[T]{
		name: name,
		get: func(v *T) any {
			if at(v).IsZero() {
				return nil
			}
			return at(v).UTC().Truncate(time.Microsecond)
		},
		set: func(v *T, stored any) error {
			t, ok := stored.(time.Time)
			if !ok {
				return wrongType("a timestamp", stored)
			}
			*at(v) = t
			return nil
		},
	}
}

// point is a geographical point, always written.
func point[T any](name string, at func(*T) *domain.Position) field[T] {
	return field[T]{
		name: name,
		get:  func(v *T) any { return geoPoint(*at(v)) },
		set: func(v *T, stored any) error {
			p, ok := stored.(*latlng.LatLng)
			if !ok {
				return wrongType("a geographical point", stored)
			}
			*at(v) = domain.Position{Lat: p.GetLatitude(), Lon: p.GetLongitude()}
			return nil
		},
	}
}

// place is a point that must be present: a missing one would decode to 0, 0, which is
// in the sea.
func place[T any](name string, at func(*T) *domain.Position) field[T] {
	f := point(name, at)
	f.needed = "a geographical point"
	return f
}

func geoPoint(p domain.Position) *latlng.LatLng {
	return &latlng.LatLng{Latitude: p.Lat, Longitude: p.Lon}
}

// custom is a field with a form of its own.
func custom[T any](name string, get func(*T) any, set func(*T, any) error) field[T] {
	return field[T]{name: name, get: get, set: set}
}

// optional is a map; nil is absent.
func optional[T, E any](name string, c codec[E], at func(*T) **E) field[T] {
	return field[T]{
		name: name,
		get: func(v *T) any {
			if *at(v) == nil {
				return nil
			}
			return c.encode(**at(v))
		},
		set: func(v *T, stored any) error {
			elem := new(E)
			if err := c.decodeMap(stored, "a map", elem); err != nil {
				return err
			}
			*at(v) = elem
			return nil
		},
	}
}

// nested is a map, always written.
func nested[T, E any](name string, c codec[E], at func(*T) *E) field[T] {
	return field[T]{
		name: name,
		get:  func(v *T) any { return c.encode(*at(v)) },
		set: func(v *T, stored any) error {
			return c.decodeMap(stored, "a map", at(v))
		},
	}
}

// decodeMap reads a document's map. want describes what the document should have there.
func (c codec[T]) decodeMap(stored any, want string, v *T) error {
	m, ok := stored.(map[string]any)
	if !ok {
		return wrongType(want, stored)
	}
	for _, f := range c {
		if stored, ok := m[f.name]; ok && stored != nil {
			if err := f.set(v, stored); err != nil {
				return fmt.Errorf("%s %w", f.name, err)
			}
		}
	}
	return nil
}

// structs is an array of maps; empty is absent.
func structs[T, E any](name string, c codec[E], at func(*T) *[]E) field[T] {
	return field[T]{
		name: name,
		get: func(v *T) any {
			if len(*at(v)) == 0 {
				return nil
			}
			list := make([]any, len(*at(v)))
			for i, e := range *at(v) {
				list[i] = c.encode(e)
			}
			return list
		},
		set: func(v *T, stored any) error {
			list, ok := stored.([]any)
			if !ok {
				return wrongType("an array of maps", stored)
			}
			for _, e := range list {
				if _, ok := e.(map[string]any); !ok {
					return wrongType("an array of maps", stored)
				}
				var elem E
				if err := c.decodeMap(e, "a map", &elem); err != nil {
					return fmt.Errorf("entry %d, %w", len(*at(v)), err)
				}
				*at(v) = append(*at(v), elem)
			}
			return nil
		},
	}
}
