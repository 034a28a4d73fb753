package firestoreemu

import (
	"context"
	"fmt"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/locks"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// callKey is the context key of a request's fault.Call, for stages inside handlers.
type callKey struct{}

// act applies the rules at a stage. A non-nil error is the answer to the request.
func (s *Server) act(ctx context.Context, call fault.Call, at fault.Stage) error {
	for _, action := range s.opts.Faults.Decide(call, at) {
		if err := s.do(ctx, call, action); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) do(ctx context.Context, call fault.Call, action fault.Action) error {
	switch action.Kind {
	case fault.KindFail:
		return status.Error(action.Code, "injected fault")
	case fault.KindDrop:
		s.connections.drop(ctx)
		return status.Error(codes.Unavailable, "injected fault: connection closed")
	case fault.KindDelay:
		select {
		case <-s.opts.Clock.After(action.Delay):
			return nil
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	case fault.KindPause:
		if err := action.Gate.Wait(ctx); err != nil {
			return status.FromContextError(err).Err()
		}
	case fault.KindAbort:
		s.withTransaction(call, func(d *database, tx *transaction) {
			if tx.owner != nil {
				d.locks.Abort(tx.owner, locks.ErrWounded)
			}
		})
		return errContention
	case fault.KindExpire:
		s.withTransaction(call, func(d *database, tx *transaction) { d.transactions.expire(tx) })
	case fault.KindCrash:
		action.Crash()
	}
	return nil
}

// withTransaction calls f with the request's transaction if that is open.
func (s *Server) withTransaction(call fault.Call, f func(*database, *transaction)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, d := range s.databases {
		if tx, err := d.transactions.find(call.Transaction); err == nil {
			f(d, tx)
			d.transactions.release(tx)
		}
	}
}

// holdLocks lets rules act on a commit that holds its locks. The commit proceeds in
// any case, as in the real service.
func (d *database) holdLocks(ctx context.Context) {
	if call, ok := ctx.Value(callKey{}).(fault.Call); ok {
		_ = d.server.act(ctx, call, fault.Locked) // rules can only delay it here
	}
}

// callOf describes a request for the rules.
func callOf(ctx context.Context, method string, req any) fault.Call {
	call := fault.Call{RPC: method, Owner: fault.OwnerOf(ctx)}
	if r, ok := req.(interface{ GetTransaction() []byte }); ok {
		call.Transaction = r.GetTransaction()
	}
	switch r := req.(type) {
	case *pb.BatchGetDocumentsRequest:
		call.Names = r.GetDocuments()
	case *pb.CommitRequest:
		call.Names = writeNames(r.GetWrites())
	case *pb.BatchWriteRequest:
		call.Names = writeNames(r.GetWrites())
	case *pb.RunQueryRequest:
		call.Names = queriedNames(r.GetParent(), r.GetStructuredQuery())
	case *pb.RunAggregationQueryRequest:
		call.Names = queriedNames(r.GetParent(), r.GetStructuredAggregationQuery().GetStructuredQuery())
	case *pb.ListDocumentsRequest:
		call.Names = []string{r.GetParent() + "/" + r.GetCollectionId()}
	case interface{ GetName() string }: // GetDocument, DeleteDocument
		call.Names = []string{r.GetName()}
	}
	return call
}

func writeNames(writes []*pb.Write) []string {
	names := make([]string, len(writes))
	for i, w := range writes {
		names[i] = writeName(w)
	}
	return names
}

func queriedNames(parent string, q *pb.StructuredQuery) []string {
	var names []string
	for _, from := range q.GetFrom() {
		names = append(names, parent+"/"+from.GetCollectionId())
	}
	return names
}

// faultySaver lets rules act before and after a batch of commits is saved.
type faultySaver struct {
	store.Saver
	server *Server
}

// Save saves a batch, or fails if a rule says so.
func (f faultySaver) Save(batch []store.Commit) error {
	ctx := untilClosed{context.Background(), f.server.stop} // no request can cancel a batch
	if err := f.server.act(ctx, fault.Call{}, fault.BeforeSave); err != nil {
		return fmt.Errorf("before saving: %w", err)
	}
	if err := f.Saver.Save(batch); err != nil {
		return err
	}
	if err := f.server.act(ctx, fault.Call{}, fault.AfterSave); err != nil {
		return fmt.Errorf("after saving: %w", err)
	}
	return nil
}

// untilClosed is a context that ends when the server is closed. Like every derived
// context it embeds its parent.
type untilClosed struct {
	context.Context
	closed <-chan struct{}
}

func (c untilClosed) Done() <-chan struct{} { return c.closed }

func (c untilClosed) Err() error {
	select {
	case <-c.closed:
		return context.Canceled
	default:
		return nil
	}
}

// HoldLock locks documents, given by their full names in one database, like a
// transaction that has read them and then hangs. Writers wait until release is
// called or the server aborts the transaction, see Options.Limits.
func (s *Server) HoldLock(ctx context.Context, names ...string) (release func(), err error) {
	if len(names) == 0 {
		return nil, invalidf("HoldLock: no documents given")
	}
	first, err := value.ParseName(names[0])
	if err != nil {
		return nil, err
	}
	d, err := s.database(first.DatabaseName())
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := d.documentName(name); err != nil {
			return nil, err
		}
	}
	tx := d.transactions.begin(readWrite, 0, nil)
	release = func() {
		d.locks.Abort(tx.owner, locks.ErrEnded)
		d.transactions.close(tx)
	}
	if err := d.locks.Share(ctx, tx.owner, names); err != nil {
		release()
		return nil, lockStatus(err)
	}
	return release, nil
}
