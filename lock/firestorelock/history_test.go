package firestorelock

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/conformance/lock/faultproxy"
	"github.com/dronefleet/dronefleet/conformance/lock/history"
	"github.com/dronefleet/dronefleet/conformance/lock/lockspec"
	"github.com/dronefleet/dronefleet/lock"
)

// B-05, L-TST-02: clients die, are paused, lose replies and are broken, their clocks are
// set by up to an hour, and the server is away for a while.
func TestBackend_HistoriesUnderFaults(t *testing.T) {
	onlyLong(t, "histories under faults")
	if official {
		t.Skip("on the official emulator too many calls overlap to search for their order in reasonable time")
	}
	t.Parallel()
	project := freshProject()
	var down atomic.Bool
	history.Trial{Store: history.Store{
		Time: lockspec.GuardedTime,
		Connect: func(id int, seed uint64) (history.Client, func(float64)) {
			proxy, err := faultproxy.Start(serverAddr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = proxy.Close() })
			for _, rpc := range []string{"BeginTransaction", "BatchGetDocuments", "RunQuery", "Commit"} {
				proxy.Add(faultproxy.Rule{
					RPC: rpc, Do: faultproxy.Fault{Before: codes.Unavailable}, Match: func([]byte) bool { return down.Load() },
				})
			}
			client, conn := dial(t, proxy.Addr(), project)
			clock := &setClock{Clock: lock.SystemClock(), steps: rand.New(rand.NewPCG(seed, 1))}
			b := newBackend(t, client, Config{Clock: clock, MaxClockSkew: -1})
			b.guarded = true
			settle := func() error {
				ctx, cancel := context.WithTimeout(bg, time.Minute)
				defer cancel()
				return proxy.Settle(ctx, conn)
			}
			cut := func() {
				proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{After: codes.Unavailable}})
			}
			return history.Client{Backend: b, Skew: 2 * time.Hour, Settle: settle, Cut: cut}, func(share float64) {
				proxy.LoseSome(seed, share)
			}
		},
		Fail: func() {
			down.Store(true)
			time.Sleep(300 * time.Millisecond)
			down.Store(false)
		},
	}}.Run(t)
}

// L-FENCE-01: what a fence is for, with a register in the same database.
func TestBackend_FencesKeepLateWritesOut(t *testing.T) {
	onlyLong(t, "late writes of many holders")
	t.Parallel()
	client := newClient(t, serverAddr)
	doc := client.Collection("registers").Doc("register")
	type register struct{ Fence, Value string }
	if _, err := doc.Set(bg, register{}); err != nil {
		t.Fatal(err)
	}
	decode := func(snapshot *firestore.DocumentSnapshot, err error) (r register, _ error) {
		if err == nil {
			err = snapshot.DataTo(&r)
		}
		return r, err
	}
	history.CheckRegister(t, newBackend(t, client, Config{}), history.Register{
		Write: func(fence lock.Fence, value string, fenced bool) (stored bool, err error) {
			err = client.RunTransaction(bg, func(_ context.Context, tx *firestore.Transaction) error {
				r, err := decode(tx.Get(doc))
				if stored = err == nil && (!fenced || string(fence) >= r.Fence); !stored {
					return err
				}
				return tx.Set(doc, register{max(r.Fence, string(fence)), value})
			})
			return stored, err
		},
		Read: func() (string, error) {
			r, err := decode(doc.Get(bg))
			return r.Value, err
		},
	})
}
