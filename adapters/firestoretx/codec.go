package firestoretx

import (
	"errors"
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
	// setID, if set, gives T the document's id; such a field has no name.
	setID func(*T, string)
}

// codec is the form of one kind of document.
type codec[T any] []field[T]

// decode reads a document. A field with the wrong type, or a missing one that is needed, is a
// *MalformedError that names it. Unknown fields and other missing ones are allowed.
func (c codec[T]) decode(snap *firestore.DocumentSnapshot) (T, error) {
	var v T
	for _, f := range c {
		if f.setID != nil {
			f.setID(&v, snap.Ref.ID)
		}
	}
	if err := c.read(snap.Data(), &v); err != nil {
		return v, &MalformedError{fmt.Errorf("document %s: field %w", snap.Ref.Path, err)}
	}
	return v, nil
}

// read reads the fields of a document or of a map in one.
func (c codec[T]) read(data map[string]any, v *T) error {
	for _, f := range c {
		stored, ok := data[f.name]
		if !ok || stored == nil {
			if f.needed != "" {
				return fmt.Errorf("%s is missing; give %s", f.name, f.needed)
			}
			continue
		}
		if err := f.set(v, stored); err != nil {
			return fmt.Errorf("%s %w", f.name, err)
		}
	}
	return nil
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
	var us []firestore.Update
	for _, f := range c {
		if f.name != "" {
			us = append(us, f.update(f.get(&v)))
		}
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

// key is the document's id.
func key[T any, S ~string](at func(*T) *S) field[T] {
	return field[T]{
		get:   func(*T) any { return nil },
		set:   func(*T, any) error { return errors.New("is the document's id") },
		setID: func(v *T, id string) { *at(v) = S(id) },
	}
}

// custom is a field with a form of its own. stored is nil for a value that is absent.
func custom[T, V any](name string, at func(*T) *V, stored func(V) any, read func(any) (V, error)) field[T] {
	return field[T]{
		name: name,
		get:  func(v *T) any { return stored(*at(v)) },
		set: func(v *T, found any) (err error) {
			*at(v), err = read(found)
			return err
		},
	}
}

// value is a field whose stored values are all of one type, which want describes.
func value[T, V any](name, want string, at func(*T) *V, stored func(V) any, read func(any) (V, bool)) field[T] {
	return custom(name, at, stored, func(found any) (V, error) {
		v, ok := read(found)
		if !ok {
			return v, wrongType(want, found)
		}
		return v, nil
	})
}

// always stores a value as it is, even if it is zero.
func always[V any](v V) any { return v }

// as reads a value of type V.
func as[V any](found any) (V, bool) {
	v, ok := found.(V)
	return v, ok
}

// text is a string field; empty is absent.
func text[T any, S ~string](name string, at func(*T) *S) field[T] {
	return value(name, "a string", at, func(s S) any {
		if s == "" {
			return nil
		}
		return string(s)
	}, func(found any) (S, bool) {
		s, ok := found.(string)
		return S(s), ok
	})
}

// texts is a list of strings; empty is absent.
func texts[T any, S ~string](name string, at func(*T) *[]S) field[T] {
	return listOf(name, "an array of strings", at, func(s S) string { return string(s) }, func(s string) S { return S(s) })
}

// reference is the id of another document; empty is absent. It must be a legal document id, because
// Firestore refuses a whole read if one of its ids is not.
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

// array is a list; empty is absent. read returns false for an entry of the wrong type, and an error
// for a malformed one. want describes the list.
func array[T, E any](name, want string, at func(*T) *[]E, stored func(E) any, read func(any) (E, bool, error)) field[T] {
	return custom(name, at, func(entries []E) any {
		if len(entries) == 0 {
			return nil
		}
		values := make([]any, len(entries))
		for i, e := range entries {
			values[i] = stored(e)
		}
		return values
	}, func(found any) ([]E, error) {
		values, ok := found.([]any)
		if !ok {
			return nil, wrongType(want, found)
		}
		var entries []E
		for i, value := range values {
			e, ok, err := read(value)
			if !ok {
				return nil, wrongType(want, found)
			}
			if err != nil {
				return nil, fmt.Errorf("entry %d, %w", i, err)
			}
			entries = append(entries, e)
		}
		return entries, nil
	})
}

// listOf is an array of values that are stored as F; empty is absent.
func listOf[T, E, F any](name, want string, at func(*T) *[]E, stored func(E) F, read func(F) E) field[T] {
	return array(name, want, at, func(e E) any { return stored(e) }, func(found any) (E, bool, error) {
		f, ok := found.(F)
		return read(f), ok, nil
	})
}

// structs is an array of maps; empty is absent.
func structs[T, E any](name string, c codec[E], at func(*T) *[]E) field[T] {
	return array(name, "an array of maps", at, func(e E) any { return c.encode(e) }, func(found any) (e E, ok bool, err error) {
		m, ok := found.(map[string]any)
		return e, ok, c.read(m, &e)
	})
}

// nested is a map, always written.
func nested[T, E any](name string, c codec[E], at func(*T) *E) field[T] {
	return custom(name, at, func(e E) any { return c.encode(e) }, c.readMap)
}

// optional is a map; nil is absent.
func optional[T, E any](name string, c codec[E], at func(*T) **E) field[T] {
	return custom(name, at, func(e *E) any {
		if e == nil {
			return nil
		}
		return c.encode(*e)
	}, func(found any) (*E, error) {
		e, err := c.readMap(found)
		return &e, err
	})
}

func (c codec[T]) readMap(found any) (v T, err error) {
	m, ok := found.(map[string]any)
	if !ok {
		return v, wrongType("a map", found)
	}
	err = c.read(m, &v)
	return v, err
}

// flag is a boolean field, always written.
func flag[T any](name string, at func(*T) *bool) field[T] {
	return value(name, "a boolean", at, always, as)
}

// mark is a boolean field that is absent when false: a drone has many, each write is billed by the size of
// the whole document in Enterprise edition, and most are false.
func mark[T any](name string, at func(*T) *bool) field[T] {
	return value(name, "a boolean", at, unlessZero, as)
}

// real is a double field, always written; integers are read too.
func real[T any](name string, at func(*T) *float64) field[T] {
	return value(name, "a number", at, always, asNumber)
}

func asNumber(found any) (float64, bool) {
	if n, ok := found.(int64); ok {
		return float64(n), true
	}
	return as[float64](found)
}

// known is a double above 0 that is absent when it is not known. Values of other tools without a
// meaning, such as 0 or NaN, read as not known.
func known[T any](name string, at func(*T) *float64) field[T] {
	return value(name, "a number", at, unlessZero, func(found any) (float64, bool) {
		n, ok := asNumber(found)
		if math.IsInf(n, 0) || !(n > 0) { // or NaN
			n = 0
		}
		return n, ok
	})
}

// optionalNumber is a double that may be absent; NaN and infinities read as absent.
func optionalNumber[T any](name string, at func(*T) **float64) field[T] {
	return value(name, "a number", at, func(n *float64) any {
		if n == nil {
			return nil
		}
		return *n
	}, func(found any) (*float64, bool) {
		n, ok := asNumber(found)
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return nil, ok
		}
		return &n, ok
	})
}

func unlessZero[V comparable](v V) any {
	if v == *new(V) {
		return nil
	}
	return v
}

// whole is an integer field, always written; integral doubles are read too.
func whole[T any, N ~int | ~int64](name string, at func(*T) *N) field[T] {
	return value(name, "a whole number", at, func(n N) any { return int64(n) }, func(found any) (N, bool) {
		if n, ok := found.(float64); ok {
			return N(n), n == float64(int64(n))
		}
		n, ok := found.(int64)
		return N(n), ok
	})
}

// counter is a whole number that is absent when zero, because a cycle may list thousands of orders,
// each with many counts.
func counter[T any, N ~int | ~int64](name string, at func(*T) *N) field[T] {
	f := whole(name, at)
	f.get = func(v *T) any { return unlessZero(int64(*at(v))) }
	return f
}

// slots is a number of charging slots. Earlier versions wrote 0 where none was given.
func slots[T any](name string, at func(*T) *int) field[T] {
	return checked(counter(name, at), at, func(n int) error {
		if n < 0 {
			return fmt.Errorf("is %d; give 1 or more, or leave it out", n)
		}
		return nil
	})
}

// index counts stops of a route or names one of them. A negative one is refused, because cutting
// the route there would panic.
func index[T any](name string, at func(*T) *int) field[T] {
	return checked(whole(name, at), at, checkIndex)
}

// indexes is a list of stops of a route; empty is absent.
func indexes[T any](name string, at func(*T) *[]int) field[T] {
	f := listOf(name, "an array of whole numbers", at, func(n int) int64 { return int64(n) }, func(n int64) int { return int(n) })
	return checked(f, at, func(list []int) error {
		if len(list) == 0 {
			return nil
		}
		return checkIndex(slices.Min(list))
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
	return value(name, "a timestamp", at, func(t time.Time) any {
		if t.IsZero() {
			return nil
		}
		return t.UTC().Truncate(time.Microsecond)
	}, as)
}

// millis is a duration in whole milliseconds.
func millis[T any](name string, at func(*T) *time.Duration) field[T] {
	return value(name, "a whole number of milliseconds", at, func(d time.Duration) any { return d.Milliseconds() }, func(found any) (time.Duration, bool) {
		n, ok := found.(int64)
		return time.Duration(n) * time.Millisecond, ok
	})
}

const geographicalPoint = "a geographical point"

// point is a geographical point, always written.
func point[T any](name string, at func(*T) *domain.Position) field[T] {
	return value(name, geographicalPoint, at, func(p domain.Position) any { return geoPoint(p) }, asPosition)
}

// place is a point that must be present: a missing one would decode to 0, 0, which is
// in the sea.
func place[T any](name string, at func(*T) *domain.Position) field[T] {
	f := point(name, at)
	f.needed = geographicalPoint
	return f
}

func geoPoint(p domain.Position) *latlng.LatLng {
	return &latlng.LatLng{Latitude: p.Lat, Longitude: p.Lon}
}

func asPosition(found any) (domain.Position, bool) {
	p, ok := found.(*latlng.LatLng)
	return domain.Position{Lat: p.GetLatitude(), Lon: p.GetLongitude()}, ok
}
