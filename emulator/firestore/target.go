package firestoreemu

import (
	"maps"
	"slices"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/query"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// target is what a Listen stream follows: the results of a query, or documents by
// name.
type target struct {
	id    int32
	plan  *query.Plan             // nil: documents
	names []string                // of a documents target
	shown map[string]*pb.Document // what the client has
}

func (l *listener) newTarget(id int32, t *pb.Target) (*target, error) {
	added := &target{id: id, shown: map[string]*pb.Document{}}
	switch kind := t.GetTargetType().(type) {
	case *pb.Target_Documents:
		for _, name := range kind.Documents.GetDocuments() {
			if err := l.db.documentName(name); err != nil {
				return nil, err
			}
			if !slices.Contains(added.names, name) {
				added.names = append(added.names, name)
			}
		}
		return added, nil
	case *pb.Target_Query:
		var err error
		added.plan, err = compile(kind.Query)
		if err != nil {
			return nil, err
		}
		return added, l.server.checkIndex(added.plan, nil)
	}
	return nil, invalidf("a target must be a query or documents")
}

// refresh brings the target to a snapshot by comparing everything.
func (t *target) refresh(to *store.Snapshot) []*pb.ListenResponse {
	matching := map[string]*pb.Document{}
	var responses []*pb.ListenResponse
	if t.plan == nil {
		for _, name := range t.names {
			if doc := to.Get(name); doc != nil {
				matching[name] = doc
			} else if t.shown[name] == nil {
				responses = append(responses, t.deleted(name, to.Time))
			}
		}
	} else {
		for _, doc := range evaluate(t.plan, to, false) {
			matching[doc.GetName()] = doc
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(t.shown), value.CompareNameStrings) {
		if matching[name] == nil {
			responses = append(responses, t.gone(name, to.Get(name), to.Time))
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(matching), value.CompareNameStrings) {
		if doc := matching[name]; doc != t.shown[name] {
			responses = append(responses, t.changed(doc))
		}
	}
	return responses
}

// follow brings the target to a snapshot by applying the commits up to it.
func (t *target) follow(events []store.Event, to *store.Snapshot) []*pb.ListenResponse {
	newest := map[string]*pb.Document{} // documents that concern this target
	for _, e := range events {
		for _, c := range e.Changes {
			_, concerned := newest[c.Name]
			if concerned || t.shown[c.Name] != nil || t.matches(c.Name, c.After) || t.matches(c.Name, c.Before) {
				newest[c.Name] = c.After
			}
		}
	}
	if len(newest) == 0 {
		return nil
	}
	if t.plan != nil && windowed(t.plan) {
		return t.refresh(to)
	}
	var responses []*pb.ListenResponse
	for _, name := range slices.SortedFunc(maps.Keys(newest), value.CompareNameStrings) {
		doc := newest[name]
		switch {
		case t.matches(name, doc) && doc != t.shown[name]:
			responses = append(responses, t.changed(doc))
		case !t.matches(name, doc) && t.shown[name] != nil:
			responses = append(responses, t.gone(name, doc, to.Time))
		}
	}
	return responses
}

func (t *target) matches(name string, doc *pb.Document) bool {
	switch {
	case doc == nil:
		return false
	case t.plan == nil:
		return slices.Contains(t.names, name)
	}
	return t.plan.Matches(doc)
}

// changed is the message that a document has a new state.
func (t *target) changed(doc *pb.Document) *pb.ListenResponse {
	t.shown[doc.GetName()] = doc
	return &pb.ListenResponse{ResponseType: &pb.ListenResponse_DocumentChange{
		DocumentChange: &pb.DocumentChange{Document: t.projected(doc), TargetIds: []int32{t.id}},
	}}
}

// gone is the message that a document is no longer a result: it was deleted,
// changed so that it does not match, or displaced by others.
func (t *target) gone(name string, doc *pb.Document, at int64) *pb.ListenResponse {
	before := t.shown[name]
	delete(t.shown, name)
	switch {
	case doc == nil:
		return t.deleted(name, at)
	case doc == before:
		return &pb.ListenResponse{ResponseType: &pb.ListenResponse_DocumentRemove{
			DocumentRemove: &pb.DocumentRemove{Document: name, RemovedTargetIds: []int32{t.id}, ReadTime: store.Timestamp(at)},
		}}
	}
	return &pb.ListenResponse{ResponseType: &pb.ListenResponse_DocumentChange{
		DocumentChange: &pb.DocumentChange{Document: t.projected(doc), RemovedTargetIds: []int32{t.id}},
	}}
}

func (t *target) projected(doc *pb.Document) *pb.Document {
	if t.plan == nil {
		return doc
	}
	return t.plan.Project(doc)
}

func (t *target) deleted(name string, at int64) *pb.ListenResponse {
	return &pb.ListenResponse{ResponseType: &pb.ListenResponse_DocumentDelete{
		DocumentDelete: &pb.DocumentDelete{Document: name, RemovedTargetIds: []int32{t.id}, ReadTime: store.Timestamp(at)},
	}}
}

// filter tells a resumed client how many documents it should have. It does not
// name the unchanged ones, as Target.expected_count requests: the protocol makes
// that optional, and a resumed target gets every removal anyway.
func (t *target) filter() *pb.ListenResponse {
	return &pb.ListenResponse{ResponseType: &pb.ListenResponse_Filter{
		Filter: &pb.ExistenceFilter{TargetId: t.id, Count: int32(len(t.shown))},
	}}
}
