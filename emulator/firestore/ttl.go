package firestoreemu

import (
	"context"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// SweepTTL deletes the expired documents of all databases and returns how many. A
// document has expired if its TTL field, declared in Options.Indexes, is not after
// the server's clock. Until the call, expired documents stay readable; the real
// service deletes them within a day. Each deletion is a commit of its own.
// Documents below a deleted one stay (E-ST-07).
func (s *Server) SweepTTL(ctx context.Context) (int, error) {
	swept := 0
	for _, d := range s.allDatabases() {
		for _, doc := range d.expired() {
			_, err := d.commitAlone(ctx, &pb.CommitRequest{Writes: []*pb.Write{{
				Operation:       &pb.Write_Delete{Delete: doc.GetName()},
				CurrentDocument: &pb.Precondition{ConditionType: &pb.Precondition_UpdateTime{UpdateTime: doc.GetUpdateTime()}},
			}}}, s.opts.Clock.Now())
			switch {
			case err == nil:
				swept++
			case status.Code(err) != codes.FailedPrecondition: // changed meanwhile: left to the next sweep
				return swept, err
			}
		}
	}
	return swept, nil
}

// expired lists the expired documents.
func (d *database) expired() []*pb.Document {
	if d.server.indexes == nil {
		return nil
	}
	snapshot := d.store.Now()
	defer snapshot.Close()
	now := d.server.opts.Clock.Now()
	var found []*pb.Document
	snapshot.Scan(store.Scope{Parent: d.root(), AllDescendants: true}, "", func(doc *pb.Document) bool {
		name, err := value.ParseName(doc.GetName())
		if err != nil {
			return true // cannot happen: stored names are valid
		}
		field, declared := d.server.indexes.TTLField(name.CollectionID())
		if !declared {
			return true
		}
		at := value.Get(doc.GetFields(), field).GetTimestampValue()
		if at != nil && !at.AsTime().After(now) {
			found = append(found, doc)
		}
		return true
	})
	return found
}
