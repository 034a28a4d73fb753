package firestoreemu

import (
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/locks"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// write is one parsed and validated write of a request.
type write struct {
	name         string
	parsed       value.Name
	delete       bool
	update       bool // sets fields; a bare transform does not
	fields       map[string]*pb.Value
	mask         []value.FieldPath // nil: replace the whole document
	transforms   []*pb.DocumentTransform_FieldTransform
	paths        []value.FieldPath // of the transforms
	precondition *pb.Precondition
}

// parseWrites validates everything that does not depend on stored documents.
func (d *database) parseWrites(writes []*pb.Write) ([]write, error) {
	parsed := make([]write, len(writes))
	transforms := map[string]int{} // by document, over all its writes (E-WR-07)
	existing := map[string]bool{}  // whether a document exists after the writes so far
	for i, w := range writes {
		var err error
		if parsed[i], err = d.parseWrite(w); err != nil {
			return nil, err
		}
		if err := parsed[i].follows(existing); err != nil {
			return nil, err
		}
		existing[parsed[i].name] = !parsed[i].delete
		n := len(parsed[i].transforms)
		if n == 0 {
			continue
		}
		transforms[parsed[i].name] += n
		if err := value.CheckTransformCount(transforms[parsed[i].name]); err != nil {
			return nil, err
		}
	}
	return parsed, nil
}

// follows refuses a precondition that the earlier writes of the commit make
// impossible, whatever is stored (E-WR-03).
func (p *write) follows(existing map[string]bool) error {
	wanted, ok := p.precondition.GetConditionType().(*pb.Precondition_Exists)
	exists, written := existing[p.name]
	switch {
	case !ok || !written || wanted.Exists == exists:
		return nil
	case exists:
		return invalidf("cannot create document %s: an earlier write of this commit already writes it", p.name)
	}
	return invalidf("cannot update or delete document %s: an earlier write of this commit deletes it", p.name)
}

func (d *database) parseWrite(w *pb.Write) (write, error) {
	p := write{precondition: w.GetCurrentDocument(), transforms: w.GetUpdateTransforms()}
	switch op := w.GetOperation().(type) {
	case *pb.Write_Update:
		p.name, p.update, p.fields = op.Update.GetName(), true, op.Update.GetFields()
	case *pb.Write_Delete:
		p.name, p.delete = op.Delete, true
		if w.GetUpdateMask() != nil || len(p.transforms) > 0 {
			return p, invalidf("a delete cannot have an update_mask or update_transforms")
		}
	case *pb.Write_Transform:
		p.name = op.Transform.GetDocument()
		if w.GetUpdateMask() != nil || len(p.transforms) > 0 {
			return p, invalidf("a transform cannot have an update_mask or update_transforms")
		}
		p.transforms = op.Transform.GetFieldTransforms()
		if len(p.transforms) == 0 {
			return p, invalidf("a transform must have at least one field transform")
		}
	default:
		return p, invalidf("a write must have an operation: update, delete or transform")
	}
	if err := d.documentName(p.name); err != nil {
		return p, err
	}
	p.parsed, _ = value.ParseName(p.name)
	if err := p.parseFields(w.GetUpdateMask()); err != nil {
		return p, err
	}
	if at := p.precondition.GetUpdateTime(); at != nil {
		if err := at.CheckValid(); err != nil {
			return p, invalidf("invalid current_document.update_time: %v", err)
		}
		if at.GetNanos()%int32(time.Microsecond) != 0 {
			return p, errPrecision
		}
	}
	return p, nil
}

func (p *write) parseFields(mask *pb.DocumentMask) error {
	if p.update {
		if err := value.ValidateFields(p.fields); err != nil {
			return err
		}
		p.fields = value.NormalizeFields(p.fields)
	}
	var err error
	if p.mask, err = value.ParseMask(mask); err != nil {
		return err
	}
	if err := value.ValidateTransforms(p.transforms); err != nil {
		return err
	}
	for _, t := range p.transforms {
		path, err := value.ParseWritePath(t.GetFieldPath())
		if err != nil {
			return err
		}
		p.paths = append(p.paths, path)
	}
	return nil
}

// draft is a document while the writes of one commit are applied to it.
type draft struct {
	name      value.Name
	key       string       // the name as one string
	stored    *pb.Document // as it is in the store, nil if missing
	exists    bool
	fields    map[string]*pb.Value
	touched   bool // an earlier write of this commit was applied
	recreated bool
	changed   bool         // the commit creates a new version (E-WR-04)
	next      *pb.Document // the new version, nil for a tombstone
}

// outcome is the effect of a list of writes on the newest documents. It is computed
// under the lock table's mutex and must not change what it reads.
type outcome struct {
	drafts  []*draft // in order of first write
	results []result
}

// result is the content of one write's WriteResult.
type result struct {
	draft      *draft
	deleted    bool
	transforms []*pb.Value
}

// apply computes the outcome of writes. Each sees the effects of the earlier ones.
func (d *database) apply(writes []write, requestTime time.Time) (*outcome, error) {
	o := &outcome{results: make([]result, 0, len(writes))}
	byName := make(map[string]*draft, len(writes))
	for i := range writes {
		w := &writes[i]
		doc := byName[w.name]
		if doc == nil {
			stored := d.store.Newest(w.name)
			doc = &draft{name: w.parsed, key: w.name, stored: stored, exists: stored != nil, fields: stored.GetFields()}
			byName[w.name] = doc
			o.drafts = append(o.drafts, doc)
		}
		if err := doc.check(w); err != nil {
			return nil, err
		}
		r, err := doc.write(w, requestTime)
		if err != nil {
			return nil, err
		}
		o.results = append(o.results, r)
	}
	for _, doc := range o.drafts {
		doc.changed = doc.differs()
		if !doc.exists {
			continue
		}
		if err := value.ValidateSize(doc.name, doc.fields); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// check checks the write's precondition (E-WR-03).
func (doc *draft) check(w *write) error {
	switch c := w.precondition.GetConditionType().(type) {
	case *pb.Precondition_Exists:
		switch {
		case c.Exists && !doc.exists:
			return status.Errorf(codes.NotFound, "No document to update: %s", w.name)
		case !c.Exists && doc.exists:
			return status.Errorf(codes.AlreadyExists, "Document already exists: %s", w.name)
		}
	case *pb.Precondition_UpdateTime:
		var stored int64
		if doc.exists && !doc.touched {
			stored = store.Micros(doc.stored.GetUpdateTime())
		}
		if want := store.Micros(c.UpdateTime); want != stored || !doc.exists {
			return status.Errorf(codes.FailedPrecondition,
				"the stored version (%d) does not match the required base version (%d)", stored, want)
		}
	}
	return nil
}

// write applies one write to the draft.
func (doc *draft) write(w *write, requestTime time.Time) (result, error) {
	r := result{draft: doc, deleted: w.delete}
	doc.touched = true
	if w.delete {
		doc.exists, doc.fields = false, nil
		doc.recreated = doc.stored != nil
		return r, nil
	}
	if w.update {
		doc.fields = value.ApplyMask(doc.fields, w.fields, w.mask)
	}
	for i, t := range w.transforms {
		next, shown, err := value.ApplyTransform(value.Get(doc.fields, w.paths[i]), t, requestTime)
		if err != nil {
			return r, err
		}
		doc.fields = value.Set(doc.fields, w.paths[i], next)
		r.transforms = append(r.transforms, shown)
	}
	doc.exists = true
	return r, nil
}

// differs reports whether the document differs from the stored one. Writing deeply
// equal fields creates no version (E-WR-04).
func (doc *draft) differs() bool {
	switch {
	case !doc.exists:
		return doc.stored != nil
	case doc.stored == nil || doc.recreated:
		return true
	}
	return !value.EqualFields(doc.stored.GetFields(), doc.fields)
}

// lockChanges is the outcome for range locks. It includes the documents that do not
// change: a query that returned one holds it like a read of its name (E-TX-05).
func (o *outcome) lockChanges() []locks.Change {
	changes := make([]locks.Change, len(o.drafts))
	for i, doc := range o.drafts {
		changes[i] = locks.Change{Name: doc.key, Before: doc.stored, After: doc.stored}
		switch {
		case !doc.changed:
		case doc.exists:
			doc.next = &pb.Document{Name: doc.key, Fields: doc.fields}
			changes[i].After = doc.next
		default:
			changes[i].After = nil
		}
	}
	return changes
}

// untouched is the outcome of a commit that will fail, for range locks.
func (d *database) untouched(names []string) []locks.Change {
	changes := make([]locks.Change, len(names))
	for i, name := range names {
		stored := d.store.Newest(name)
		changes[i] = locks.Change{Name: name, Before: stored, After: stored}
	}
	return changes
}

// storeChanges are the new versions to publish. Call it after lockChanges, which
// creates them.
func (o *outcome) storeChanges() []store.Change {
	published := make([]store.Change, 0, len(o.drafts))
	for _, doc := range o.drafts {
		if doc.changed {
			published = append(published, store.Change{Name: doc.key, Doc: doc.next, Recreated: doc.recreated})
		}
	}
	return published
}

// writeResults returns the result of each write of a commit at the given time.
func (o *outcome) writeResults(at int64) []*pb.WriteResult {
	stamp := store.Timestamp(at)
	results := make([]*pb.WriteResult, len(o.results))
	for i, r := range o.results {
		results[i] = &pb.WriteResult{TransformResults: r.transforms}
		switch {
		case r.deleted: // a deletion has no update time (E-WR-05)
		case r.draft.exists && !r.draft.changed:
			results[i].UpdateTime = r.draft.stored.GetUpdateTime()
		default:
			results[i].UpdateTime = stamp
		}
	}
	return results
}

// names lists the documents that the writes concern, each once.
func names(writes []write) []string {
	seen := make(map[string]bool, len(writes))
	list := make([]string, 0, len(writes))
	for i := range writes {
		if !seen[writes[i].name] {
			seen[writes[i].name] = true
			list = append(list, writes[i].name)
		}
	}
	return list
}
