package firestorelock

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/conformance/lock/syncguard"
	"github.com/dronefleet/dronefleet/lock"
)

// startSyncGuard runs SyncGuard on the server of the tests.
func startSyncGuard(t *testing.T) *syncguard.Process {
	t.Helper()
	return syncguard.Start(t, "FIRESTORE_EMULATOR_HOST="+serverAddr,
		"METADATA_SERVER_DETECTION=none") // or it looks for Google's first
}

// inProject is SyncGuard in one database.
func inProject(t *testing.T, p *syncguard.Process, project string) syncguard.Peer {
	return p.On(t, map[string]any{"project": project})
}

// interop is our side of a database that SyncGuard uses too.
type interop struct {
	bench
	project string
}

func newInterop(t *testing.T) interop {
	t.Helper()
	project := freshProject()
	client := clientOf(t, serverAddr, project)
	return interop{bench{Backend: newBackend(t, client, Config{}), client: client}, project}
}

// B-04, L-KEY-02, L-KEY-04, L-DOC-01, L-LKP-03: each side reads what the other writes, in
// the same places. SyncGuard stores a key as it was typed.
func TestInterop_ReadsAndWritesTheSameDocuments(t *testing.T) {
	syncguard.Need(t)
	process := startSyncGuard(t)
	for _, row := range []struct{ key, base string }{
		{"payment:42", "payment:42"},
		{"fence:payment:42", "fence:payment:42"},
		{"cafe\u0301", "caf\u00e9"},
		{"\u212b", "\u00c5"},
		{"\u0958", "\u0915\u093c"},
		{"q\u0307\u0323", "q\u0323\u0307"},
		{strings.Repeat("a", 512), strings.Repeat("a", 512)},
		{strings.Repeat("\U0001F512", 128), strings.Repeat("\U0001F512", 128)},
		{strings.Repeat("e\u0301", 200), strings.Repeat("\u00e9", 200)},
		{"key/with/slashes", "key/with/slashes"},
	} {
		t.Run(fmt.Sprintf("%.20q", row.key), func(t *testing.T) {
			b := newInterop(t)
			theirs := inProject(t, process, b.project)
			nested := strings.Contains(row.key, "/")
			stored := func(info lock.RawInfo, typed string, ours bool) {
				t.Helper()
				want := map[string]any{
					"lockId": info.LockID, "key": typed, "fence": string(info.Fence),
					"expiresAtMs": info.ExpiresAtMs, "acquiredAtMs": info.ExpiresAtMs - ttl.Milliseconds(),
				}
				if ours { // L-END-01: SyncGuard drops it when it takes the lock
					want["lease"] = leaseField(info.ExpiresAtMs, ttl)
				}
				if got := b.get(t, "locks/"+row.base); !reflect.DeepEqual(got, want) {
					t.Errorf("lock %v, want %v", got, want)
				}
				want = map[string]any{"fence": string(info.Fence), "keyDebug": typed}
				if got := b.get(t, "fence_counters/fence:"+row.base); !reflect.DeepEqual(got, want) {
					t.Errorf("counter %v, want %v", got, want)
				}
			}
			// Who holds nothing finds the lock by its key, as typed and composed, and
			// by its id unless it is nested.
			read := func(info lock.RawInfo) {
				t.Helper()
				for _, q := range []lock.Query{{Key: row.key}, {Key: row.base}, {LockID: info.LockID}} {
					ours, err := newBackend(t, b.client, Config{}).LookupRaw(bg, q)
					if err != nil {
						t.Fatal(err)
					}
					a := theirs.Lookup(q)
					if a.Err() != nil {
						t.Fatal(a.Err())
					}
					if q.LockID != "" && nested {
						if ours != nil || a.OK {
							t.Errorf("a nested lock is found by its id: %v, %v", ours, a)
						}
						continue
					}
					want := lock.Info{
						KeyHash: lock.HashKey(row.key), LockIDHash: lock.HashKey(info.LockID), Fence: info.Fence,
						ExpiresAtMs: info.ExpiresAtMs, AcquiredAtMs: info.ExpiresAtMs - ttl.Milliseconds(),
					}
					if ours == nil || ours.Info != want || ours.LockID != info.LockID || ours.Key != row.base {
						t.Errorf("we read %+v, want %+v", ours, want)
					}
					want.KeyHash, want.LockIDHash = lock.SyncGuardHash(row.key), lock.SyncGuardHash(info.LockID)
					if got := (lock.Info{KeyHash: a.KeyHash, LockIDHash: a.LockIDHash, Fence: lock.Fence(a.Fence),
						ExpiresAtMs: int64(a.ExpiresAtMs), AcquiredAtMs: int64(a.AcquiredAtMs)}); got != want || a.LockID != info.LockID {
						t.Errorf("SyncGuard reads %+v, want %+v", got, want)
					}
				}
				for _, key := range []string{row.key, row.base} {
					if a := theirs.IsLocked(key); !a.OK {
						t.Errorf("SyncGuard does not see it: %v", a)
					}
					if held, err := b.IsLocked(bg, key); !held || err != nil {
						t.Errorf("we do not see it: %t, %v", held, err)
					}
					if a := theirs.Do(map[string]any{"op": "acquire", "key": key, "ttlMs": 1}); a.OK || a.Reason != "locked" {
						t.Errorf("SyncGuard takes it: %v", a)
					}
					if res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl}); res.OK || err != nil {
						t.Errorf("we take it: %v, %v", res, err)
					}
				}
			}

			a := theirs.Do(map[string]any{"op": "acquire", "key": row.key, "ttlMs": ttl.Milliseconds()})
			if a.Fence != "000000000000001" {
				t.Fatal(a)
			}
			theirLock := lock.RawInfo{LockID: a.LockID, Info: lock.Info{Fence: lock.Fence(a.Fence), ExpiresAtMs: int64(a.ExpiresAtMs)}}
			stored(theirLock, row.key, false)
			read(theirLock)
			if ok, err := theirs.Release(bg, a.LockID); nested == ok || err != nil {
				t.Fatalf("SyncGuard released its own lock: %t, %v", ok, err)
			}
			if nested { // whom SyncGuard leaves it to
				mustRelease(t, b.Backend, lock.Ref{LockID: a.LockID, Key: row.key})
			}

			res := mustAcquire(t, b.Backend, row.key)
			if res.Fence != "000000000000002" {
				t.Errorf("our fence is %s after SyncGuard's first", res.Fence)
			}
			ourLock := lock.RawInfo{LockID: res.LockID, Info: lock.Info{Fence: res.Fence, ExpiresAtMs: res.ExpiresAtMs}}
			stored(ourLock, row.base, true)
			read(ourLock)
			mustRelease(t, b.Backend, lock.Ref{LockID: res.LockID})
			if _, fence, err := theirs.Acquire(bg, row.key, ttl); fence != "000000000000003" || err != nil {
				t.Errorf("SyncGuard's fence is %s after our second: %v", fence, err)
			}
		})
	}
}

// B-04, L-KEY-01, L-KEY-05, L-KEY-06: SyncGuard cannot lock the keys that we refuse,
// except those with a slash at the end, with which it locks another key.
func TestInterop_RefusesWhatSyncGuardCannotLock(t *testing.T) {
	syncguard.Need(t)
	b := newInterop(t)
	process := startSyncGuard(t)
	refused := func(p *syncguard.Process, key string, want lock.Code) {
		if _, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl}); !errors.Is(err, lock.ErrInvalidArgument) {
			t.Errorf("%.20q: %v, want InvalidArgument", key, err)
		}
		if _, _, err := inProject(t, p, b.project).Acquire(bg, key, ttl); !errors.Is(err, &lock.Error{Code: want}) {
			t.Errorf("%.20q: SyncGuard says %v, want %s", key, err, want)
		}
	}
	// By the server, which SyncGuard's client asks for some seconds.
	var reserved sync.WaitGroup
	for _, key := range []string{".", "__x__", "a/../b"} {
		p := startSyncGuard(t)
		reserved.Go(func() { refused(p, key, lock.CodeInvalidArgument) })
	}
	for _, key := range []string{"", strings.Repeat("a", 513), strings.Repeat("\u0958", 100)} {
		refused(process, key, lock.CodeInvalidArgument)
	}
	for _, key := range []string{"a/b", "a//b", "/", "/a", "a/b/"} {
		refused(process, key, lock.CodeInternal)
	}
	reserved.Wait()
	for _, collection := range []string{"locks", "fence_counters"} {
		if docs, err := b.client.Collection(collection).Documents(bg).GetAll(); len(docs) != 0 || err != nil {
			t.Errorf("%d documents in %s, %v", len(docs), collection, err)
		}
	}
	if _, _, err := inProject(t, process, b.project).Acquire(bg, "a/", ttl); err != nil {
		t.Error(err)
	}
	if held, err := b.IsLocked(bg, "a"); !held || err != nil {
		t.Errorf("SyncGuard's lock of a/ is not that of a: %t, %v", held, err)
	}
	if _, err := b.IsLocked(bg, "a/"); !errors.Is(err, lock.ErrInvalidArgument) {
		t.Errorf("a/: %v", err)
	}
}

// L-KEY-03, L-LKP-03: keys of letters that compose, reorder and take one to
// four bytes have the same places and hashes on both sides.
func TestInterop_HasTheSamePlacesAndHashes(t *testing.T) {
	syncguard.Need(t)
	process := startSyncGuard(t)
	rng := rand.New(rand.NewPCG(1, 2))
	letters := []rune("ab:/0 \u00e9\u0301\u0307\u0323\u0327\u212b\u0958\u093c\u1100\u1161\u11a8\uac00\ufb01\uf900\u2126\U0001F512\U0001D15E\U0001D16D\u3042\u3099\u0344\u0f73\u200d\ufe0f")
	for range 600 {
		key := make([]rune, rng.IntN(40))
		for i := range key {
			key[i] = letters[rng.IntN(len(letters))]
		}
		prefix := []string{"", "app", "a:", "::", strings.Repeat("p", 30)}[rng.IntN(5)]
		limit, reserve := 20+rng.IntN(60), rng.IntN(2)*26
		a, err := process.Ask(map[string]any{"op": "storageKey", "prefix": prefix, "key": string(key), "limit": limit, "reserve": reserve})
		if err != nil {
			t.Fatal(err)
		}
		got, err := lock.StorageKey(prefix, string(key), limit, reserve)
		if got != a.Key || !errors.Is(err, a.Err()) {
			t.Errorf("%q, %q, %d, %d: %q, %v; SyncGuard has %q, %v", prefix, string(key), limit, reserve, got, err, a.Key, a.Err())
		}
		a, err = process.Ask(map[string]any{"op": "hash", "key": string(key)})
		if got := lock.SyncGuardHash(string(key)); got != a.KeyHash || err != nil {
			t.Errorf("%q: hash %s; SyncGuard has %s, %v", string(key), got, a.KeyHash, err)
		}
	}
}

// B-04, L-REL-01, L-EXT-01, L-TIME-01: only the lock id proves ownership. After the lease and
// the tolerance the lock is taken over, and the old id proves nothing.
func TestInterop_TheLockIDIsTheProof(t *testing.T) {
	syncguard.Need(t)
	process := startSyncGuard(t)
	type side struct {
		name    string
		acquire func() (id, fence string)
		release func(id string) bool
		extend  func(id string, ttl time.Duration) (bool, int64)
	}
	for _, oursHolds := range []bool{true, false} {
		t.Run(map[bool]string{true: "ours", false: "SyncGuard's"}[oursHolds], func(t *testing.T) {
			b := newInterop(t)
			ours := side{
				"ours",
				func() (string, string) {
					res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
					if err != nil {
						t.Fatal(err)
					}
					return res.LockID, string(res.Fence)
				},
				func(id string) bool {
					res, err := b.Release(bg, lock.Ref{LockID: id, Key: key})
					if err != nil {
						t.Fatal(err)
					}
					return res.OK
				},
				func(id string, ttl time.Duration) (bool, int64) {
					res, err := b.Extend(bg, lock.Ref{LockID: id, Key: key}, ttl)
					if err != nil {
						t.Fatal(err)
					}
					return res.OK, res.ExpiresAtMs
				},
			}
			p := inProject(t, process, b.project)
			theirs := side{
				"SyncGuard",
				func() (string, string) {
					id, fence, err := p.Acquire(bg, key, ttl)
					if err != nil {
						t.Fatal(err)
					}
					return id, fence
				},
				func(id string) bool {
					ok, err := p.Release(bg, id)
					if err != nil {
						t.Fatal(err)
					}
					return ok
				},
				func(id string, ttl time.Duration) (bool, int64) {
					a := p.Extend(id, ttl)
					if a.Err() != nil {
						t.Fatal(a.Err())
					}
					return a.OK, int64(a.ExpiresAtMs)
				},
			}
			holder, other := ours, theirs
			if !oursHolds {
				holder, other = theirs, ours
			}

			// Extended by the other, by the holder, released by the other.
			id, _ := holder.acquire()
			want := b.get(t, "locks/"+key)
			for _, s := range []side{other, holder, other} {
				ok, end := s.extend(id, 2*ttl)
				if s.name == ours.name { // SyncGuard leaves what there is; it counts no more
					want["lease"] = leaseField(end, 2*ttl)
				}
				if want["expiresAtMs"] = end; !ok || !reflect.DeepEqual(b.get(t, "locks/"+key), want) {
					t.Errorf("extended by %s: %t, %v, want %v", s.name, ok, b.get(t, "locks/"+key), want)
				}
			}
			if !other.release(id) || holder.release(id) {
				t.Errorf("released by %s, and once more by %s", other.name, holder.name)
			}

			// A foreign id.
			id, _ = holder.acquire()
			want = b.get(t, "locks/"+key)
			for _, s := range []side{ours, theirs} {
				foreign := lock.NewLockID()
				if ok, _ := s.extend(foreign, ttl); ok || s.release(foreign) {
					t.Errorf("%s: a foreign id ends or extends a lock", s.name)
				}
			}
			if got := b.get(t, "locks/"+key); !reflect.DeepEqual(got, want) {
				t.Errorf("%v, want %v", got, want)
			}

			// Cut short by the other, so that it ends, and taken over by it. Both had a
			// lease that others extended since, which the holder may have remembered.
			_, end := other.extend(id, time.Millisecond)
			var next, fence string
			for next == "" {
				next, fence = other.acquire()
			}
			taken := b.get(t, "locks/"+key)
			if since := taken["acquiredAtMs"].(int64); since < end+1000 {
				t.Errorf("taken over by %s %d ms after its end, within the tolerance", other.name, since-end)
			}
			if fence != "000000000000003" || taken["fence"] != fence {
				t.Errorf("taken over with fence %s, want the third", fence)
			}
			for _, s := range []side{holder, other} {
				if ok, _ := s.extend(id, ttl); ok || s.release(id) {
					t.Errorf("%s: an old id ends or extends the lock of the next", s.name)
				}
			}
			if got := b.get(t, "locks/"+key); !reflect.DeepEqual(got, taken) {
				t.Errorf("%v, want %v", got, taken)
			}
			if !holder.release(next) {
				t.Errorf("%s does not release what %s took over", holder.name, other.name)
			}
		})
	}
}

// B-04, L-FENCE-03, L-FENCE-05: both sides continue the same counters. We refuse a counter
// that SyncGuard would read as 0 or as another number.
func TestInterop_SharesFenceCounters(t *testing.T) {
	syncguard.Need(t)
	process := startSyncGuard(t)
	const refused, theirsAlone = "", "not by us"
	for _, row := range []struct {
		name   string
		stored map[string]any
		next   string
	}{
		{"15 digits", map[string]any{"fence": "000000000000041"}, "000000000000042"},
		{"19 digits", map[string]any{"fence": "0000000000000000041"}, "000000000000042"},
		{"2 digits", map[string]any{"fence": "41"}, "000000000000042"},
		{"integer", map[string]any{"fence": 41}, "000000000000042"},
		{"integral double", map[string]any{"fence": 41.0}, "000000000000042"},
		{"string zero", map[string]any{"fence": "0"}, "000000000000001"},
		{"zero", map[string]any{"fence": 0}, "000000000000001"},
		{"close to the end", map[string]any{"fence": "899999999999999"}, "900000000000000"},
		{"at the end", map[string]any{"fence": "900000000000000"}, refused},
		{"20 digits", map[string]any{"fence": strings.Repeat("9", 20)}, refused},
		{"word", map[string]any{"fence": "forty"}, refused},
		{"fraction", map[string]any{"fence": 41.5}, refused},
		{"negative", map[string]any{"fence": "-41"}, refused},
		{"none", map[string]any{"keyDebug": key}, theirsAlone},
		{"empty", map[string]any{"fence": ""}, theirsAlone},
		{"null", map[string]any{"fence": nil}, theirsAlone},
		{"hexadecimal", map[string]any{"fence": "0x29"}, theirsAlone},
		{"space", map[string]any{"fence": " 41"}, theirsAlone},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newInterop(t)
			theirs := inProject(t, process, b.project)
			const counter = "fence_counters/fence:" + key
			b.put(t, counter, row.stored)
			before := b.get(t, counter)
			res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			if row.next == refused || row.next == theirsAlone {
				if !errors.Is(err, lock.ErrInternal) || !reflect.DeepEqual(b.get(t, counter), before) || b.get(t, "locks/"+key) != nil {
					t.Errorf("%+v, %v, counter %v; want it refused and left", res, err, b.get(t, counter))
				}
			} else if string(res.Fence) != row.next || err != nil {
				t.Errorf("%+v, %v, want fence %s", res, err, row.next)
			} else {
				mustRelease(t, b.Backend, lock.Ref{LockID: res.LockID})
			}
			b.put(t, counter, row.stored)
			id, fence, err := theirs.Acquire(bg, key, ttl)
			switch row.next {
			case refused:
				if err == nil || id != "" {
					t.Errorf("SyncGuard: %q, %v, want it refused", fence, err)
				}
			case theirsAlone:
				t.Logf("SyncGuard: %s, %v", cmp.Or(fence, "refused"), err)
			default:
				if fence != row.next || err != nil {
					t.Errorf("SyncGuard: %s, %v, want fence %s", fence, err, row.next)
				}
			}
		})
	}
}

// B-04, L-DOC-02: SyncGuard accepts any whole number of milliseconds as TTL, and stores an
// end beyond int64 as a double.
func TestInterop_ReadsTheLongestTTLs(t *testing.T) {
	syncguard.Need(t)
	b := newInterop(t)
	theirs := inProject(t, startSyncGuard(t), b.project)
	for _, ttlMs := range []any{int64(1)<<53 - 1, int64(1) << 62, math.MaxFloat64} {
		a := theirs.Do(map[string]any{"op": "acquire", "key": key, "ttlMs": ttlMs})
		if !a.OK {
			t.Fatal(a)
		}
		if held, err := b.IsLocked(bg, key); !held || err != nil {
			t.Errorf("%v ms: %t, %v", ttlMs, held, err)
		}
		if res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl}); res.Reason != lock.ReasonLocked || err != nil {
			t.Fatalf("%v ms: we took a lock of SyncGuard's: %+v, %v", ttlMs, res, err)
		}
		mustRelease(t, b.Backend, lock.Ref{LockID: a.LockID})
	}
}

// B-04, B-07: a process that waits for a lock of SyncGuard's gets it after its release.
func TestInterop_WaitsForSyncGuard(t *testing.T) {
	syncguard.Need(t)
	b := newInterop(t)
	theirs := inProject(t, startSyncGuard(t), b.project)
	id, _, err := theirs.Acquire(bg, key, ttl)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *lock.Handle, 1)
	go func() {
		defer close(got)
		h, err := lock.Acquire(bg, b.Backend, key, lock.WithTimeout(time.Minute), lock.WithMaxRetries(1_000_000))
		if err != nil {
			t.Error(err)
			return
		}
		got <- h
	}()
	if ok, err := theirs.Release(bg, id); !ok || err != nil {
		t.Fatal(ok, err)
	}
	h := <-got
	if h == nil {
		return
	}
	if h.Fence() != "000000000000002" {
		t.Errorf("fence %s, want the second", h.Fence())
	}
	if ok, err := theirs.Release(bg, h.LockID()); !ok || err != nil {
		t.Errorf("SyncGuard: %t, %v", ok, err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}
