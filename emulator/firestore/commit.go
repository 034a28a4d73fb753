package firestoreemu

import (
	"context"
	"errors"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"golang.org/x/sync/errgroup"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/locks"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
)

// maxPayloadBytes is the service's limit on a request.
const maxPayloadBytes = 10 << 20

// BeginTransaction opens a transaction, without options a read-write one.
func (s *Server) BeginTransaction(_ context.Context, req *pb.BeginTransactionRequest) (*pb.BeginTransactionResponse, error) {
	d, err := s.database(req.GetDatabase())
	if err != nil {
		return nil, err
	}
	tx, err := d.transactions.beginWith(d.store, req.GetOptions())
	if err != nil {
		return nil, err
	}
	return &pb.BeginTransactionResponse{Transaction: tx.id}, nil
}

// Rollback ends a transaction. It is not an error if the transaction has already
// ended (E-TX-14).
func (s *Server) Rollback(_ context.Context, req *pb.RollbackRequest) (*emptypb.Empty, error) {
	d, err := s.database(req.GetDatabase())
	if err != nil {
		return nil, err
	}
	if _, ok := decodeID(req.GetTransaction(), d.name); !ok {
		return nil, errInvalidTransaction
	}
	tx, err := d.transactions.find(req.GetTransaction())
	if err != nil {
		return &emptypb.Empty{}, nil
	}
	defer d.transactions.release(tx)
	if tx.owner != nil && !d.locks.Abort(tx.owner, locks.ErrEnded) && d.locks.Err(tx.owner) == nil {
		return &emptypb.Empty{}, nil // its commit can no longer be aborted, and ends it
	}
	d.transactions.close(tx)
	return &emptypb.Empty{}, nil
}

// Commit applies all writes or none.
func (s *Server) Commit(ctx context.Context, req *pb.CommitRequest) (*pb.CommitResponse, error) {
	arrival := s.opts.Clock.Now()
	d, err := s.database(req.GetDatabase())
	if err != nil {
		return nil, err
	}
	var answer *pb.CommitResponse
	if len(req.GetTransaction()) == 0 {
		answer, err = d.commitAlone(ctx, req, arrival)
	} else {
		answer, err = d.commitTransaction(ctx, req, arrival)
	}
	if err == nil {
		s.counters.written.Add(uint64(len(req.GetWrites())))
	}
	return answer, err
}

// commitAlone commits without a transaction. It is a transaction of its own,
// whose age is the time of its arrival (E-TX-06).
func (d *database) commitAlone(ctx context.Context, req *pb.CommitRequest, arrival time.Time) (*pb.CommitResponse, error) {
	writes, err := d.parseCommit(req)
	if err != nil {
		return nil, err
	}
	return d.commit(ctx, nil, locks.NewOwner(0), writes, arrival)
}

func (d *database) commitTransaction(ctx context.Context, req *pb.CommitRequest, arrival time.Time) (*pb.CommitResponse, error) {
	tx, err := d.transactions.find(req.GetTransaction())
	if err != nil {
		return nil, err
	}
	defer d.transactions.release(tx)
	if !tx.startCommit() {
		return nil, errExpired
	}
	writes, err := d.parseCommit(req)
	switch {
	case tx.mode == readWrite:
		return d.commitLocked(ctx, tx, writes, err, arrival)
	case err != nil:
	case tx.mode == readOnly && len(writes) > 0:
		err = errReadOnlyWrites
	}
	defer d.transactions.close(tx)
	switch {
	case err != nil:
		return nil, err
	case len(writes) == 0:
		return d.emptyCommit(), nil
	}
	return d.commitOptimistic(ctx, tx, writes, arrival)
}

// commitLocked ends a read-write transaction. An aborted one stays open and answers
// ABORTED until it is rolled back (E-TX-11). invalid is the error of an invalid
// request, or nil.
func (d *database) commitLocked(ctx context.Context, tx *transaction, writes []write, invalid error, arrival time.Time) (*pb.CommitResponse, error) {
	if invalid != nil {
		d.locks.End(tx.owner)
		d.transactions.close(tx)
		return nil, invalid
	}
	answer, err := d.commit(ctx, tx, tx.owner, writes, arrival)
	if ended := d.locks.Err(tx.owner); !errors.Is(ended, locks.ErrEnded) {
		tx.cancelCommit() // aborted, or cancelled by the client before it had the locks (E-TX-13)
		return nil, err
	}
	d.transactions.close(tx)
	return answer, err
}

func (d *database) parseCommit(req *pb.CommitRequest) ([]write, error) {
	if proto.Size(req) > maxPayloadBytes {
		return nil, errPayload
	}
	return d.parseWrites(req.GetWrites())
}

// commit takes the locks, applies the writes and ends the owner. The owner does not
// end if it was aborted or the client cancelled before the locks were granted. tx
// is nil for a commit without a transaction.
func (d *database) commit(ctx context.Context, tx *transaction, owner *locks.Owner, writes []write, arrival time.Time) (*pb.CommitResponse, error) {
	var done *outcome
	var failure error
	written := names(writes)
	err := d.locks.Exclude(ctx, owner, written, func() []locks.Change {
		if done, failure = d.apply(writes, arrival); failure != nil {
			return d.untouched(written)
		}
		return done.lockChanges()
	})
	if err != nil {
		return nil, lockStatus(err)
	}
	defer d.locks.End(owner)
	if failure != nil {
		return nil, failure
	}
	d.holdLocks(ctx)
	earliest := arrival.Truncate(time.Millisecond).UnixMicro()
	changes := done.storeChanges()
	at, err := d.store.Commit(changes, earliest)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "embedded firestore: commit may or may not have been saved: %v", err)
	}
	d.recordCommit(tx, changes, arrival, at)
	return &pb.CommitResponse{WriteResults: done.writeResults(at), CommitTime: store.Timestamp(at)}, nil
}

// emptyCommit answers a commit without writes.
func (d *database) emptyCommit() *pb.CommitResponse {
	now := d.store.Now()
	defer now.Close()
	return &pb.CommitResponse{CommitTime: store.Timestamp(now.Time)}
}

// BatchWrite applies each write independently. If one is malformed, it applies
// none (E-WR-08).
func (s *Server) BatchWrite(ctx context.Context, req *pb.BatchWriteRequest) (*pb.BatchWriteResponse, error) {
	arrival := s.opts.Clock.Now()
	d, err := s.database(req.GetDatabase())
	if err != nil {
		return nil, err
	}
	if proto.Size(req) > maxPayloadBytes {
		return nil, errPayload
	}
	seen := map[string]bool{}
	for _, w := range req.GetWrites() {
		name := writeName(w)
		if seen[name] {
			return nil, invalidf("Cannot write to the same document %s more than once in a BatchWrite.", name)
		}
		seen[name] = true
	}
	writes, err := d.parseWrites(req.GetWrites())
	if err != nil {
		return nil, err
	}
	answer := &pb.BatchWriteResponse{
		WriteResults: make([]*pb.WriteResult, len(writes)),
		Status:       make([]*rpcstatus.Status, len(writes)),
	}
	var group errgroup.Group
	group.SetLimit(batchWriteAtOnce)
	for i, w := range writes {
		group.Go(func() error {
			answer.WriteResults[i], answer.Status[i] = s.writeAlone(ctx, d, w, arrival)
			return nil
		})
	}
	return answer, group.Wait()
}

// batchWriteAtOnce is how many writes of a BatchWrite run concurrently. They are
// then saved together, and one that waits for a lock delays few others.
const batchWriteAtOnce = 16

// writeAlone applies one write of a BatchWrite.
func (s *Server) writeAlone(ctx context.Context, d *database, w write, arrival time.Time) (*pb.WriteResult, *rpcstatus.Status) {
	committed, err := d.commit(ctx, nil, locks.NewOwner(0), []write{w}, arrival)
	if err != nil {
		return &pb.WriteResult{}, status.Convert(err).Proto()
	}
	s.counters.written.Add(1)
	return committed.WriteResults[0], &rpcstatus.Status{}
}

func writeName(w *pb.Write) string {
	switch op := w.GetOperation().(type) {
	case *pb.Write_Update:
		return op.Update.GetName()
	case *pb.Write_Delete:
		return op.Delete
	case *pb.Write_Transform:
		return op.Transform.GetDocument()
	}
	return ""
}

func commitMicros(c *pb.CommitResponse) int64 { return store.Micros(c.GetCommitTime()) }
