package firestoreemu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/history"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// Random transactions, plain commits, reads and queries work on few documents, with
// injected aborts, failures, lost answers, expired transactions and dropped
// connections. The server's record and what the clients saw must both be strictly
// serializable, and transfers must keep the sum (E-PR-03, E-TX-05, E-TX-11).
func TestHistory_RandomUnderFaults(t *testing.T) {
	for seed := uint64(1); seed <= longtest.Size(t, "seeds", uint64(1), 3); seed++ {
		for _, durable := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed %d durable %v", seed, durable), func(t *testing.T) {
				opts := Options{}
				if durable {
					opts = Options{DataDir: t.TempDir(), Sync: SyncOS}
				}
				w := runRandomHistory(t, opts, seed, []fault.Rule{
					{RPC: "Commit", Probability: 0.03, Do: fault.Abort()},
					{RPC: "Commit", Probability: 0.03, Do: fault.Fail(codes.Internal)},
					{RPC: "Commit", Probability: 0.03, At: fault.After, Do: fault.Fail(codes.Internal)},
					{RPC: "BatchGetDocuments", Probability: 0.02, Do: fault.ExpireTransaction()},
					{RPC: "Commit", Probability: 0.005, At: fault.After, Do: fault.Drop()},
				})
				if err := w.server.CheckSerializable(); err != nil {
					t.Errorf("seed %d, recorded by the server: %v", seed, err)
				}
				if err := history.Check(w.observed()); err != nil {
					t.Errorf("seed %d, seen by the clients: %v", seed, err)
				}
				if w.unbalanced > 0 {
					t.Errorf("seed %d: %d snapshots do not sum to 0", seed, w.unbalanced)
				}
			})
		}
	}
}

// The check must fail for a server whose reads take no locks, or it would prove
// nothing.
func TestHistory_DetectsUnlockedReads(t *testing.T) {
	for seed := range uint64(20) {
		w := runRandomHistory(t, Options{unlockedReads: true}, seed, nil)
		recorded, seen := w.server.CheckSerializable(), history.Check(w.observed())
		if recorded != nil && seen != nil {
			t.Logf("seed %d: %v", seed, seen)
			return
		}
	}
	t.Error("twenty runs without read locks were found serializable")
}

const (
	historyWorkers  = 8
	historyRounds   = 60
	historyAccounts = 5
)

// world is one random run, with accounts between which money moves, and items that
// are added and counted.
type world struct {
	*raw

	mu         sync.Mutex
	seen       []history.Transaction // what the clients saw
	scans      []int                 // indexes in seen of transactions that queried all items
	versions   map[string]int64      // versions that were read, by the token of their writer
	unknown    map[string]history.Transaction
	items      []string
	unbalanced int
}

func runRandomHistory(t *testing.T, opts Options, seed uint64, rules []fault.Rule) *world {
	t.Helper()
	w := newWorld()
	opts.RecordHistory = true
	opts.Faults = fault.New(seed)
	w.raw = newRaw(t, opts)
	w.openAccounts()
	var installed []*fault.Installed
	for _, rule := range rules {
		installed = append(installed, opts.Faults.Add(rule))
	}
	w.work(seed, func() bool { return true })
	for _, rule := range installed {
		rule.Remove()
	}
	w.readEverything()
	return w
}

func newWorld() *world {
	return &world{versions: map[string]int64{}, unknown: map[string]history.Transaction{}}
}

func (w *world) openAccounts() {
	values := map[string]int64{}
	for i := range historyAccounts {
		values[account(i)] = 0
	}
	c := w.client("setup")
	c.commit(nil, c.writes(values))
}

// work runs all workers until their rounds are over or proceed returns false.
func (w *world) work(seed uint64, proceed func() bool) {
	var group sync.WaitGroup
	for id := range historyWorkers {
		group.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(id)))
			for round := range historyRounds {
				if !proceed() {
					return
				}
				c := w.client(fmt.Sprintf("seed %d worker %d round %d", seed, id, round))
				[]func(*rand.Rand){c.transfer, c.transfer, c.audit, c.snapshot, c.addItem, c.countItems}[r.IntN(6)](r)
			}
		})
	}
	group.Wait()
}

// readEverything reads the last version of every document.
func (w *world) readEverything() {
	c := w.client("last")
	c.snapshot(nil)
	c.countItems(nil)
}

// What clients see before, between and after repeated kill -9 of a durable server is
// strictly serializable (E-PR-03, E-DU-04).
func TestHistory_StaysSerializableAcrossKills(t *testing.T) {
	dir := t.TempDir()
	w := newWorld()
	connect := func() (kill func(), ctx context.Context) {
		addr, stop := child(t, dir, SyncOS)
		ctx, cancel := context.WithCancel(testContext(t))
		w.raw = &raw{t: t, ctx: ctx, rpc: pb.NewFirestoreClient(dial(t, addr))}
		return func() { stop(); cancel() }, ctx
	}
	kill, _ := connect()
	w.openAccounts()
	kill()
	for round := range uint64(4) {
		kill, ctx := connect()
		var steps atomic.Int64
		w.work(round, func() bool {
			if steps.Add(1) == historyWorkers*historyRounds/3 {
				kill()
			}
			return ctx.Err() == nil
		})
		kill()
	}
	connect()
	w.readEverything()
	if err := history.Check(w.observed()); err != nil {
		t.Error(err)
	}
	if w.unbalanced > 0 {
		t.Errorf("%d snapshots do not sum to 0", w.unbalanced)
	}
	if len(w.seen) < 100 {
		t.Errorf("only %d transactions were seen", len(w.seen))
	}
}

func account(i int) string { return fmt.Sprintf("account%d", i) }

// observed completes what the clients saw. A commit without an answer was applied if
// a client read its version. A query that did not return an item saw that it was
// missing.
func (w *world) observed() []history.Transaction {
	all := append([]history.Transaction(nil), w.seen...)
	for token, tx := range w.unknown {
		if version, found := w.versions[token]; found {
			tx.Commit = version
			tx.Began, tx.Ended = 0, 0
			all = append(all, tx)
		}
	}
	for _, i := range w.scans {
		for _, item := range w.items {
			if _, found := all[i].Reads[item]; !found {
				all[i].Reads[item] = 0
			}
		}
	}
	return all
}

// attempt is one operation of a client.
type attempt struct {
	*world
	token string
	tx    history.Transaction
	sum   map[string]int64 // field n of the documents that were read
	scan  bool
}

func (w *world) client(token string) *attempt {
	a := &attempt{world: w, token: token}
	a.restart()
	return a
}

func (a *attempt) restart() {
	a.tx = history.Transaction{ID: a.token, Reads: map[string]int64{}, Began: a.now()}
	a.sum = map[string]int64{}
}

func (a *attempt) now() int64 { return time.Now().UnixMicro() }

// saw records a version that was read.
func (a *attempt) saw(d *pb.Document) {
	name := d.GetName()[len(doc("")):]
	version := store.Micros(d.GetUpdateTime())
	a.tx.Reads[name] = version
	a.sum[name] = d.GetFields()["n"].GetIntegerValue()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.versions[d.GetFields()["by"].GetStringValue()] = version
}

// read reads documents, in a transaction unless tx is nil.
func (a *attempt) read(tx []byte, ids ...string) error {
	req := &pb.BatchGetDocumentsRequest{Database: testDatabase}
	if tx != nil {
		req.ConsistencySelector = &pb.BatchGetDocumentsRequest_Transaction{Transaction: tx}
	}
	for _, id := range ids {
		req.Documents = append(req.Documents, doc(id))
	}
	stream, err := a.rpc.BatchGetDocuments(a.ctx, req)
	if err != nil {
		return err
	}
	for {
		answer, err := stream.Recv()
		if isEOF(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if answer.GetFound() != nil {
			a.saw(answer.GetFound())
		}
	}
}

// writes returns the writes that set accounts or items.
func (a *attempt) writes(values map[string]int64) []*pb.Write {
	var writes []*pb.Write
	for id, n := range values {
		a.tx.Writes = append(a.tx.Writes, id)
		writes = append(writes, &pb.Write{Operation: &pb.Write_Update{Update: &pb.Document{
			Name: doc(id), Fields: map[string]*pb.Value{"n": integer(n), "by": text(a.token)},
		}}})
	}
	return writes
}

// commit commits and records the outcome. It reports whether to try again.
func (a *attempt) commit(tx []byte, writes []*pb.Write) (again bool) {
	answer, err := a.rpc.Commit(a.ctx, &pb.CommitRequest{Database: testDatabase, Transaction: tx, Writes: writes})
	a.tx.Ended = a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	switch codeOf(err) {
	case codes.OK:
		a.tx.Commit = store.Micros(answer.GetCommitTime())
		a.note()
		return false
	case codes.Aborted, codes.InvalidArgument: // not applied
		return true
	}
	a.unknown[a.token] = a.tx
	return false
}

// note records the transaction.
func (a *attempt) note() {
	a.seen = append(a.seen, a.tx)
	if a.scan {
		a.scans = append(a.scans, len(a.seen)-1)
	}
}

// inTransaction runs body and commits the writes that it returns, with retries.
func (a *attempt) inTransaction(body func(tx []byte) ([]*pb.Write, error)) {
	var tx []byte
	for range 50 {
		a.insist(func() error {
			answer, err := a.rpc.BeginTransaction(a.ctx, &pb.BeginTransactionRequest{
				Database: testDatabase,
				Options: &pb.TransactionOptions{Mode: &pb.TransactionOptions_ReadWrite_{
					ReadWrite: &pb.TransactionOptions_ReadWrite{RetryTransaction: tx},
				}},
			})
			tx = answer.GetTransaction()
			return err
		})
		if a.ctx.Err() != nil {
			return
		}
		a.restart()
		writes, err := body(tx)
		again := err != nil
		if err == nil {
			again = a.commit(tx, writes)
		}
		a.insist(func() error { return a.rollback(tx) }) // like the client libraries
		if !again {
			return
		}
	}
}

// insist repeats an RPC whose connection was dropped, like the client libraries.
func (a *attempt) insist(call func() error) {
	for {
		err := call()
		if err == nil {
			return
		}
		if a.ctx.Err() != nil {
			return // the server has been killed
		}
		if codeOf(err) != codes.Unavailable {
			a.t.Errorf("%s: %v", a.token, err)
			return
		}
	}
}

// transfer moves money between two accounts.
func (a *attempt) transfer(r *rand.Rand) {
	pick := r.Perm(historyAccounts)
	from, to := account(pick[0]), account(pick[1])
	a.inTransaction(func(tx []byte) ([]*pb.Write, error) {
		if err := a.read(tx, from); err != nil {
			return nil, err
		}
		if err := a.read(tx, to); err != nil {
			return nil, err
		}
		return a.writes(map[string]int64{from: a.sum[from] - 1, to: a.sum[to] + 1}), nil
	})
}

// audit reads accounts one by one in a transaction and writes nothing.
func (a *attempt) audit(r *rand.Rand) {
	pick := r.Perm(historyAccounts)
	a.inTransaction(func(tx []byte) ([]*pb.Write, error) {
		for _, i := range pick {
			if err := a.read(tx, account(i)); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
}

// snapshot reads all accounts in one plain read. They must sum to 0.
func (a *attempt) snapshot(*rand.Rand) {
	var ids []string
	for i := range historyAccounts {
		ids = append(ids, account(i))
	}
	if a.read(nil, ids...) != nil {
		return
	}
	a.tx.Ended = a.now()
	total := int64(0)
	for _, n := range a.sum {
		total += n
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if total != 0 {
		a.unbalanced++
	}
	a.note()
}

// addItem creates an item, which is never changed.
func (a *attempt) addItem(*rand.Rand) {
	id := "item " + a.token
	a.mu.Lock()
	a.items = append(a.items, id)
	a.mu.Unlock()
	a.commit(nil, a.writes(map[string]int64{id: 1 << 40}))
}

// countItems queries all items and writes their number in one transaction. No item may
// appear in between.
func (a *attempt) countItems(*rand.Rand) {
	a.scan = true
	a.inTransaction(func(tx []byte) ([]*pb.Write, error) {
		if err := a.queryItems(tx); err != nil {
			return nil, err
		}
		return a.writes(map[string]int64{"count": int64(len(a.tx.Reads))}), nil
	})
}

func (a *attempt) queryItems(tx []byte) error {
	stream, err := a.rpc.RunQuery(a.ctx, &pb.RunQueryRequest{
		Parent:              testRoot,
		ConsistencySelector: &pb.RunQueryRequest_Transaction{Transaction: tx},
		QueryType: &pb.RunQueryRequest_StructuredQuery{StructuredQuery: &pb.StructuredQuery{
			From: []*pb.StructuredQuery_CollectionSelector{{CollectionId: "c"}},
			Where: &pb.StructuredQuery_Filter{FilterType: &pb.StructuredQuery_Filter_FieldFilter{
				FieldFilter: &pb.StructuredQuery_FieldFilter{
					Field: &pb.StructuredQuery_FieldReference{FieldPath: "n"},
					Op:    pb.StructuredQuery_FieldFilter_GREATER_THAN_OR_EQUAL,
					Value: integer(1 << 40),
				},
			}},
		}},
	})
	if err != nil {
		return err
	}
	for {
		answer, err := stream.Recv()
		if isEOF(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if answer.GetDocument() != nil {
			a.saw(answer.GetDocument())
		}
	}
}
