package firestorelock

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/conformance/lock/faultproxy"
	"github.com/dronefleet/dronefleet/conformance/lock/history"
	"github.com/dronefleet/dronefleet/conformance/lock/lockspec"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// skewedClock is the machine's clock, wrong by a constant.
type skewedClock struct {
	lock.Clock
	offset time.Duration
}

func (c skewedClock) Now() time.Time { return c.Clock.Now().Add(c.offset) }

// runTime is how long histories are recorded; LOCK_HISTORY=1m makes it longer.
func runTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("LOCK_HISTORY")
	if text == "" {
		return longtest.Size(t, "of recording", time.Second, 2*time.Second)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// seedOf is what faults and clients draw from; LOCK_SEED=9 sets another.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("LOCK_SEED")
	if text == "" {
		return 7
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

// contender is one client of a history.
type contender struct {
	offset  time.Duration // of its clock, constant
	guard   bool          // the server-time guard, and with it the field lease
	wavers  bool          // its clock is set again and again, by up to an hour
	extends *peerExtension
}

func guarded(offsets ...time.Duration) []contender {
	var list []contender
	for _, offset := range offsets {
		list = append(list, contender{offset: offset, guard: true})
	}
	return list
}

// peerExtension is how a client extends that knows nothing of the field lease, as
// SyncGuard and older versions: it sets the end alone, and for longer.
type peerExtension struct {
	ttl time.Duration
	// unbound is a defect: the length that was written first counts on, as it would
	// if it were stored without the end that it belongs to.
	unbound bool
}

type extendingPeer struct {
	*Backend
	peerExtension
}

// Extend implements lock.Backend. The workload extends what it holds alone.
func (p extendingPeer) Extend(ctx context.Context, ref lock.Ref, _ time.Duration) (lock.ExtendResult, error) {
	start := p.clock.Now()
	end := start.Add(p.ttl).UnixMilli()
	updates := []firestore.Update{{Path: fieldExpiresAt, Value: end}}
	if p.unbound {
		updates = append(updates, firestore.Update{Path: fieldLease + "." + fieldExpiresAt, Value: end})
	}
	res := lock.ExtendResult{OK: true, ExpiresAtMs: end, Deadline: start.Add(p.ttl)}
	return res, p.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		docs, err := tx.GetAll([]*firestore.DocumentRef{p.locks.Doc(ref.Key)})
		if err != nil {
			return err
		}
		s := decodeLock(docs[0].Data())
		if s.lockID != ref.LockID || !lock.IsLive(s.expiresAtMs, p.clock.Now().UnixMilli()) {
			res = lock.ExtendResult{Reason: lock.ReasonNotFound}
			return nil
		}
		return tx.Update(docs[0].Ref, updates)
	})
}

// B-05, L-END-01: concurrent clients crash, lose replies, retry and let leases expire. Without
// the server-time guard their clocks differ by the tolerance; with it by any amount, and they
// may be set while leases are held.
func TestBackend_HistoriesAreLinearizable(t *testing.T) {
	onlyLong(t, "histories under a dozen clocks and peers")
	const hour, ms = time.Hour, time.Millisecond
	wavering := contender{guard: true, wavers: true}
	extending := contender{guard: true, extends: &peerExtension{ttl: 3 * time.Second}}
	unbound := contender{guard: true, extends: &peerExtension{ttl: 3 * time.Second, unbound: true}}
	for _, row := range []struct {
		name   string
		peers  []contender
		faults bool
		want   history.Verdict
	}{
		{"calm", []contender{{}, {}, {}, {}}, false, history.Linearizable},
		{"skew of half a second either way", []contender{{offset: -500 * ms}, {offset: -100 * ms}, {offset: 100 * ms}, {offset: 500 * ms}}, true, history.Linearizable},
		{"skew of seconds, with server-time guard", guarded(-4000*ms, -700*ms, 900*ms, 6000*ms), true, history.Linearizable},
		{"skew of an hour, with server-time guard", guarded(-hour, -3000*ms, 0, hour), true, history.Linearizable},
		{"clocks set during leases", []contender{wavering, wavering, wavering, {guard: true}}, true, history.Linearizable},
		{"peers with and without the guard", []contender{{offset: -400 * ms}, {offset: 400 * ms}, wavering, {guard: true, offset: hour}}, true, history.Linearizable},
		{
			"peers extend without the field",
			[]contender{extending, extending, wavering, wavering},
			false, history.Linearizable,
		},
		{
			"broken: a length that counts whatever the end",
			[]contender{unbound, unbound, unbound, unbound},
			false, history.Violated,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			seed := seedOf(t)
			project := freshProject()
			recorder := history.NewRecorder()
			var clients []*history.Client
			for i, p := range row.peers {
				proxy, err := faultproxy.Start(serverAddr)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := proxy.Close(); err != nil {
						t.Error(err)
					}
				})
				client, conn := dial(t, proxy.Addr(), project)
				clock := &setClock{Clock: skewedClock{lock.SystemClock(), p.offset}}
				if p.wavers {
					clock.steps = rand.New(rand.NewPCG(seed, uint64(i)))
				}
				b := newBackend(t, client, Config{Clock: clock, MaxClockSkew: -1})
				b.guarded = p.guard
				var backend lock.Backend = b
				if p.extends != nil {
					backend = extendingPeer{b, *p.extends}
				}
				if row.faults {
					addRandomFaults(proxy, seed+uint64(i))
				}
				judges := lockspec.ClientTime
				if p.guard {
					judges = lockspec.GuardedTime
				}
				extends := judges
				if p.extends != nil {
					extends = lockspec.ClientTime
				}
				var skew time.Duration
				if p.wavers {
					skew = 2 * hour
				}
				clients = append(clients, &history.Client{
					Backend: backend, Recorder: recorder, ID: i, Offset: p.offset, Skew: skew,
					Time: judges, ExtendTime: &extends,
					Settle: func() error {
						ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
						defer cancel()
						return proxy.Settle(ctx, conn)
					},
				})
			}
			w := history.Workload{Seed: seed, Keys: 2, TTL: 150 * time.Millisecond, Run: runTime(t), Crashes: 0.05}
			if row.peers[0].extends != nil {
				w.Extend = row.peers[0].extends.ttl
				w.Keys, w.Crashes = 8, 1 // who holds a lease for long notices that it ended early
				w.Run = 4 * time.Second  // while most keys are held, little happens
			}
			if row.faults {
				w.Cancels, w.Retries = 0.02, 0.5 // L-RTY-05
			}
			w.Play(clients)
			verdict, why := recorder.Check(time.Minute)
			// A slow server gives a broken backend few chances.
			for range 10 {
				if verdict == row.want || row.want != history.Violated {
					break
				}
				w.Seed++
				w.Play(clients)
				verdict, why = recorder.Check(time.Minute)
			}
			t.Logf("%d calls: %s", recorder.Len(), verdict)
			if verdict != row.want {
				t.Errorf("seed %d: %d calls are %s, want %s\n%s", seed, recorder.Len(), verdict, row.want, why())
			}
		})
	}
}

// addRandomFaults makes a few requests in a hundred fail, before and after they
// are applied.
func addRandomFaults(p *faultproxy.Proxy, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	sometimes := func(share float64) func([]byte) bool {
		return func([]byte) bool { return rng.Float64() < share } // the proxy calls one Match at a time
	}
	for _, fault := range []faultproxy.Fault{
		{After: codes.Unavailable}, {After: codes.Unknown}, {After: codes.DeadlineExceeded},
		{Before: codes.Unavailable}, {Before: codes.Aborted}, {Before: codes.Internal}, {Delay: 30 * time.Millisecond},
	} {
		p.Add(faultproxy.Rule{RPC: "Commit", Match: sometimes(0.01), Do: fault})
	}
	// ABORTED means that nothing was applied; only an acquisition need survive a
	// server that breaks this promise.
	aborted := sometimes(0.01)
	p.Add(faultproxy.Rule{RPC: "Commit", Do: faultproxy.Fault{After: codes.Aborted}, Match: func(request []byte) bool {
		return bytes.Contains(request, []byte(fieldAcquiredAt)) && aborted(request)
	}})
	p.Add(faultproxy.Rule{RPC: "BatchGetDocuments", Match: sometimes(0.01), Do: faultproxy.Fault{Before: codes.PermissionDenied}})
	// The clean-up of an unknown outcome is sometimes slower than the next try.
	p.Add(faultproxy.Rule{RPC: "BeginTransaction", Match: sometimes(0.5), Do: faultproxy.Fault{Delay: 30 * time.Millisecond}})
}
