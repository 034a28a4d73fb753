package firestorelock

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/lock"
)

// fuzzedValue makes a field of any type Firestore can hold.
func fuzzedValue(kind byte, s string, n int64, x float64) (any, bool) {
	switch kind % 9 {
	case 0:
		return s, true
	case 1:
		return n, true
	case 2:
		return x, true
	case 3:
		return nil, true
	case 4:
		return kind > 127, true
	case 5:
		return []any{s, n}, true
	case 6:
		return map[string]any{s: x}, true
	case 7:
		return []byte(s), true
	default:
		return nil, false // absent
	}
}

// Other programs write documents too: decoding never panics, never treats a broken
// expiry as live, and never reads a broken counter as a number.
func FuzzDecode(f *testing.F) {
	f.Add(byte(0), byte(1), byte(0), "000000000000042", int64(1_800_000_000_000), 1.5)
	f.Add(byte(1), byte(2), byte(8), "x", int64(-1), math.Inf(1))
	f.Add(byte(3), byte(0), byte(2), "", int64(math.MaxInt64), math.NaN())
	f.Add(byte(5), byte(2), byte(6), "9223372036854775808", int64(0), 1e300)
	f.Fuzz(func(t *testing.T, id, expiry, fence byte, s string, n int64, x float64) {
		data := make(map[string]any)
		for field, kind := range map[string]byte{fieldLockID: id, fieldExpiresAt: expiry, fieldFence: fence} {
			if v, ok := fuzzedValue(kind, s, n, x); ok {
				data[field] = v
			}
		}
		l := decodeLock(data)
		if _, isInt := data[fieldExpiresAt].(int64); isInt != l.hasExpiry {
			if v, isDouble := data[fieldExpiresAt].(float64); !isDouble || (l.hasExpiry && v != math.Trunc(v)) {
				t.Fatalf("expiry %v: %+v", data[fieldExpiresAt], l)
			}
		}
		if !l.hasExpiry && (l.liveAt(instant{}) || l.malformed == "") {
			t.Fatalf("%+v", l)
		}
		count, err := decodeCounter(data)
		if err != nil && !errors.Is(err, lock.ErrInternal) {
			t.Fatal(err)
		}
		if err == nil && count < 0 {
			t.Fatalf("counter %d", count)
		}
	})
}

// Every key is refused or leads to three documents that Firestore accepts; equal keys lead
// to the same documents, different keys to different ones.
func FuzzLocate(f *testing.F) {
	for _, seed := range []string{"payment:42", "a/b/c", "a/b", "a//b", ".", "__x__", "cafe\u0301", "fence:a", strings.Repeat("a/", 250) + "a"} {
		f.Add(seed, seed+"x")
	}
	client := newClient(f, serverAddr)
	strict, hashing := newBackend(f, client, Config{}), newBackend(f, client, Config{UnaddressableKeys: HashKeys})
	f.Fuzz(func(t *testing.T, key, other string) {
		for _, b := range []*Backend{strict, hashing} {
			at, err := b.locate(key)
			if err != nil {
				if !errors.Is(err, lock.ErrInvalidArgument) {
					t.Fatal(err)
				}
				continue
			}
			if at.lock == nil || at.counter == nil || at.legacy == nil {
				t.Fatalf("%q has no documents", key)
			}
			if at.nested != strings.Contains(at.base, "/") || len(at.lock.ID) > maxDocumentIDBytes {
				t.Fatalf("%q: %+v", key, at)
			}
			second, err := b.locate(other)
			if err == nil && (second.key == at.key) != (second.lock.Path == at.lock.Path && second.counter.Path == at.counter.Path) {
				t.Fatalf("%q and %q share documents, or one has two", key, other)
			}
		}
	})
}
