package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// step is a request that is sent to both servers.
type step struct {
	what string // the RPCs and their requests, for the report
	run  func(context.Context, *world) outcome
}

func show(m proto.Message) string {
	return protojson.MarshalOptions{}.Format(m)
}

// collect drains a stream of answers.
func collect[T any](stream grpc.ServerStreamingClient[T], err error) ([]*T, error) {
	if err != nil {
		return nil, err
	}
	var answers []*T
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return answers, nil
		}
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
	}
}

// plannedWrite is a write whose precondition can refer to the time of an earlier
// commit, which is different on each server.
type plannedWrite struct {
	write     *pb.Write
	updatedAt int // number of the commit, if usesTime
	usesTime  bool
}

func (p plannedWrite) String() string {
	if p.usesTime {
		return fmt.Sprintf("%s if updated at commit %d", show(p.write), p.updatedAt)
	}
	return show(p.write)
}

// resolve sets the server's own time. Before any commit it is a time that matches
// nothing.
func (p plannedWrite) resolve(w *world) *pb.Write {
	if !p.usesTime {
		return p.write
	}
	at := cycle(w.bases, p.updatedAt)
	if at == nil {
		at = &timestamppb.Timestamp{Seconds: 1}
	}
	write := proto.CloneOf(p.write)
	write.CurrentDocument = &pb.Precondition{ConditionType: &pb.Precondition_UpdateTime{UpdateTime: at}}
	return write
}

func resolveAll(planned []plannedWrite, w *world) []*pb.Write {
	writes := make([]*pb.Write, len(planned))
	for i, p := range planned {
		writes[i] = p.resolve(w)
	}
	return writes
}

func commitStep(writes []plannedWrite) step {
	return step{fmt.Sprintf("Commit %v", writes), func(ctx context.Context, w *world) outcome {
		return w.commit(ctx, nil, writes)
	}}
}

func (w *world) commit(ctx context.Context, transaction []byte, planned []plannedWrite) outcome {
	writes := resolveAll(planned, w)
	answer, err := w.rpc.Commit(ctx, &pb.CommitRequest{Database: w.database, Transaction: transaction, Writes: writes})
	if err != nil {
		return failedWrite(err, slices.ContainsFunc(planned, func(p plannedWrite) bool { return p.usesTime }))
	}
	if len(answer.GetWriteResults()) > 0 { // the official emulator's times of empty commits run ahead
		w.committed(answer.GetCommitTime(), slices.ContainsFunc(writes, func(write *pb.Write) bool { return write.GetDelete() != "" }))
	}
	o := outcome{}
	deleted := map[string]bool{}
	for _, write := range writes {
		deleted[write.GetDelete()] = true
	}
	for i, result := range answer.GetWriteResults() {
		if deleted[writtenName(writes[i])] {
			result.UpdateTime = nil // see Deliberate: times beside a delete
		}
		o.lines = append(o.lines, w.showWriteResult(result))
	}
	return o
}

func writtenName(write *pb.Write) string {
	return cmp.Or(write.GetUpdate().GetName(), write.GetTransform().GetDocument(), write.GetDelete())
}

func batchWriteStep(writes []plannedWrite) step {
	return step{fmt.Sprintf("BatchWrite %v", writes), func(ctx context.Context, w *world) outcome {
		answer, err := w.rpc.BatchWrite(ctx, &pb.BatchWriteRequest{Database: w.database, Writes: resolveAll(writes, w)})
		if err != nil {
			return failed(err)
		}
		o := outcome{}
		for i, result := range answer.GetWriteResults() {
			code := comparableCode(status.FromProto(answer.GetStatus()[i]), writes[i].usesTime)
			if code == codes.OK {
				w.chose(result.GetUpdateTime())
			}
			o.lines = append(o.lines, code.String()+" "+w.showWriteResult(result))
		}
		return o
	}}
}

// readAt is when to read: at the time of a commit, or now.
type readAt struct {
	commit int
	past   bool
}

func (r readAt) String() string {
	if r.past {
		return fmt.Sprintf(" at commit %d", r.commit)
	}
	return ""
}

// time returns nil for now.
func (r readAt) time(w *world) *timestamppb.Timestamp {
	if !r.past {
		return nil
	}
	return cycle(w.commits, r.commit)
}

func batchGetStep(req *pb.BatchGetDocumentsRequest, at readAt) step {
	return step{"BatchGetDocuments " + show(req) + at.String(), func(ctx context.Context, w *world) outcome {
		req := proto.CloneOf(req)
		if t := at.time(w); t != nil {
			req.ConsistencySelector = &pb.BatchGetDocumentsRequest_ReadTime{ReadTime: t}
		}
		return w.batchGet(ctx, req)
	}}
}

func (w *world) batchGet(ctx context.Context, req *pb.BatchGetDocumentsRequest) outcome {
	req.Database = w.database
	answers, err := collect(w.rpc.BatchGetDocuments(ctx, req))
	if err != nil {
		return failed(err)
	}
	o := outcome{}
	for _, answer := range answers {
		line := "missing " + answer.GetMissing()
		if found := answer.GetFound(); found != nil {
			line = w.showDocument(found)
		}
		if answer.GetReadTime() == nil {
			line += " WITHOUT READ TIME"
		}
		o.lines = append(o.lines, line)
	}
	slices.Sort(o.lines) // any order is right
	return o
}

func getStep(req *pb.GetDocumentRequest) step {
	return step{"GetDocument " + show(req), func(ctx context.Context, w *world) outcome {
		doc, err := w.rpc.GetDocument(ctx, req)
		if err != nil {
			return failed(err)
		}
		return outcome{lines: []string{w.showDocument(doc)}}
	}}
}

func queryStep(req *pb.RunQueryRequest, at readAt) step {
	return step{"RunQuery " + show(req) + at.String(), func(ctx context.Context, w *world) outcome {
		req := proto.CloneOf(req)
		if t := at.time(w); t != nil {
			req.ConsistencySelector = &pb.RunQueryRequest_ReadTime{ReadTime: t}
		}
		return w.query(ctx, req)
	}}
}

func (w *world) query(ctx context.Context, req *pb.RunQueryRequest) outcome {
	answers, err := collect(w.rpc.RunQuery(ctx, req))
	if err != nil {
		return failed(err)
	}
	o := outcome{}
	readTimes := 0
	for _, answer := range answers {
		if answer.GetReadTime() != nil {
			readTimes++
		}
		if answer.GetDocument() != nil {
			o.lines = append(o.lines, w.showDocument(answer.GetDocument()))
		}
	}
	if readTimes == 0 {
		o.lines = append(o.lines, "NO READ TIME")
	}
	return o
}

func aggregationStep(req *pb.RunAggregationQueryRequest, at readAt) step {
	return step{"RunAggregationQuery " + show(req) + at.String(), func(ctx context.Context, w *world) outcome {
		req := proto.CloneOf(req)
		if t := at.time(w); t != nil {
			req.ConsistencySelector = &pb.RunAggregationQueryRequest_ReadTime{ReadTime: t}
		}
		return w.aggregate(ctx, req)
	}}
}

func (w *world) aggregate(ctx context.Context, req *pb.RunAggregationQueryRequest) outcome {
	answers, err := collect(w.rpc.RunAggregationQuery(ctx, req))
	if err != nil {
		return failed(err)
	}
	o := outcome{}
	for _, answer := range answers {
		if answer.GetResult() != nil {
			o.lines = append(o.lines, w.showFields(answer.GetResult().GetAggregateFields()))
		}
	}
	return o
}

// listStep lists all pages of a collection.
func listStep(req *pb.ListDocumentsRequest) step {
	return step{"ListDocuments " + show(req), func(ctx context.Context, w *world) outcome {
		req := proto.CloneOf(req)
		o := outcome{}
		for page := 0; ; page++ {
			answer, err := w.rpc.ListDocuments(ctx, req)
			if err != nil {
				return failed(err)
			}
			for _, doc := range answer.GetDocuments() {
				if doc.GetCreateTime() == nil {
					doc.UpdateTime = nil // see Deliberate: times of missing documents
				}
				o.lines = append(o.lines, w.showDocument(doc))
			}
			if answer.GetNextPageToken() == "" || page > 50 {
				return o
			}
			req.PageToken = answer.GetNextPageToken()
		}
	}}
}

func listCollectionIDsStep(req *pb.ListCollectionIdsRequest) step {
	return step{"ListCollectionIds " + show(req), func(ctx context.Context, w *world) outcome {
		req := proto.CloneOf(req)
		o := outcome{}
		for page := 0; ; page++ {
			answer, err := w.rpc.ListCollectionIds(ctx, req)
			if err != nil {
				return failed(err)
			}
			o.lines = append(o.lines, answer.GetCollectionIds()...)
			if answer.GetNextPageToken() == "" || page > 50 {
				return o
			}
			req.PageToken = answer.GetNextPageToken()
		}
	}}
}

// transactionPlan is a transaction without contention.
type transactionPlan struct {
	readOnly bool
	at       readAt // of a read-only transaction
	reads    []transactionRead
	writes   []plannedWrite
	rollback bool
	again    bool // commit once more after the end
}

// transactionRead is one read; exactly one field is set.
type transactionRead struct {
	get       *pb.BatchGetDocumentsRequest
	query     *pb.RunQueryRequest
	aggregate *pb.RunAggregationQueryRequest
}

func (r transactionRead) String() string {
	switch {
	case r.get != nil:
		return show(r.get)
	case r.query != nil:
		return show(r.query)
	default:
		return show(r.aggregate)
	}
}

func (r transactionRead) run(ctx context.Context, w *world, id []byte) outcome {
	switch {
	case r.get != nil:
		req := proto.CloneOf(r.get)
		req.ConsistencySelector = &pb.BatchGetDocumentsRequest_Transaction{Transaction: id}
		return w.batchGet(ctx, req)
	case r.query != nil:
		req := proto.CloneOf(r.query)
		req.ConsistencySelector = &pb.RunQueryRequest_Transaction{Transaction: id}
		return w.query(ctx, req)
	default:
		req := proto.CloneOf(r.aggregate)
		req.ConsistencySelector = &pb.RunAggregationQueryRequest_Transaction{Transaction: id}
		return w.aggregate(ctx, req)
	}
}

func transactionStep(plan transactionPlan) step {
	what := fmt.Sprintf("Transaction readOnly=%t%s reads=%v writes=%v rollback=%t again=%t", plan.readOnly, plan.at, plan.reads, plan.writes, plan.rollback, plan.again)
	return step{what, func(ctx context.Context, w *world) outcome {
		begin := &pb.BeginTransactionRequest{Database: w.database}
		if plan.readOnly {
			mode := &pb.TransactionOptions_ReadOnly{}
			if t := plan.at.time(w); t != nil {
				mode.ConsistencySelector = &pb.TransactionOptions_ReadOnly_ReadTime{ReadTime: t}
			}
			begin.Options = &pb.TransactionOptions{Mode: &pb.TransactionOptions_ReadOnly_{ReadOnly: mode}}
		}
		answer, err := w.rpc.BeginTransaction(ctx, begin)
		if err != nil {
			return failed(err)
		}
		id := answer.GetTransaction()
		o := outcome{}
		add := func(what string, part outcome) codes.Code {
			o.lines = append(o.lines, what+" "+part.code.String())
			o.lines = append(o.lines, part.lines...)
			return part.code
		}
		for _, read := range plan.reads {
			if add("read", read.run(ctx, w, id)) != codes.OK {
				// The effect of a failed read on its transaction differs. A client can
				// only roll back.
				_, err := w.rpc.Rollback(ctx, &pb.RollbackRequest{Database: w.database, Transaction: id})
				add("rollback", failed(err))
				return o
			}
		}
		if plan.rollback {
			_, err := w.rpc.Rollback(ctx, &pb.RollbackRequest{Database: w.database, Transaction: id})
			add("rollback", failed(err))
		} else {
			add("commit", w.commit(ctx, id, plan.writes))
		}
		if plan.again {
			add("commit again", w.commit(ctx, id, plan.writes))
		}
		return o
	}}
}

// createStep, updateStep and deleteStep are the single-document RPCs, which the Go
// client never sends.
func createStep(req *pb.CreateDocumentRequest) step {
	return step{"CreateDocument " + show(req), func(ctx context.Context, w *world) outcome {
		return w.showWritten(w.rpc.CreateDocument(ctx, req))
	}}
}

func updateStep(req *pb.UpdateDocumentRequest) step {
	return step{"UpdateDocument " + show(req), func(ctx context.Context, w *world) outcome {
		return w.showWritten(w.rpc.UpdateDocument(ctx, req))
	}}
}

func deleteStep(req *pb.DeleteDocumentRequest) step {
	return step{"DeleteDocument " + show(req), func(ctx context.Context, w *world) outcome {
		_, err := w.rpc.DeleteDocument(ctx, req)
		return failed(err)
	}}
}

func (w *world) showWritten(doc *pb.Document, err error) outcome {
	if err != nil {
		return failed(err)
	}
	w.chose(doc.GetUpdateTime())
	return outcome{lines: []string{w.showDocument(doc)}}
}

// everythingStep reads all paths that the sequences use, to find differences that the
// answers of the other steps did not show.
func everythingStep(paths []string) step {
	return step{"read everything", func(ctx context.Context, w *world) outcome {
		names := map[string]bool{}
		for _, path := range paths {
			names[w.root()+"/"+path] = true
		}
		return w.batchGet(ctx, &pb.BatchGetDocumentsRequest{Documents: slices.Sorted(maps.Keys(names))})
	}}
}
