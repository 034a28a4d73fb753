package firestoreemu

import (
	"context"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/query"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
)

// RunQuery streams the results of a query, or one answer with only the read time.
func (s *Server) RunQuery(req *pb.RunQueryRequest, stream pb.Firestore_RunQueryServer) error {
	if req.GetExplainOptions() != nil {
		return unimplemented("RunQueryRequest.explain_options")
	}
	d, err := s.databaseUnder(req.GetParent())
	if err != nil {
		return err
	}
	plan, err := compile(req)
	if err != nil {
		return err
	}
	if err := s.checkIndex(plan, nil); err != nil {
		return err
	}
	v, err := d.open(selectorOf(req))
	if err != nil {
		return err
	}
	docs, err := v.run(stream.Context(), plan, true)
	v.close() // before sending: a slow client must not keep old versions in memory
	if err != nil {
		return err
	}
	s.counters.read.Add(uint64(len(docs)))
	at := v.readTime()
	if v.created != nil {
		if err := stream.Send(&pb.RunQueryResponse{Transaction: v.created}); err != nil {
			return err
		}
	}
	return sendResults(stream, plan, docs, at)
}

// compile compiles the query of a request. A missing query is an error: an empty
// one is legal and would read the whole database.
func compile(req interface {
	GetParent() string
	GetStructuredQuery() *pb.StructuredQuery
}) (*query.Plan, error) {
	if req.GetStructuredQuery() == nil {
		return nil, invalidf("only structured queries are supported")
	}
	return query.Compile(req.GetParent(), req.GetStructuredQuery())
}

func sendResults(stream pb.Firestore_RunQueryServer, plan *query.Plan, docs []*pb.Document, at *timestamppb.Timestamp) error {
	if len(docs) == 0 {
		return stream.Send(&pb.RunQueryResponse{ReadTime: at, SkippedResults: 0})
	}
	for _, doc := range docs {
		if err := stream.Send(&pb.RunQueryResponse{Document: plan.Project(doc), ReadTime: at}); err != nil {
			return err
		}
	}
	return nil
}

// RunAggregationQuery computes counts, sums and averages over the results of a
// query.
func (s *Server) RunAggregationQuery(req *pb.RunAggregationQueryRequest, stream pb.Firestore_RunAggregationQueryServer) error {
	if req.GetExplainOptions() != nil {
		return unimplemented("RunAggregationQueryRequest.explain_options")
	}
	d, err := s.databaseUnder(req.GetParent())
	if err != nil {
		return err
	}
	aggregation, err := query.CompileAggregation(req.GetParent(), req.GetStructuredAggregationQuery())
	if err != nil {
		return err
	}
	if err := s.checkIndex(aggregation.Plan(), aggregation.Fields()); err != nil {
		return err
	}
	v, err := d.open(selectorOf(req))
	if err != nil {
		return err
	}
	docs, err := v.run(stream.Context(), aggregation.Plan(), len(aggregation.Fields()) > 0)
	v.close()
	if err != nil {
		return err
	}
	s.counters.read.Add(uint64(len(docs)))
	if v.created != nil {
		if err := stream.Send(&pb.RunAggregationQueryResponse{Transaction: v.created}); err != nil {
			return err
		}
	}
	return stream.Send(&pb.RunAggregationQueryResponse{
		Result:   &pb.AggregationResult{AggregateFields: aggregation.Aggregate(docs)},
		ReadTime: v.readTime(),
	})
}

// run returns the plan's results, after locking what it scans if the view takes
// locks. Without ordered, the results may come in any order.
func (v *view) run(ctx context.Context, plan *query.Plan, ordered bool) ([]*pb.Document, error) {
	held, err := v.readScan(ctx, plan)
	if err != nil {
		return nil, err
	}
	docs := evaluate(plan, v.snapshot, ordered || v.tx != nil)
	v.noteQuery(plan, docs)
	if held != nil {
		if n, limited := plan.Limit(); limited && n > 0 && len(docs) == n {
			v.db.locks.Narrow(held, &scan{plan: plan, last: docs[len(docs)-1]})
		}
	}
	return docs, v.verify()
}

// evaluate returns a plan's results after offset and limit. Without ordered it does
// not sort them, unless the order decides which documents are results.
func evaluate(plan *query.Plan, snapshot *store.Snapshot, ordered bool) []*pb.Document {
	scope := plan.Scope()
	enough := -1 // how many matches suffice, if a scan yields them in result order
	if n, limited := plan.Limit(); limited && byName(plan) && !scope.AllDescendants && scope.CollectionID != "" {
		enough = n + plan.Offset()
	}
	var found []*pb.Document
	if enough != 0 {
		snapshot.Scan(store.Scope(scope), "", func(doc *pb.Document) bool {
			if plan.MatchesFields(doc) {
				found = append(found, doc)
			}
			return len(found) != enough
		})
	}
	if enough < 0 && (ordered || windowed(plan)) {
		plan.Sort(found)
	}
	return plan.Page(found)
}

// windowed reports whether the order decides which documents are results.
func windowed(plan *query.Plan) bool {
	_, limited := plan.Limit()
	return limited || plan.Offset() > 0
}

// byName reports whether results come in ascending name order, as a scan yields them.
func byName(plan *query.Plan) bool {
	orders := plan.Orders()
	return len(orders) == 1 && orders[0].Field.IsName() && !orders[0].Descending
}
