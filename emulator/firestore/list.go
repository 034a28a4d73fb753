package firestoreemu

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/proto"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/query"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// ListDocuments lists a collection. With show_missing it also lists names that do
// not exist but have documents below them.
func (s *Server) ListDocuments(ctx context.Context, req *pb.ListDocumentsRequest) (*pb.ListDocumentsResponse, error) {
	d, err := s.databaseUnder(req.GetParent())
	if err != nil {
		return nil, err
	}
	mask, err := value.ParseReadMask(req.GetMask())
	if err != nil {
		return nil, err
	}
	if req.GetShowMissing() && req.GetCollectionId() == "" {
		return nil, invalidf("show_missing requires a collection_id")
	}
	plan, err := listPlan(req)
	if err != nil {
		return nil, err
	}
	if err := s.checkIndex(plan, nil); err != nil {
		return nil, err
	}
	page, sel, err := resume(req.GetPageToken(), req.GetPageSize(), selectorOf(req))
	if err != nil {
		return nil, err
	}
	v, err := d.open(sel)
	if err != nil {
		return nil, err
	}
	defer v.close()
	docs, err := v.run(ctx, plan, true)
	if err != nil {
		return nil, err
	}
	if req.GetShowMissing() {
		docs = v.addMissing(docs, req.GetParent(), req.GetCollectionId())
	}
	answer := &pb.ListDocumentsResponse{}
	bytes := 0
	for _, doc := range docs[min(page.start, len(docs)):] {
		doc = project(doc, mask)
		bytes += proto.Size(doc)
		if n := len(answer.Documents); n == page.size || n > 0 && bytes > maxPageBytes {
			break
		}
		answer.Documents = append(answer.Documents, doc)
	}
	page.size = len(answer.Documents)
	_, answer.NextPageToken = pageOf(docs, page, v.snapshot.Time)
	s.counters.read.Add(uint64(page.size))
	return answer, nil
}

// maxPageBytes is about the largest page of a listing, so that every client can
// receive it: grpc's default limit is 4 MiB.
const maxPageBytes = 3 << 20

// listPlan returns the listing as a query, over one collection or, without a
// collection id, over all collections directly under the parent.
func listPlan(req *pb.ListDocumentsRequest) (*query.Plan, error) {
	q := &pb.StructuredQuery{}
	if id := req.GetCollectionId(); id != "" {
		q.From = []*pb.StructuredQuery_CollectionSelector{{CollectionId: id}}
	}
	if req.GetOrderBy() == "" {
		return query.Compile(req.GetParent(), q)
	}
	if req.GetShowMissing() {
		return nil, invalidf("show_missing cannot be combined with order_by")
	}
	for term := range strings.SplitSeq(req.GetOrderBy(), ",") {
		words := strings.Fields(term)
		order := &pb.StructuredQuery_Order{Direction: pb.StructuredQuery_ASCENDING}
		switch {
		case len(words) == 2 && strings.EqualFold(words[1], "desc"):
			order.Direction = pb.StructuredQuery_DESCENDING
		case len(words) == 1, len(words) == 2 && strings.EqualFold(words[1], "asc"):
		default:
			return nil, invalidf("invalid order_by %q: use field paths, each optionally followed by asc or desc", req.GetOrderBy())
		}
		order.Field = &pb.StructuredQuery_FieldReference{FieldPath: words[0]}
		q.OrderBy = append(q.OrderBy, order)
	}
	return query.Compile(req.GetParent(), q)
}

// addMissing merges the missing documents, which have a name only, into a listing
// in name order.
func (v *view) addMissing(docs []*pb.Document, parent, collectionID string) []*pb.Document {
	for _, name := range v.snapshot.MissingParents(parent + "/" + collectionID) {
		docs = append(docs, &pb.Document{Name: name})
	}
	slices.SortFunc(docs, func(a, b *pb.Document) int { return value.CompareNameStrings(a.Name, b.Name) })
	return docs
}

// ListCollectionIds lists the ids of the collections directly under a parent.
func (s *Server) ListCollectionIds(_ context.Context, req *pb.ListCollectionIdsRequest) (*pb.ListCollectionIdsResponse, error) {
	d, err := s.databaseUnder(req.GetParent())
	if err != nil {
		return nil, err
	}
	page, sel, err := resume(req.GetPageToken(), req.GetPageSize(), selector{readTime: req.GetReadTime()})
	if err != nil {
		return nil, err
	}
	v, err := d.open(sel)
	if err != nil {
		return nil, err
	}
	defer v.close()
	ids, token := pageOf(v.snapshot.CollectionIDs(req.GetParent()), page, v.snapshot.Time)
	return &pb.ListCollectionIdsResponse{CollectionIds: ids, NextPageToken: token}, nil
}

// page is a part of a listing. All pages read the same snapshot, so that nothing is
// listed twice or missed.
type page struct {
	start int
	size  int
}

// defaultPageSize applies if the request has no page size. The service documents
// none.
const defaultPageSize = 300

// resume decodes a page token. Outside transactions it also sets the selector to
// the listing's snapshot.
func resume(token string, size int32, sel selector) (page, selector, error) {
	if size < 0 {
		return page{}, sel, invalidf("page_size must not be negative")
	}
	p := page{size: cmp.Or(int(size), defaultPageSize)}
	if token == "" {
		return p, sel, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) != 16 {
		return p, sel, invalidf("invalid page token")
	}
	p.start = int(binary.BigEndian.Uint64(raw))
	if p.start < 0 {
		return p, sel, invalidf("invalid page token")
	}
	if len(sel.transaction) == 0 {
		sel.readTime = store.Timestamp(int64(binary.BigEndian.Uint64(raw[8:])))
	}
	return p, sel, nil
}

// pageOf returns a page of a whole listing and the token of the next page, empty
// after the last.
func pageOf[T any](all []T, p page, snapshot int64) ([]T, string) {
	rest := all[min(p.start, len(all)):]
	if len(rest) <= p.size {
		return rest, ""
	}
	raw := binary.BigEndian.AppendUint64(nil, uint64(p.start+p.size))
	raw = binary.BigEndian.AppendUint64(raw, uint64(snapshot))
	return rest[:p.size], base64.RawURLEncoding.EncodeToString(raw)
}
