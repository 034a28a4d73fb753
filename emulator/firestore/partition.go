package firestoreemu

import (
	"context"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
)

// PartitionQuery splits a query over all descendants, in name order, into at most
// partition_count + 1 parts of similar size.
func (s *Server) PartitionQuery(_ context.Context, req *pb.PartitionQueryRequest) (*pb.PartitionQueryResponse, error) {
	d, err := s.databaseUnder(req.GetParent())
	if err != nil {
		return nil, err
	}
	if req.GetPartitionCount() < 1 {
		return nil, invalidf("partition_count must be positive")
	}
	plan, err := compile(req)
	if err != nil {
		return nil, err
	}
	if scope := plan.Scope(); !byName(plan) || !scope.AllDescendants {
		return nil, invalidf("a partitioned query must cover all descendants and be ordered by __name__ ascending")
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
	cursors := partition(evaluate(plan, v.snapshot, true), int(min(req.GetPartitionCount(), 1<<20)))
	part, token := pageOf(cursors, page, v.snapshot.Time)
	return &pb.PartitionQueryResponse{Partitions: part, NextPageToken: token}, nil
}

// partition returns the cursors that split docs into n+1 parts, or fewer if there
// are too few documents.
func partition(docs []*pb.Document, n int) []*pb.Cursor {
	var cursors []*pb.Cursor
	last := 0
	for i := 1; i <= n; i++ {
		at := i * len(docs) / (n + 1)
		if at == last || at >= len(docs) {
			continue
		}
		last = at
		cursors = append(cursors, &pb.Cursor{
			Before: true,
			Values: []*pb.Value{{ValueType: &pb.Value_ReferenceValue{ReferenceValue: docs[at].GetName()}}},
		})
	}
	return cursors
}
