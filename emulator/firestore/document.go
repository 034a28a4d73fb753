package firestoreemu

import (
	"context"
	"strings"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// The single-document RPCs are a Commit of one write each (E-RPC-02).

// CreateDocument stores a new document; if the request has no id, under a random
// one.
func (s *Server) CreateDocument(ctx context.Context, req *pb.CreateDocumentRequest) (*pb.Document, error) {
	id := req.GetDocumentId()
	switch {
	case req.GetDocument().GetName() != "":
		return nil, invalidf("document.name must not be set")
	case strings.Contains(req.GetCollectionId(), "/"):
		return nil, invalidf("Collection id %q is invalid because it contains \"/\".", req.GetCollectionId())
	case strings.Contains(id, "/"):
		return nil, invalidf("Resource id %q is invalid because it contains \"/\".", id)
	case id == "":
		id = uuid.NewString()
	}
	doc := &pb.Document{
		Name:   req.GetParent() + "/" + req.GetCollectionId() + "/" + id,
		Fields: req.GetDocument().GetFields(),
	}
	return s.writeOne(ctx, req.GetMask(), &pb.Write{
		Operation:       &pb.Write_Update{Update: doc},
		CurrentDocument: &pb.Precondition{ConditionType: &pb.Precondition_Exists{Exists: false}},
	})
}

// UpdateDocument stores a document, or only the fields of the update mask.
func (s *Server) UpdateDocument(ctx context.Context, req *pb.UpdateDocumentRequest) (*pb.Document, error) {
	return s.writeOne(ctx, req.GetMask(), &pb.Write{
		Operation:       &pb.Write_Update{Update: req.GetDocument()},
		UpdateMask:      req.GetUpdateMask(),
		CurrentDocument: req.GetCurrentDocument(),
	})
}

// DeleteDocument deletes a document. Deleting a missing one is not an error.
func (s *Server) DeleteDocument(ctx context.Context, req *pb.DeleteDocumentRequest) (*emptypb.Empty, error) {
	name, err := value.ParseName(req.GetName())
	if err != nil {
		return nil, err
	}
	_, err = s.Commit(ctx, &pb.CommitRequest{Database: name.DatabaseName(), Writes: []*pb.Write{{
		Operation:       &pb.Write_Delete{Delete: req.GetName()},
		CurrentDocument: req.GetCurrentDocument(),
	}}})
	return &emptypb.Empty{}, err
}

// writeOne commits one update and returns the resulting document.
func (s *Server) writeOne(ctx context.Context, show *pb.DocumentMask, w *pb.Write) (*pb.Document, error) {
	mask, err := value.ParseReadMask(show)
	if err != nil {
		return nil, err
	}
	name, err := value.ParseName(w.GetUpdate().GetName())
	if err != nil {
		return nil, err
	}
	d, err := s.database(name.DatabaseName())
	if err != nil {
		return nil, err
	}
	committed, err := s.Commit(ctx, &pb.CommitRequest{Database: d.name, Writes: []*pb.Write{w}})
	if err != nil {
		return nil, err
	}
	snapshot, err := d.store.At(commitMicros(committed))
	if err != nil {
		return nil, snapshotStatus(err)
	}
	defer snapshot.Close()
	return project(snapshot.Get(name.String()), mask), nil
}
