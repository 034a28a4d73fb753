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
	encode encoder
	buf    []byte
	value  *T            // what is encoded
	at     reflect.Value // the same
}

func newPool[T any]() *pool[T] {
	p := &pool[T]{ids: map[string]id{}, values: make([]T, 1), encode: encoderOf(reflect.TypeFor[T]()), value: new(T)}
	p.at = reflect.ValueOf(p.value).Elem()
	return p
}

func (p *pool[T]) intern(v T) id {
	*p.value = v
	p.buf = p.encode(p.buf[:0], p.at)
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

var (
	timeType    = reflect.TypeFor[time.Time]()
	messageType = reflect.TypeFor[message]()
)

// encoder appends the content of a value that can be addressed, so that different values of its
// type have different encodings.
type encoder func(b []byte, v reflect.Value) []byte

// encoderOf returns the encoder of a type. It includes every field, so fields added later count too.
func encoderOf(t reflect.Type) encoder {
	switch t {
	case timeType:
		return encodeTime
	case messageType:
		return encodeMessage()
	}
	switch t.Kind() {
	case reflect.String:
		return func(b []byte, v reflect.Value) []byte {
			return append(binary.AppendUvarint(b, uint64(v.Len())), v.String()...)
		}
	case reflect.Bool:
		return func(b []byte, v reflect.Value) []byte { return appendFlag(b, v.Bool()) }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(b []byte, v reflect.Value) []byte { return binary.AppendVarint(b, v.Int()) }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(b []byte, v reflect.Value) []byte { return binary.AppendUvarint(b, v.Uint()) }
	case reflect.Float32, reflect.Float64:
		return func(b []byte, v reflect.Value) []byte {
			return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Float()))
		}
	case reflect.Pointer:
		encode := encoderOf(t.Elem())
		return func(b []byte, v reflect.Value) []byte {
			if v.IsNil() {
				return append(b, 0)
			}
			return encode(append(b, 1), v.Elem())
		}
	case reflect.Struct:
		return encodeStruct(t)
	case reflect.Slice, reflect.Array:
		encode := encoderOf(t.Elem())
		return func(b []byte, v reflect.Value) []byte {
			n := v.Len()
			b = binary.AppendUvarint(b, uint64(n))
			for i := range n {
				b = encode(b, v.Index(i))
			}
			return b
		}
	}
	panic(fmt.Sprintf("no encoding of a %s", t))
}

func appendFlag(b []byte, flag bool) []byte {
	if flag {
		return append(b, 1)
	}
	return append(b, 0)
}

func encodeTime(b []byte, v reflect.Value) []byte {
	t := v.Addr().Interface().(*time.Time)
	if t.IsZero() {
		return append(b, 0)
	}
	return binary.LittleEndian.AppendUint64(append(b, 1), uint64(t.UnixNano()))
}

// encodeMessage leaves out the parts that only other kinds of messages have.
func encodeMessage() encoder {
	only := map[string]kind{"Report": kindReport, "Request": kindRequest, "Decision": kindDecision, "HandOver": kindHandOver}
	type part struct {
		encode encoder
		of     kind // 0 for all
	}
	parts := make([]part, messageType.NumField())
	for i := range parts {
		f := messageType.Field(i)
		parts[i] = part{encoderOf(f.Type), only[f.Name]}
	}
	return func(b []byte, v reflect.Value) []byte {
		kind := v.Addr().Interface().(*message).Kind
		for i, p := range parts {
			if p.of == 0 || p.of == kind {
				b = p.encode(b, v.Field(i))
			}
		}
		return b
	}
}

func encodeStruct(t reflect.Type) encoder {
	fields := make([]encoder, t.NumField())
	for i := range fields {
		fields[i] = encoderOf(t.Field(i).Type)
	}
	return func(b []byte, v reflect.Value) []byte {
		for i, encode := range fields {
			b = encode(b, v.Field(i))
		}
		return b
	}
}
