package conformance

import (
	"context"
	"strconv"
	"strings"
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// probe sends the requests that show a difference.
type probe func(context.Context, *world) outcome

func set(name string, fields map[string]*pb.Value) plannedWrite {
	return plannedWrite{write: &pb.Write{Operation: &pb.Write_Update{Update: &pb.Document{Name: name, Fields: fields}}}}
}

func remove(name string) plannedWrite {
	return plannedWrite{write: &pb.Write{Operation: &pb.Write_Delete{Delete: name}}}
}

func onlyIfUpdatedAt(p plannedWrite, commit int) plannedWrite {
	p.usesTime, p.updatedAt = true, commit
	return p
}

func transformOf(name string, transforms ...*pb.DocumentTransform_FieldTransform) plannedWrite {
	return plannedWrite{write: &pb.Write{Operation: &pb.Write_Transform{Transform: &pb.DocumentTransform{Document: name, FieldTransforms: transforms}}}}
}

func incrementOf(path string) *pb.DocumentTransform_FieldTransform {
	return &pb.DocumentTransform_FieldTransform{FieldPath: path, TransformType: &pb.DocumentTransform_FieldTransform_Increment{Increment: integer(1)}}
}

// rawCommit shows a commit without the allowances of the random sequences.
func (w *world) rawCommit(ctx context.Context, writes ...plannedWrite) outcome {
	answer, err := w.rpc.Commit(ctx, &pb.CommitRequest{Database: w.database, Writes: resolveAll(writes, w)})
	if err != nil {
		return failed(err)
	}
	w.committed(answer.GetCommitTime(), false)
	o := outcome{}
	for _, result := range answer.GetWriteResults() {
		o.lines = append(o.lines, w.showWriteResult(result))
	}
	return o
}

func (w *world) rawList(ctx context.Context, req *pb.ListDocumentsRequest) outcome {
	answer, err := w.rpc.ListDocuments(ctx, req)
	if err != nil {
		return failed(err)
	}
	o := outcome{}
	for _, doc := range answer.GetDocuments() {
		o.lines = append(o.lines, w.showDocument(doc))
	}
	return o
}

func queryOf(w *world, q *pb.StructuredQuery) *pb.RunQueryRequest {
	if q.From == nil {
		q.From = []*pb.StructuredQuery_CollectionSelector{{CollectionId: "c"}}
	}
	return &pb.RunQueryRequest{Parent: w.root(), QueryType: &pb.RunQueryRequest_StructuredQuery{StructuredQuery: q}}
}

func countsNamed(w *world, aliases ...string) *pb.RunAggregationQueryRequest {
	a := &pb.StructuredAggregationQuery{QueryType: &pb.StructuredAggregationQuery_StructuredQuery{StructuredQuery: queryOf(w, &pb.StructuredQuery{}).GetStructuredQuery()}}
	for _, alias := range aliases {
		a.Aggregations = append(a.Aggregations, &pb.StructuredAggregationQuery_Aggregation{Alias: alias, Operator: &pb.StructuredAggregationQuery_Aggregation_Count_{
			Count: &pb.StructuredAggregationQuery_Aggregation_Count{},
		}})
	}
	return &pb.RunAggregationQueryRequest{Parent: w.root(), QueryType: &pb.RunAggregationQueryRequest_StructuredAggregationQuery{StructuredAggregationQuery: a}}
}

// probes has one probe for each row of Deliberate.
var probes = map[string]probe{
	"time of a delete": func(ctx context.Context, w *world) outcome {
		return w.rawCommit(ctx, remove(w.root()+"/c/a"), set(w.root()+"/c/a", nil))
	},
	"preconditions between writes to one document": func(ctx context.Context, w *world) outcome {
		w.rawCommit(ctx, set(w.root()+"/c/a", nil))
		return w.rawCommit(ctx, set(w.root()+"/c/a", map[string]*pb.Value{"v": integer(1)}), onlyIfUpdatedAt(set(w.root()+"/c/a", nil), 0))
	},
	"base version of the future": func(ctx context.Context, w *world) outcome {
		w.rawCommit(ctx, set(w.root()+"/c/a", nil))
		w.rawCommit(ctx, set(w.root()+"/c/b", nil))
		return w.rawCommit(ctx, onlyIfUpdatedAt(set(w.root()+"/c/a", nil), 1))
	},
	"base version of a missing document": func(ctx context.Context, w *world) outcome {
		w.rawCommit(ctx, set(w.root()+"/c/a", nil))
		w.rawCommit(ctx, remove(w.root()+"/c/a"))
		return w.rawCommit(ctx, onlyIfUpdatedAt(set(w.root()+"/c/a", nil), 1))
	},
	"base version of a deletion": func(ctx context.Context, w *world) outcome {
		w.rawCommit(ctx, set(w.root()+"/c/a", nil))
		w.rawCommit(ctx, remove(w.root()+"/c/a"))
		return w.rawCommit(ctx, onlyIfUpdatedAt(remove(w.root()+"/c/a"), 1))
	},
	"arrays inside arrays by transform": func(ctx context.Context, w *world) outcome {
		return w.rawCommit(ctx, transformOf(w.root()+"/c/a", &pb.DocumentTransform_FieldTransform{FieldPath: "v",
			TransformType: &pb.DocumentTransform_FieldTransform_AppendMissingElements{AppendMissingElements: &pb.ArrayValue{Values: []*pb.Value{array()}}}}))
	},
	"masks beside missing documents": func(ctx context.Context, w *world) outcome {
		w.rawCommit(ctx, set(w.root()+"/c/a", map[string]*pb.Value{"v": integer(1), "w": integer(1)}))
		return w.rawList(ctx, &pb.ListDocumentsRequest{Parent: w.root(), CollectionId: "c", ShowMissing: true, Mask: &pb.DocumentMask{FieldPaths: []string{"v"}}})
	},
	"times of missing documents": func(ctx context.Context, w *world) outcome {
		w.rawCommit(ctx, set(w.root()+"/c/a/s/x", nil), set(w.root()+"/c/a", nil))
		w.rawCommit(ctx, remove(w.root()+"/c/a"))
		return w.rawList(ctx, &pb.ListDocumentsRequest{Parent: w.root(), CollectionId: "c", ShowMissing: true})
	},
	"four underscores as a field": func(ctx context.Context, w *world) outcome {
		return w.rawCommit(ctx, set(w.root()+"/c/a", map[string]*pb.Value{"____": integer(1)}))
	},
	"writing the name": func(ctx context.Context, w *world) outcome {
		return w.rawCommit(ctx, transformOf(w.root()+"/c/a", incrementOf("__name__")))
	},
	"reading long ids": func(ctx context.Context, w *world) outcome {
		return w.batchGet(ctx, &pb.BatchGetDocumentsRequest{Documents: []string{w.root() + "/c/" + strings.Repeat("x", 1501)}})
	},
	"names over 6 KiB": func(ctx context.Context, w *world) outcome {
		return w.rawCommit(ctx, set(w.root()+strings.Repeat("/c/"+strings.Repeat("x", 1400), 5), nil))
	},
	"field paths of 1500 bytes": func(ctx context.Context, w *world) outcome {
		return w.query(ctx, queryOf(w, &pb.StructuredQuery{OrderBy: []*pb.StructuredQuery_Order{order(strings.Repeat("x", 1500), pb.StructuredQuery_ASCENDING)}}))
	},
	"long paths in transforms": func(ctx context.Context, w *world) outcome {
		return w.rawCommit(ctx, transformOf(w.root()+"/c/a", incrementOf(strings.Repeat("a.", 20)+"a")))
	},
	"501 transforms": func(ctx context.Context, w *world) outcome {
		var transforms []*pb.DocumentTransform_FieldTransform
		for i := range 501 {
			transforms = append(transforms, incrementOf("f"+strconv.Itoa(i)))
		}
		name := w.root() + "/c/a"
		return w.rawCommit(ctx, transformOf(name, transforms[:250]...), transformOf(name, transforms[250:]...))
	},
	"foreign database": func(ctx context.Context, w *world) outcome {
		return w.rawCommit(ctx, set(strings.Replace(w.root(), "(default)", "other", 1)+"/c/a", nil))
	},
	"descending names": func(ctx context.Context, w *world) outcome {
		return w.query(ctx, queryOf(w, &pb.StructuredQuery{OrderBy: []*pb.StructuredQuery_Order{order("__name__", pb.StructuredQuery_DESCENDING)}}))
	},
	"empty projection": func(ctx context.Context, w *world) outcome {
		w.rawCommit(ctx, set(w.root()+"/c/a", map[string]*pb.Value{"v": integer(1)}))
		return w.query(ctx, queryOf(w, &pb.StructuredQuery{Select: &pb.StructuredQuery_Projection{}}))
	},
	"disjunctions written twice": func(ctx context.Context, w *world) outcome {
		var same []*pb.StructuredQuery_Filter
		for range 31 {
			same = append(same, compare("v", pb.StructuredQuery_FieldFilter_EQUAL, integer(1)))
		}
		return w.query(ctx, queryOf(w, &pb.StructuredQuery{Where: composite(pb.StructuredQuery_CompositeFilter_OR, same)}))
	},
	"six aggregations": func(ctx context.Context, w *world) outcome {
		return w.aggregate(ctx, countsNamed(w, "a", "b", "c", "d", "e", "f"))
	},
	"four underscores as an alias": func(ctx context.Context, w *world) outcome {
		return w.aggregate(ctx, countsNamed(w, "____"))
	},
	"BSON values": func(ctx context.Context, w *world) outcome {
		return w.rawCommit(ctx, set(w.root()+"/c/a", map[string]*pb.Value{"v": mapping(map[string]*pb.Value{"__min__": null()})}))
	},
	"find_nearest": func(ctx context.Context, w *world) outcome {
		return w.query(ctx, queryOf(w, &pb.StructuredQuery{FindNearest: &pb.StructuredQuery_FindNearest{
			VectorField: fieldRef("v"), QueryVector: vector(1), DistanceMeasure: pb.StructuredQuery_FindNearest_EUCLIDEAN, Limit: wrapperspb.Int32(1),
		}}))
	},
}

// E-PR-03: each deliberate difference still exists.
func TestDeliberate_DifferencesExist(t *testing.T) {
	ws := connectWorlds(t)
	for _, row := range Deliberate {
		t.Run(row.Name, func(t *testing.T) {
			probe, ok := probes[row.Name]
			if !ok {
				t.Fatal("the row has no probe")
			}
			ctx := stepContext(t)
			officialWorld, embeddedWorld := ws.fresh()
			want, got := probe(ctx, officialWorld), probe(ctx, embeddedWorld)
			if want.code != row.Official || got.code != row.Embedded || got.equal(want) {
				t.Errorf("official: %s\nembedded: %s\nthe row says %s and %s", want, got, row.Official, row.Embedded)
			}
		})
	}
	if len(probes) != len(Deliberate) {
		t.Errorf("%d probes for %d rows", len(probes), len(Deliberate))
	}
}
