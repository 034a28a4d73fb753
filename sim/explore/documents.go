package explore

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// id numbers an interned value; 0 is none.
type id uint16

// pool interns values: equal ones get one number, so that a state holds numbers and
// two states are equal if their numbers are.
type pool[T any] struct {
	ids    map[string]id
	values []T
	buf    []byte
}

func newPool[T any]() *pool[T] {
	return &pool[T]{ids: map[string]id{}, values: make([]T, 1)}
}

func (p *pool[T]) intern(v T) id {
	p.buf = encode(p.buf[:0], reflect.ValueOf(&v).Elem())
	if known, ok := p.ids[string(p.buf)]; ok {
		return known
	}
	if len(p.values) > math.MaxUint16 {
		panic(fmt.Sprintf("more than %d different values of %T; explore a smaller world", math.MaxUint16, v))
	}
	n := id(len(p.values))
	p.ids[string(p.buf)] = n
	p.values = append(p.values, v)
	return n
}

// internDrone interns a drone without what policies only copy, or count for items that are due.
func (m *model) internDrone(d domain.Drone) id {
	d.FlightSeconds, d.Landings, d.BatteryHealth, d.CountsStops = 0, 0, nil, false
	return m.drones.intern(d)
}

func (p *pool[T]) get(n id) *T { return &p.values[n] }

var timeType = reflect.TypeFor[time.Time]()

// encode appends a value's content, so that different values have different encodings.
// It includes every field, so fields added later count too.
func encode(b []byte, v reflect.Value) []byte {
	if v.Type() == timeType {
		t := v.Interface().(time.Time)
		if t.IsZero() {
			return append(b, 0)
		}
		return binary.LittleEndian.AppendUint64(append(b, 1), uint64(t.UnixNano()))
	}
	switch v.Kind() {
	case reflect.String:
		return append(binary.AppendUvarint(b, uint64(v.Len())), v.String()...)
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return binary.AppendVarint(b, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(b, v.Uint())
	case reflect.Float32, reflect.Float64:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Float()))
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, 0)
		}
		return encode(append(b, 1), v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			b = encode(b, v.Field(i))
		}
		return b
	case reflect.Slice, reflect.Array:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		for i := range v.Len() {
			b = encode(b, v.Index(i))
		}
		return b
	}
	panic(fmt.Sprintf("no encoding of a %s", v.Type()))
}
