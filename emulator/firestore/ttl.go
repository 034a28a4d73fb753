package firestoreemu

import (
	"context"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// SweepTTL deletes the documents that have expired by the server's clock, as
// Options.Indexes declares it, in all databases, and returns how many. The real
// service does this by itself within a day; until then, and here until the call,
// expired documents stay readable. Each deletion is a commit of its own; the
// documents below a deleted one stay (E-ST-07).
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
			case status.Code(err) != codes.FailedPrecondition: // changed meanwhile: another sweep will see
				return swept, err
			}
		}
	}
	return swept, nil
}

// expired lists the documents whose TTL field is in the past.
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
			return true // stored names have been parsed before
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
