package firestoreemu

import (
	"context"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// BatchGetDocuments returns each named document once, whether it exists or not.
func (s *Server) BatchGetDocuments(req *pb.BatchGetDocumentsRequest, stream pb.Firestore_BatchGetDocumentsServer) error {
	d, err := s.database(req.GetDatabase())
	if err != nil {
		return err
	}
	names := make([]string, 0, len(req.GetDocuments()))
	seen := make(map[string]bool, len(req.GetDocuments()))
	for _, name := range req.GetDocuments() {
		if err := d.documentName(name); err != nil {
			return err
		}
		if !seen[name] { // duplicates are answered once (E-ST-06)
			seen[name] = true
			names = append(names, name)
		}
	}
	mask, err := value.ParseReadMask(req.GetMask())
	if err != nil {
		return err
	}
	v, err := d.open(selectorOf(req))
	if err != nil {
		return err
	}
	answers, err := v.find(stream.Context(), names, mask)
	v.close() // before sending: a slow client must not keep old versions in memory
	if err != nil {
		return err
	}
	s.counters.read.Add(uint64(len(names)))
	if v.created != nil {
		if err := stream.Send(&pb.BatchGetDocumentsResponse{Transaction: v.created}); err != nil {
			return err
		}
	}
	for _, answer := range answers {
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
	return nil
}

// find reads the named documents.
func (v *view) find(ctx context.Context, names []string, mask []value.FieldPath) ([]*pb.BatchGetDocumentsResponse, error) {
	if err := v.readNames(ctx, names); err != nil {
		return nil, err
	}
	answers := make([]*pb.BatchGetDocumentsResponse, len(names))
	for i, name := range names {
		answers[i] = &pb.BatchGetDocumentsResponse{ReadTime: v.readTime()}
		doc := v.snapshot.Get(name)
		v.noteDocument(name, doc)
		if doc != nil {
			answers[i].Result = &pb.BatchGetDocumentsResponse_Found{Found: project(doc, mask)}
		} else {
			answers[i].Result = &pb.BatchGetDocumentsResponse_Missing{Missing: name}
		}
	}
	return answers, v.verify()
}

// GetDocument returns one document.
func (s *Server) GetDocument(ctx context.Context, req *pb.GetDocumentRequest) (*pb.Document, error) {
	name, err := value.ParseName(req.GetName())
	if err != nil {
		return nil, err
	}
	mask, err := value.ParseReadMask(req.GetMask())
	if err != nil {
		return nil, err
	}
	d, err := s.database(name.DatabaseName())
	if err != nil {
		return nil, err
	}
	v, err := d.open(selectorOf(req))
	if err != nil {
		return nil, err
	}
	defer v.close()
	if err := v.readNames(ctx, []string{req.GetName()}); err != nil {
		return nil, err
	}
	doc := v.snapshot.Get(req.GetName())
	v.noteDocument(req.GetName(), doc)
	if err := v.verify(); err != nil {
		return nil, err
	}
	s.counters.read.Add(1)
	if doc == nil {
		return nil, status.Errorf(codes.NotFound, "Document %q not found.", req.GetName())
	}
	return project(doc, mask), nil
}
