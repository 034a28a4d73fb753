package firestorelock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/conformance/lock/faultproxy"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/locktest"
)

// bench is a backend on its own database with a clock that stands still.
type bench struct {
	*Backend
	client *firestore.Client
	clock  *locktest.Clock
	log    *logBuffer
}

func newBench(t *testing.T, cfg Config) bench {
	t.Helper()
	clock := locktest.NewClock(time.Now())
	log := &logBuffer{}
	cfg.Clock, cfg.Logger = clock, slog.New(slog.NewTextHandler(log, nil))
	client := newClient(t, serverAddr)
	return bench{newBackend(t, client, cfg), client, clock, log}
}

type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), s)
}

func (b bench) nowMs() int64 { return b.clock.Now().UnixMilli() }

// put plants a document as another program would write it.
func (b bench) put(t *testing.T, path string, fields map[string]any) {
	t.Helper()
	if _, err := b.client.Doc(path).Set(bg, fields); err != nil {
		t.Fatal(err)
	}
}

// get reads a document; nil if there is none.
func (b bench) get(t *testing.T, path string) map[string]any {
	t.Helper()
	doc, err := b.client.Doc(path).Get(bg)
	if status.Code(err) == codes.NotFound {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return doc.Data()
}

// L-DOC-01, L-KEY-04: fields, types and places are SyncGuard's, byte for byte.
func TestDocuments_AreThoseOfSyncGuard(t *testing.T) {
	for _, row := range []struct{ key, lock, counter string }{
		{"payment:42", "locks/payment:42", "fence_counters/fence:payment:42"},
		{"fence:payment:42", "locks/fence:payment:42", "fence_counters/fence:fence:payment:42"},
		{"cafe\u0301", "locks/caf\u00e9", "fence_counters/fence:caf\u00e9"},
		{"\u212b", "locks/\u00c5", "fence_counters/fence:\u00c5"},
		{"\u0958", "locks/\u0915\u093c", "fence_counters/fence:\u0915\u093c"},
		{"q\u0307\u0323", "locks/q\u0323\u0307", "fence_counters/fence:q\u0323\u0307"},
		{strings.Repeat("a", 512), "locks/" + strings.Repeat("a", 512), "fence_counters/fence:" + strings.Repeat("a", 512)},
		{strings.Repeat("\U0001F512", 128), "locks/" + strings.Repeat("\U0001F512", 128), "fence_counters/fence:" + strings.Repeat("\U0001F512", 128)},
		{"key/with/slashes", "locks/key/with/slashes", "fence_counters/fence:key/with/slashes"},
	} {
		// Each key has its own database: the counter of one key may be where SyncGuard
		// 1.x kept that of another.
		b := newBench(t, Config{})
		normal, err := lock.NormalizeKey(row.key)
		if err != nil {
			t.Fatal(err)
		}
		for round, fence := range []string{"000000000000001", "000000000000002"} {
			// The second round overwrites an expired lock with a field too many.
			res := mustAcquire(t, b.Backend, row.key)
			want := map[string]any{
				"lockId":       res.LockID,
				"expiresAtMs":  b.nowMs() + ttl.Milliseconds(),
				"acquiredAtMs": b.nowMs(),
				"key":          normal,
				"fence":        fence,
			}
			if got := b.get(t, row.lock); !reflect.DeepEqual(got, want) {
				t.Errorf("lock of %.20q: %v, want %v", row.key, got, want)
			}
			want = map[string]any{"fence": fence, "keyDebug": normal}
			if got := b.get(t, row.counter); !reflect.DeepEqual(got, want) {
				t.Errorf("counter of %.20q: %v, want %v", row.key, got, want)
			}
			if round == 0 {
				if _, err := b.client.Doc(row.lock).Update(bg, []firestore.Update{{Path: "foreign", Value: 1}}); err != nil {
					t.Fatal(err)
				}
				if _, err := b.client.Doc(row.counter).Update(bg, []firestore.Update{{Path: "foreign", Value: 1}}); err != nil {
					t.Fatal(err)
				}
				b.clock.Advance(ttl + time.Second)
			}
		}
	}
}

// L-EXT-01: extension touches the end alone, release the lock document alone.
func TestDocuments_ExtensionChangesTheEndAlone(t *testing.T) {
	b := newBench(t, Config{})
	for _, ref := range []lock.Ref{{Key: key}, {}} {
		ref.LockID = mustAcquire(t, b.Backend, key).LockID
		if _, err := b.client.Doc("locks/"+key).Update(bg, []firestore.Update{{Path: "foreign", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		want := b.get(t, "locks/"+key)
		b.clock.Advance(time.Second)
		if res, err := b.Extend(bg, ref, ttl); !res.OK || err != nil {
			t.Fatal(res, err)
		}
		want["expiresAtMs"] = b.nowMs() + ttl.Milliseconds()
		if got := b.get(t, "locks/"+key); !reflect.DeepEqual(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		counter := b.get(t, "fence_counters/fence:"+key)
		mustRelease(t, b.Backend, ref)
		if b.get(t, "locks/"+key) != nil || !reflect.DeepEqual(b.get(t, "fence_counters/fence:"+key), counter) {
			t.Error("the release left the lock, or touched the counter")
		}
		if n := b.leases.Len(); n != 0 {
			t.Errorf("%d released leases are remembered", n)
		}
	}
}

// L-KEY-05, L-KEY-06: a key that is not a document path is refused before any I/O.
func TestBackend_RefusesUnaddressableKeys(t *testing.T) {
	refused := []string{"a/b", "a//b", "/", "a/b/", "a/", "/a", ".", "..", "__x__", "____", "a/../b", "a/./b", "a/__x__/b", "a/b/c/d"}
	deep := strings.Repeat("a/b/", 100) + "c" // 201 segments: 101 collections
	b := newBench(t, Config{})
	for _, k := range append(refused, deep) {
		if _, err := b.Acquire(bg, lock.AcquireRequest{Key: k, TTL: ttl}); !errors.Is(err, lock.ErrInvalidArgument) {
			t.Errorf("%.10q: %v", k, err)
		}
	}
	for _, k := range []string{"a/b/c", "...", "__x", "x__", "_", "__", "___", "fence:a", "a b", strings.Repeat("a/b/", 99) + "c"} {
		res := mustAcquire(t, b.Backend, k)
		mustRelease(t, b.Backend, lock.Ref{LockID: res.LockID, Key: k})
	}
	// L-KEY-07
	hashing := newBench(t, Config{UnaddressableKeys: HashKeys})
	for _, k := range refused {
		res := mustAcquire(t, hashing.Backend, k)
		if again, err := hashing.Acquire(bg, lock.AcquireRequest{Key: k, TTL: ttl}); err != nil || again.OK {
			t.Errorf("%q: %+v, %v", k, again, err)
		}
		mustRelease(t, hashing.Backend, lock.Ref{LockID: res.LockID, Key: k})
	}
	mustAcquire(t, hashing.Backend, "a/b")
	if got := hashing.get(t, "locks/wUzdwDP2S53qgOpnXPKAoA"); got["key"] != "a/b" {
		t.Errorf("stored %v", got)
	}
	if got := hashing.get(t, "fence_counters/fence:wUzdwDP2S53qgOpnXPKAoA"); got["keyDebug"] != "a/b" {
		t.Errorf("stored %v", got)
	}
}

// L-REL-04: queries do not see nested locks; the backend remembers its own.
func TestNestedKeys_AreKnownByTheirHolder(t *testing.T) {
	b := newBench(t, Config{})
	const nested = "key/with/slashes"
	other := newBackend(t, b.client, Config{Clock: b.clock})
	id := mustAcquire(t, b.Backend, nested).LockID
	if info, err := b.Lookup(bg, lock.Query{LockID: id}); info == nil || err != nil {
		t.Error(info, err)
	}
	if res, err := b.Extend(bg, lock.Ref{LockID: id}, ttl); !res.OK || err != nil {
		t.Error(res, err)
	}
	for _, ref := range []lock.Ref{{LockID: id}} {
		if res, err := other.Release(bg, ref); res.OK || err != nil {
			t.Error("another backend found it", res, err)
		}
		if info, err := other.Lookup(bg, lock.Query{LockID: id}); info != nil || err != nil {
			t.Error("another backend found it", info, err)
		}
	}
	mustRelease(t, b.Backend, lock.Ref{LockID: id})
	id = mustAcquire(t, b.Backend, nested).LockID
	mustRelease(t, other, lock.Ref{LockID: id, Key: nested}) // the key is enough
	if res, err := b.Release(bg, lock.Ref{LockID: id}); res.OK || err != nil {
		t.Error(res, err)
	}
}

// L-REL-04: a call with the wrong key does not make the backend forget the lease: it is
// still known by its id.
func TestNestedKeys_AreKnownAfterAWrongKey(t *testing.T) {
	b := newBench(t, Config{})
	id := mustAcquire(t, b.Backend, "key/with/slashes").LockID
	for _, wrong := range []string{key, "another/with/slashes"} {
		if res, err := b.Extend(bg, lock.Ref{LockID: id, Key: wrong}, ttl); res.OK || err != nil {
			t.Error(res, err)
		}
		if res, err := b.Extend(bg, lock.Ref{LockID: id}, ttl); !res.OK || err != nil {
			t.Error("unknown after an extension under another key", res, err)
		}
		if res, err := b.Release(bg, lock.Ref{LockID: id, Key: wrong}); res.OK || err != nil {
			t.Error(res, err)
		}
	}
	mustRelease(t, b.Backend, lock.Ref{LockID: id})
}

// L-FENCE-05, L-FENCE-06, D2, D24
func TestFence_ReadsEveryStoredForm(t *testing.T) {
	counter, legacy := "fence_counters/fence:"+key, "fence_counters/"+key
	expired := map[string]any{"lockId": lock.NewLockID(), "expiresAtMs": 1000, "acquiredAtMs": 0, "key": key, "fence": "0000000000000000077"}
	for _, row := range []struct {
		name string
		docs map[string]map[string]any
		want lock.Fence // "": Internal, and nothing is written
	}{
		{"15 digits", map[string]map[string]any{counter: {"fence": "000000000000041"}}, "000000000000042"},
		{"19 digits", map[string]map[string]any{counter: {"fence": "0000000000000000041"}}, "000000000000042"},
		{"one digit", map[string]map[string]any{counter: {"fence": "7"}}, "000000000000008"},
		{"integer", map[string]map[string]any{counter: {"fence": 41}}, "000000000000042"},
		{"integral double", map[string]map[string]any{counter: {"fence": 41.0}}, "000000000000042"},
		{"zero", map[string]map[string]any{counter: {"fence": 0}}, "000000000000001"},
		{"no keyDebug, other fields", map[string]map[string]any{counter: {"fence": "41", "x": true}}, "000000000000042"},
		{"old place", map[string]map[string]any{legacy: {"fence": "0000000000000000099"}}, "000000000000100"},
		{"old place, old lock", map[string]map[string]any{legacy: {"fence": "5"}, "locks/" + key: expired}, "000000000000078"},
		{"old lock alone", map[string]map[string]any{"locks/" + key: expired}, "000000000000078"},
		{"new place wins", map[string]map[string]any{counter: {"fence": "3"}, legacy: {"fence": "0000000000000000099"}}, "000000000000004"},
		{"absent field", map[string]map[string]any{counter: {"keyDebug": key}}, ""},
		{"empty document", map[string]map[string]any{counter: {}}, ""},
		{"empty string", map[string]map[string]any{counter: {"fence": ""}}, ""},
		{"signed", map[string]map[string]any{counter: {"fence": "-1"}}, ""},
		{"negative", map[string]map[string]any{counter: {"fence": -1}}, ""},
		{"hex", map[string]map[string]any{counter: {"fence": "0x2a"}}, ""},
		{"20 digits", map[string]map[string]any{counter: {"fence": "00000000000000000041"}}, ""},
		{"fraction", map[string]map[string]any{counter: {"fence": 1.5}}, ""},
		{"null", map[string]map[string]any{counter: {"fence": nil}}, ""},
		{"negative old place, old lock", map[string]map[string]any{legacy: {"fence": -1}, "locks/" + key: expired}, ""},
		{"damaged old place", map[string]map[string]any{legacy: {"fence": "x"}}, ""},
		{"damaged old lock alone", map[string]map[string]any{"locks/" + key: {"lockId": lock.NewLockID(), "expiresAtMs": 1000, "key": key, "fence": "x"}}, ""},
		{"used up", map[string]map[string]any{counter: {"fence": "900000000000000"}}, ""},
		{"beyond", map[string]map[string]any{counter: {"fence": "9223372036854775807"}}, ""},
		{"last", map[string]map[string]any{counter: {"fence": "899999999999999"}}, "900000000000000"},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBench(t, Config{})
			for path, doc := range row.docs {
				b.put(t, path, doc)
			}
			before := []map[string]any{b.get(t, "locks/"+key), b.get(t, counter), b.get(t, legacy)}
			res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			if row.want != "" {
				if err != nil || res.Fence != row.want {
					t.Errorf("%+v, %v (%v)", res, err, errors.Unwrap(err))
				}
				return
			}
			after := []map[string]any{b.get(t, "locks/"+key), b.get(t, counter), b.get(t, legacy)}
			if !errors.Is(err, lock.ErrInternal) || !reflect.DeepEqual(before, after) {
				t.Errorf("%+v, %v; before %v, after %v", res, err, before, after)
			}
		})
	}
}

// L-FENCE-03
func TestFence_WarnsCloseToTheLimit(t *testing.T) {
	for last, warnings := range map[string]int{"089999999999999": 0, "090000000000000": 1} {
		b := newBench(t, Config{})
		b.put(t, "fence_counters/fence:"+key, map[string]any{"fence": last})
		mustAcquire(t, b.Backend, key)
		if got := b.log.count("close to its end"); got != warnings {
			t.Errorf("%s: %d warnings", last, got)
		}
		if b.log.count(key) != 0 || b.log.count(lock.HashKey(key)) != warnings { // L-ID-03, D25
			t.Errorf("%s: the log names the key, or not its hash", last)
		}
	}
}

// L-FENCE-03: one warning per acquisition, however often it reads the counter.
func TestFence_WarnsOncePerAcquisition(t *testing.T) {
	for _, row := range []struct {
		name  string
		docs  map[string]map[string]any
		fault faultproxy.Fault // of the first commit
	}{
		{"first of a key, after an old lock", map[string]map[string]any{
			"locks/" + key: {"lockId": lock.NewLockID(), "expiresAtMs": 1000, "key": key, "fence": "090000000000000"},
		}, faultproxy.Fault{}},
		{"after a conflict", map[string]map[string]any{
			"fence_counters/fence:" + key: {"fence": "090000000000000"},
		}, faultproxy.Fault{Before: codes.Aborted}},
	} {
		t.Run(row.name, func(t *testing.T) {
			log := &logBuffer{}
			r := newRig(t, Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
			for path, fields := range row.docs {
				if _, err := r.client.Doc(path).Set(bg, fields); err != nil {
					t.Fatal(err)
				}
			}
			r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: row.fault})
			wantFence(t, mustAcquire(t, r.faulty, key).Fence, "090000000000001")
			if got := log.count("close to its end"); got != 1 {
				t.Errorf("%d warnings", got)
			}
		})
	}
}

// L-DOC-02: malformed documents of other writers break nothing, are never treated as
// free silently, and are logged once.
func TestMalformedLocks_AreNotLiveAndLoggedOnce(t *testing.T) {
	id := lock.NewLockID()
	for _, row := range []struct {
		name   string
		fields map[string]any
		live   bool
		warned bool
	}{
		{"integral double", map[string]any{"lockId": id, "expiresAtMs": float64(time.Now().Add(time.Minute).UnixMilli()), "key": key, "fence": "1"}, true, false},
		{"unknown fields", map[string]any{"lockId": id, "expiresAtMs": time.Now().Add(time.Minute).UnixMilli(), "x": []any{1}}, true, false},
		{"no expiry", map[string]any{"lockId": id, "key": key, "fence": "1"}, false, true},
		{"expiry is text", map[string]any{"lockId": id, "expiresAtMs": "soon"}, false, true},
		{"expiry is a fraction", map[string]any{"lockId": id, "expiresAtMs": 1e18 + 0.5, "z": 1.5}, true, false},
		{"expiry is beyond all integers", map[string]any{"lockId": id, "expiresAtMs": 1e300}, true, false},
		{"expiry is before all integers", map[string]any{"lockId": id, "expiresAtMs": -1e300}, false, false},
		{"expiry is infinite", map[string]any{"lockId": id, "expiresAtMs": math.Inf(1)}, true, false},
		{"expiry is no number", map[string]any{"lockId": id, "expiresAtMs": math.NaN()}, false, true},
		{"no id", map[string]any{"expiresAtMs": time.Now().Add(time.Minute).UnixMilli()}, true, true},
		{"id is a number", map[string]any{"lockId": 7, "expiresAtMs": time.Now().Add(time.Minute).UnixMilli()}, true, true},
		{"fence is a map", map[string]any{"lockId": id, "expiresAtMs": time.Now().Add(time.Minute).UnixMilli(), "fence": map[string]any{}}, true, true},
		{"empty", map[string]any{}, false, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBench(t, Config{})
			b.put(t, "fence_counters/fence:"+key, map[string]any{"fence": "1"})
			b.put(t, "locks/"+key, row.fields)
			for range 2 {
				if live, err := b.IsLocked(bg, key); err != nil || live != row.live {
					t.Errorf("locked %v, %v", live, err)
				}
			}
			info, err := lock.GetByKeyRaw(bg, b, key)
			if err != nil || (info != nil) != row.live {
				t.Errorf("%+v, %v", info, err)
			}
			if info != nil && (info.Key != key || info.KeyHash != lock.HashKey(key)) { // L-LKP-02
				t.Errorf("the lock of another key: %+v", info)
			}
			if _, err := b.List(bg); err != nil {
				t.Error(err)
			}
			if res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl}); err != nil || res.OK == row.live {
				t.Errorf("%+v, %v", res, err)
			}
			if got := b.log.count("malformed"); (got > 0) != row.warned || got > 2 {
				t.Errorf("%d warnings", got)
			}
		})
	}
}

// L-KEY-02: SyncGuard stores a key as it was typed. Readers normalise it, and a release
// wakes those who wait for the normalised key.
func TestStoredKey_IsNormalised(t *testing.T) {
	const typed, normal = "cafe\u0301", "caf\u00e9"
	b := newBench(t, Config{})
	id := lock.NewLockID()
	b.put(t, "locks/"+normal, map[string]any{"lockId": id, "expiresAtMs": b.nowMs() + 1000, "key": typed, "fence": "1"})
	for _, q := range []lock.Query{{Key: typed}, {LockID: id}} {
		if info, err := b.LookupRaw(bg, q); info == nil || info.Key != normal || err != nil {
			t.Errorf("%+v, %v, want key %q", info, err, normal)
		}
	}
	free, leave := b.Watch(typed)
	defer leave()
	mustRelease(t, b.Backend, lock.Ref{LockID: id})
	select {
	case <-free:
	default:
		t.Error("the release woke nobody")
	}
}

// L-DOC-02: the same for a document that is found by its lock id.
func TestMalformedLocks_FoundByIDAreLogged(t *testing.T) {
	b := newBench(t, Config{})
	id := lock.NewLockID()
	b.put(t, "locks/"+key, map[string]any{"lockId": id, "key": key, "fence": "1"})
	if res, err := b.Release(bg, lock.Ref{LockID: id}); err != nil || res.OK || res.Reason != lock.ReasonExpired {
		t.Errorf("%+v, %v", res, err)
	}
	if got := b.log.count("malformed"); got != 1 {
		t.Errorf("%d warnings", got)
	}
}

// L-DUP-01, L-DUP-02, L-DUP-03: of several documents with one lock id a live one counts
// if it is the only one; with two live ones nothing is written and lookups are errors.
func TestDuplicateIDs_FailSafe(t *testing.T) {
	for _, row := range []struct {
		name string
		live []bool // one copy each
		ok   bool
		want lock.Reason
		left int
	}{
		{"live, dead", []bool{true, false}, true, "", 0},
		{"dead, live", []bool{false, true}, true, "", 0},
		{"dead, dead, live", []bool{false, false, true}, true, "", 0},
		{"none live", []bool{false, false}, false, lock.ReasonExpired, 0},
		{"two live", []bool{true, true}, false, lock.ReasonNotFound, 2},
		{"two live, one dead", []bool{true, false, true}, false, lock.ReasonNotFound, 3},
		{"one dead", []bool{false}, false, lock.ReasonExpired, 1},
	} {
		for _, extend := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/extend=%v", row.name, extend), func(t *testing.T) {
				b := newBench(t, Config{})
				id := lock.NewLockID()
				live := 0
				for i, lives := range row.live {
					end := b.nowMs() - 5000
					if lives {
						end = b.nowMs() + 60_000
						live++
					}
					name := fmt.Sprintf("k%d", i)
					b.put(t, "locks/"+name, map[string]any{"lockId": id, "expiresAtMs": end, "acquiredAtMs": 0, "key": name, "fence": "000000000000001"})
				}
				info, err := b.Lookup(bg, lock.Query{LockID: id})
				if errors.Is(err, lock.ErrInternal) != (live > 1) || (info != nil) != (live == 1) {
					t.Errorf("lookup with %d live: %+v, %v", live, info, err)
				}
				owns, err := lock.Owns(bg, b, id)
				if errors.Is(err, lock.ErrInternal) != (live > 1) || owns != (live == 1) {
					t.Errorf("owns with %d live: %v, %v", live, owns, err)
				}
				warnings := 0 // of the lookup and of Owns
				if len(row.live) > 1 {
					warnings = 2
				}
				if got := b.log.count("several lock documents"); got != warnings {
					t.Errorf("%d warnings of the lookups", got)
				}
				left := row.left
				var ok bool
				var reason lock.Reason
				if extend {
					var res lock.ExtendResult
					res, err = b.Extend(bg, lock.Ref{LockID: id}, ttl)
					ok, reason = res.OK, res.Reason
					if ok {
						left++
					}
				} else {
					var res lock.ReleaseResult
					res, err = b.Release(bg, lock.Ref{LockID: id})
					ok, reason = res.OK, res.Reason
				}
				if err != nil || ok != row.ok || reason != row.want {
					t.Errorf("%v %q, %v", ok, reason, err)
				}
				docs, err := b.client.Collection("locks").Documents(bg).GetAll()
				if err != nil || len(docs) != left {
					t.Errorf("%d documents are left, want %d (%v)", len(docs), left, err)
				}
				if got := b.log.count("several lock documents"); (got > warnings) != (len(row.live) > 1) {
					t.Errorf("%d warnings", got)
				}
				if b.log.count(id) != 0 {
					t.Error("the log reveals the id")
				}
			})
		}
	}
}

// L-CLN-01, L-CLN-02, L-FENCE-04
func TestCleanup_DeletesOnlyLongExpiredLocks(t *testing.T) {
	b := newBench(t, Config{CleanupInIsLocked: true})
	mustAcquire(t, b.Backend, key)
	isLocked := func() {
		t.Helper()
		if _, err := b.IsLocked(bg, key); err != nil {
			t.Fatal(err)
		}
		wait(t, b.Backend)
	}
	b.clock.Advance(ttl + 2000*time.Millisecond)
	isLocked()
	if b.get(t, "locks/"+key) == nil {
		t.Fatal("deleted within the guard")
	}
	b.clock.Advance(time.Millisecond)
	isLocked()
	if b.get(t, "locks/"+key) != nil {
		t.Fatal("not deleted")
	}
	wantFence(t, mustAcquire(t, b.Backend, key).Fence, "000000000000002")

	// One cleanup per key and second.
	b.put(t, "locks/"+key, map[string]any{"lockId": lock.NewLockID(), "expiresAtMs": 1})
	isLocked()
	if b.get(t, "locks/"+key) == nil {
		t.Error("cleaned twice within a second")
	}
	b.clock.Advance(time.Second)
	isLocked()
	if b.get(t, "locks/"+key) != nil {
		t.Error("not cleaned after a second")
	}

	off := newBench(t, Config{})
	off.put(t, "locks/"+key, map[string]any{"lockId": lock.NewLockID(), "expiresAtMs": 1})
	if _, err := off.IsLocked(bg, key); err != nil {
		t.Fatal(err)
	}
	wait(t, off.Backend)
	if off.get(t, "locks/"+key) == nil {
		t.Error("cleaned though it is off by default")
	}
}

// L-CLN-01: the cleanup reads again: a lock that was acquired meanwhile stays.
// L-CAN-01: the cleanup does not end with the context of the call.
func TestCleanup_LooksAgainInTheBackground(t *testing.T) {
	for _, taken := range []bool{false, true} {
		r := newRig(t, Config{CleanupInIsLocked: true})
		warmUp(t, r.direct)
		if _, err := r.client.Doc("locks/"+key).Set(bg, map[string]any{"lockId": lock.NewLockID(), "expiresAtMs": 1}); err != nil {
			t.Fatal(err)
		}
		answered := make(chan struct{})
		r.proxy.Add(faultproxy.Rule{RPC: "BeginTransaction", Times: 1, Hook: func() {
			<-answered // the answer does not depend on it
			if taken {
				mustAcquire(t, r.direct, key)
			}
		}})
		ctx, cancel := context.WithCancel(bg)
		if locked, err := r.faulty.IsLocked(ctx, key); locked || err != nil {
			t.Error(locked, err)
		}
		cancel()
		close(answered)
		settle(t, r.faulty)
		doc, err := r.client.GetAll(bg, []*firestore.DocumentRef{r.client.Doc("locks/" + key)})
		if err != nil || doc[0].Exists() != taken {
			t.Errorf("taken %v, left %v, %v", taken, doc[0].Exists(), err)
		}
	}
}

// L-CLN-02: a cleanup returns its place when it ends, and none starts after Close.
func TestCleanup_ReturnsItsPlacesAndEndsWithClose(t *testing.T) {
	b := newBench(t, Config{CleanupInIsLocked: true})
	clean := func(i int) (gone bool) {
		t.Helper()
		k := fmt.Sprint("k", i)
		b.put(t, "locks/"+k, map[string]any{"lockId": lock.NewLockID(), "expiresAtMs": 1})
		if _, err := b.IsLocked(bg, k); err != nil {
			t.Fatal(err)
		}
		if i < 2*maxCleanups {
			wait(t, b.Backend)
		} else {
			settle(t, b.Backend)
		}
		return b.get(t, "locks/"+k) == nil
	}
	for i := range 2 * maxCleanups {
		if !clean(i) {
			t.Fatalf("number %d was not cleaned", i)
		}
	}
	settle(t, b.Backend)
	if clean(2 * maxCleanups) {
		t.Error("cleaned after Close")
	}
}

// B-02, L-CLN-01: a lock is long over only if it is so by both clocks.
func TestIsLongOver_ByBothClocks(t *testing.T) {
	local := time.UnixMilli(1_000_000)
	for _, row := range []struct {
		over, serverOver time.Duration
		want             bool
	}{{2001, 2001, true}, {2000, 9000, false}, {9000, 2000, false}} {
		end := local.Add(-row.over * time.Millisecond)
		now := instant{local: local, server: end.Add(row.serverOver * time.Millisecond)}
		if got := isLongOver(storedLock{hasExpiry: true, expiresAtMs: end.UnixMilli()}, now); got != row.want {
			t.Errorf("over by %d ms, by the server %d ms: %v", row.over, row.serverOver, got)
		}
	}
}

// wait waits for background work without ending it.
func wait(t *testing.T, b *Backend) {
	t.Helper()
	if err := b.tasks.Wait(bg); err != nil {
		t.Fatal(err)
	}
}

// L-CLN-02
func TestCleanups_AreBounded(t *testing.T) {
	var c cleanups
	now := time.Now()
	for i := range maxCleanups {
		if !c.admit(fmt.Sprint(i), now) {
			t.Fatalf("refused number %d", i)
		}
	}
	if c.admit("one more", now) {
		t.Error("admitted one too many")
	}
	c.done()
	if !c.admit("one more", now) {
		t.Error("refused a free place")
	}
	for i := range 3 * maxCleanupsKept {
		c.done()
		c.admit(fmt.Sprint("key ", i), now)
	}
	if len(c.last) > maxCleanupsKept {
		t.Errorf("%d keys are remembered", len(c.last))
	}
}

// L-CFG-01
func TestNew_RefusesImpossibleConfigurations(t *testing.T) {
	c := newClient(t, serverAddr)
	for name, try := range map[string]func() (*Backend, error){
		"nil client":       func() (*Backend, error) { return New(nil, Config{}) },
		"even segments":    func() (*Backend, error) { return New(c, Config{Collection: new("a/b")}) },
		"empty segment":    func() (*Backend, error) { return New(c, Config{Collection: new("a//b")}) },
		"reserved segment": func() (*Backend, error) { return New(c, Config{FenceCollection: new("__x__")}) },
		"equal":            func() (*Backend, error) { return New(c, Config{FenceCollection: new("locks")}) },
		"prefix":           func() (*Backend, error) { return New(c, Config{FenceCollection: new("locks/a/b")}) },
		"prefix, turned":   func() (*Backend, error) { return New(c, Config{Collection: new("fence_counters/a/b")}) },
		"set but empty":    func() (*Backend, error) { return New(c, Config{Collection: new("")}) },
		"empty fences":     func() (*Backend, error) { return New(c, Config{FenceCollection: new("")}) },
		"key policy":       func() (*Backend, error) { return New(c, Config{UnaddressableKeys: 7}) },
	} {
		if _, err := try(); !errors.Is(err, lock.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := newBackend(t, c, Config{Collection: new("tenants/a/locks"), FenceCollection: new("tenants/a/fences")})
	mustRelease(t, b, lock.Ref{LockID: mustAcquire(t, b, key).LockID, Key: key})
}

func TestBackend_ListsLiveLocks(t *testing.T) {
	b := newBench(t, Config{})
	want := map[string]string{}
	for _, k := range []string{"a", "b", "c"} {
		want[k] = mustAcquire(t, b.Backend, k).LockID
	}
	b.put(t, "locks/dead", map[string]any{"lockId": lock.NewLockID(), "expiresAtMs": 1})
	list, err := b.List(bg)
	if err != nil || len(list) != len(want) {
		t.Fatal(list, err)
	}
	for _, l := range list {
		if want[l.Key] != l.LockID || l.KeyHash != lock.HashKey(l.Key) || l.Fence != "000000000000001" {
			t.Errorf("%+v", l)
		}
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := b.List(ctx); !errors.Is(err, lock.ErrAborted) {
		t.Error(err)
	}
}

// L-ID-03: errors name neither keys nor ids, however they are printed.
func TestErrors_RevealNothing(t *testing.T) {
	b := newBench(t, Config{})
	b.put(t, "fence_counters/fence:"+key, map[string]any{"fence": key})
	id := lock.NewLockID()
	_, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl, LockID: id})
	e, ok := errors.AsType[*lock.Error](err)
	if !ok || e.Key != key || e.LockID != id || e.Op != "acquire" {
		t.Fatalf("%#v", err)
	}
	checkNoSecrets(t, e, key, id)
}
