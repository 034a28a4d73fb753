package redislock

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dronefleet/dronefleet/conformance/lock/faultproxy"
	"github.com/dronefleet/dronefleet/lock"
)

// scriptCall matches requests that run a script.
func scriptCall(request []byte) bool { return bytes.Contains(request, []byte("eval")) }

// settled waits until nothing that was sent can still take effect.
func (r rig) settled(t *testing.T) {
	t.Helper()
	if err := r.proxy.Settle(bg); err != nil {
		t.Fatal(err)
	}
	if err := r.faulty.tasks.Wait(bg); err != nil {
		t.Fatal(err)
	}
}

// L-ACQ-05, L-ACQ-06, B-03: requests and replies are lost once. The call is made again, and
// its answer is that of one call.
func TestBackend_SurvivesALostRequestOrReply(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	for name, fault := range map[string]faultproxy.TCPFault{
		"request":                {CutBefore: true},
		"reply":                  {CutAfter: true},
		"answered by a replica":  {Reply: []byte("-READONLY You can't write against a read only replica.\r\n")},
		"answered while loading": {Reply: []byte("-LOADING Redis is loading the dataset in memory\r\n")},
	} {
		t.Run(name, func(t *testing.T) {
			key := "lost " + name
			once := func() { r.proxy.Add(faultproxy.TCPRule{Match: scriptCall, Times: 1, Do: fault}) }
			defer r.proxy.Clear()
			once()
			res := mustAcquire(t, r.faulty, key)
			if res.Fence != "000000000000001" {
				t.Errorf("fence %s", res.Fence)
			}
			ref := lock.Ref{LockID: res.LockID, Key: key}
			once()
			if ext, err := r.faulty.Extend(bg, ref, 2*ttl); err != nil || !ext.OK {
				t.Errorf("extend: %+v, %v", ext, err)
			}
			once()
			if held, err := r.faulty.IsLocked(bg, key); err != nil || !held {
				t.Errorf("isLocked: %t, %v", held, err)
			}
			once()
			mustRelease(t, r.faulty, ref)
			if res, err := r.faulty.Release(bg, ref); err != nil || res.OK {
				t.Errorf("a second release: %+v, %v", res, err)
			}
			if res := mustAcquire(t, r.direct, key); res.Fence != "000000000000002" {
				t.Errorf("the next fence is %s", res.Fence)
			}
		})
	}
}

// L-TIME-04: an extension that nobody waits for any more is executed after a longer one.
// The lease still lasts as long as its holder believes.
func TestBackend_ExecutesALateExtensionWithoutHarm(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	h, err := lock.Acquire(bg, r.faulty, key, lock.WithTTL(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	ctx, cancel := context.WithCancel(bg)
	r.proxy.Add(faultproxy.TCPRule{Match: scriptCall, Times: 1, Do: faultproxy.TCPFault{Delay: 500 * time.Millisecond}, Hook: cancel})
	if ok, err := h.Extend(ctx, 5*time.Second); ok || !errors.Is(err, lock.ErrAborted) {
		t.Fatal(ok, err)
	}
	if ok, err := h.Extend(bg, time.Minute); !ok || err != nil {
		t.Fatal(ok, err)
	}
	r.proxy.Cut()
	r.settled(t)
	info, err := r.direct.Lookup(bg, lock.Query{Key: key})
	if err != nil || info == nil {
		t.Fatal(info, err)
	}
	if end := time.UnixMilli(info.ExpiresAtMs); end.Before(h.ExpiresAt()) {
		t.Errorf("the lease ends at %v, its holder believes at %v", end, h.ExpiresAt())
	}
}

// L-ACQ-06, L-ERR-01: what was not answered in the end is unknown, and given back.
func TestBackend_SaysWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	server := startRedis(t)
	for _, row := range []struct {
		name    string
		fault   faultproxy.TCPFault
		code    lock.Code
		unknown bool
		cancel  bool
	}{
		{"requests lost", faultproxy.TCPFault{CutBefore: true}, lock.CodeServiceUnavailable, true, false},
		{"replies lost", faultproxy.TCPFault{CutAfter: true}, lock.CodeServiceUnavailable, true, false},
		{"cancelled before an answer", faultproxy.TCPFault{BlackHole: true}, lock.CodeAborted, true, true},
		{"cancelled after it was granted", faultproxy.TCPFault{HoldReply: true}, lock.CodeAborted, true, true},
		{"replica", faultproxy.TCPFault{Reply: []byte("-READONLY no\r\n")}, lock.CodeServiceUnavailable, false, false},
		{"no rights", faultproxy.TCPFault{Reply: []byte("-NOPERM no\r\n")}, lock.CodeAuthFailed, false, false},
		{"no memory", faultproxy.TCPFault{Reply: []byte("-OOM no\r\n")}, lock.CodeRateLimited, false, false},
		{"too many clients", faultproxy.TCPFault{Reply: []byte("-ERR max number of clients reached\r\n")}, lock.CodeRateLimited, false, false},
		{"damaged", faultproxy.TCPFault{Reply: []byte("-WRONGTYPE no\r\n")}, lock.CodeInternal, false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRigOn(t, server, Config{Prefix: fresh()})
			if _, err := r.faulty.IsLocked(bg, key); err != nil { // connected
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			rule := faultproxy.TCPRule{Match: scriptCall, Times: maxTries, Do: row.fault}
			if row.cancel {
				rule.Hook = func() { time.AfterFunc(20*time.Millisecond, cancel) }
			}
			r.proxy.Add(rule)
			_, err := r.faulty.Acquire(ctx, lock.AcquireRequest{Key: key, TTL: ttl})
			e, ok := errors.AsType[*lock.Error](err)
			if !ok || e.Code != row.code || e.OutcomeUnknown != row.unknown {
				t.Errorf("got %v, want %s, unknown %t", err, row.code, row.unknown)
			}
			r.proxy.Clear()
			r.proxy.Cut()
			r.settled(t)
			if held, err := r.direct.IsLocked(bg, key); err != nil || held {
				t.Errorf("the lock is left held: %t, %v", held, err)
			}
		})
	}
}

// L-ERR-01: nothing is sent to a server that is away, so nothing is unknown.
func TestBackend_KnowsThatNothingWasSent(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.server.Kill()
	_, err := r.direct.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
	// The first try may have used a connection that was not known to be broken.
	for range 5 {
		_, err = r.direct.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
	}
	if e, ok := errors.AsType[*lock.Error](err); !ok || e.Code != lock.CodeServiceUnavailable || e.OutcomeUnknown {
		t.Errorf("got %v, want ServiceUnavailable with a known outcome", err)
	}
}

// L-FENCE-01: locks and counters survive a server that is killed, and so does the client.
// The scripts are gone from the server's cache (NOSCRIPT).
func TestBackend_GoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	first := mustAcquire(t, r.direct, key)
	r.server.Kill()
	r.server.Restart()
	if res, err := r.direct.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl}); err != nil || res.OK {
		t.Errorf("the lock is forgotten: %+v, %v", res, err)
	}
	mustRelease(t, r.direct, lock.Ref{LockID: first.LockID, Key: key})
	if second := mustAcquire(t, r.direct, key); second.Fence <= first.Fence {
		t.Errorf("fence %s after %s", second.Fence, first.Fence)
	}
	if err := r.client.ScriptFlush(bg).Err(); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, r.direct, "another")
}

// L-FENCE-03, L-FENCE-05: a counter that no fence can follow is an error, and is left as
// it is; nothing else is written.
func TestAcquire_RefusesDamagedCounters(t *testing.T) {
	r := newRig(t, Config{})
	counter := r.direct.fenceKey(r.direct.head + key)
	for _, value := range []string{"", "x", "-1", "-5", "0x10", "900000000000000", "9223372036854775807"} {
		if err := r.client.Set(bg, counter, value, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.direct.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl}); !errors.Is(err, lock.ErrInternal) {
			t.Errorf("counter %q: %v", value, err)
		}
		if got := r.client.Get(bg, counter).Val(); got != value {
			t.Errorf("counter %q became %q", value, got)
		}
		if n := r.client.DBSize(bg).Val(); n != 1 {
			t.Errorf("counter %q: %d keys", value, n)
		}
	}
	if err := r.client.Set(bg, counter, "899999999999999", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if res := mustAcquire(t, r.direct, key); res.Fence != "900000000000000" {
		t.Errorf("fence %s", res.Fence)
	}
}

// L-FENCE-06: a counter that was lost is found again in the lock that it counted last.
func TestAcquire_FindsALostCounterInTheOldLock(t *testing.T) {
	r := newRig(t, Config{})
	old := `{"lockId":"` + lock.NewLockID() + `","expiresAtMs":1000,"acquiredAtMs":1,"key":"` + key + `","fence":"000000000000041"}`
	if err := r.client.Set(bg, r.direct.head+key, old, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if res := mustAcquire(t, r.direct, key); res.Fence != "000000000000042" {
		t.Errorf("fence %s", res.Fence)
	}
	if got := r.client.Get(bg, r.direct.fenceKey(r.direct.head+key)).Val(); got != "42" {
		t.Errorf("counter %s", got)
	}
}

// L-KEY-04, L-FENCE-04: where things are, and how long they stay.
func TestBackend_StoresWhatIsDocumented(t *testing.T) {
	r := newRig(t, Config{})
	key := "caf\u00e9 \"a\\b\" <7>"
	res := mustAcquire(t, r.direct, key)
	base := "syncguard:" + key
	if got := r.client.Get(bg, "syncguard:id:"+res.LockID).Val(); got != base {
		t.Errorf("index %q", got)
	}
	if got, ttl := r.client.Get(bg, "syncguard:fence:"+base).Val(), r.client.TTL(bg, "syncguard:fence:"+base).Val(); got != "1" || ttl != -1 {
		t.Errorf("counter %q, ttl %s", got, ttl)
	}
	stored, err := parseLock(r.client.Get(bg, base).Val())
	if err != nil || stored.Key != key || stored.LockID != res.LockID || stored.Fence != string(res.Fence) || stored.ExpiresAtMs != res.ExpiresAtMs {
		t.Errorf("stored %+v, %v", stored, err)
	}
	if life := r.client.PTTL(bg, base).Val(); life <= ttl || life > ttl+lock.Tolerance {
		t.Errorf("the lock's key lives for %s", life)
	}
	if list, err := r.direct.List(bg); err != nil || len(list) != 1 || list[0].Key != key {
		t.Errorf("list %+v, %v", list, err)
	}
	for _, taken := range []string{"id:" + lock.NewLockID(), "fence:syncguard:x"} {
		if _, err := r.direct.Acquire(bg, lock.AcquireRequest{Key: taken, TTL: ttl}); !errors.Is(err, lock.ErrInvalidArgument) {
			t.Errorf("key %q: %v", taken, err)
		}
	}
}

// L-CFG-01
func TestNew_RefusesBadConfig(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	text := func(s string) *string { return &s }
	for name, row := range map[string]struct {
		client redis.UniversalClient
		cfg    Config
		ok     bool
	}{
		"no client":               {nil, Config{}, false},
		"empty prefix":            {client, Config{Prefix: text("")}, false},
		"long prefix":             {client, Config{Prefix: text(string(bytes.Repeat([]byte("p"), 201)))}, false},
		"prefix of counters":      {client, Config{Prefix: text("a:fence")}, false},
		"cluster without a tag":   {cluster, Config{}, false},
		"cluster with a tag":      {cluster, Config{Prefix: text("{locks}")}, true},
		"cluster with replicas":   {cluster, Config{Prefix: text("{locks}"), Replicas: 1}, false},
		"a negative replica":      {client, Config{Replicas: -1}, false},
		"a prefix with its colon": {client, Config{Prefix: text("app:")}, true},
	} {
		row.cfg.SkipDurabilityCheck = true
		_, err := New(row.client, row.cfg)
		if ok := err == nil; ok != row.ok || err != nil && !errors.Is(err, lock.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
