package query

import (
	"slices"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// Plan is a compiled query.
type Plan struct {
	scope      Scope
	filter     *node
	orders     []Order // full order, the document's name last
	required   []value.FieldPath
	start, end *cursor
	offset     int
	limit      int
	limited    bool
	projection []value.FieldPath // nil: the whole document
}

// Compile validates and compiles a query under parent, which is the root of a
// database or the name of a document. The query must not be changed afterwards.
func Compile(parent string, q *pb.StructuredQuery) (*Plan, error) {
	if q.GetFindNearest() != nil {
		return nil, unimplemented("find_nearest")
	}
	scope, err := compileScope(parent, q.GetFrom())
	if err != nil {
		return nil, err
	}
	p := &Plan{scope: scope, offset: int(q.GetOffset()), limit: int(q.GetLimit().GetValue()), limited: q.GetLimit() != nil}
	switch {
	case p.offset < 0:
		return nil, invalidf("offset is negative")
	case p.limit < 0:
		return nil, invalidf("limit is negative")
	}
	if p.projection, err = compileProjection(q.GetSelect()); err != nil {
		return nil, err
	}
	return p, p.compileConditions(q)
}

// compileConditions compiles filters, orders and cursors.
func (p *Plan) compileConditions(q *pb.StructuredQuery) error {
	parent, err := value.ParseParent(p.scope.Parent)
	if err != nil {
		return err
	}
	database := parent.DatabaseName()
	if q.GetWhere() != nil {
		if p.filter, err = compileFilter(database, q.GetWhere()); err != nil {
			return err
		}
	}
	explicit, err := compileOrders(q.GetOrderBy())
	if err != nil {
		return err
	}
	if err := validate(p.scope, parent, p.filter, explicit); err != nil {
		return err
	}
	p.orders = completeOrder(explicit, inequalityFields(p.filter))
	for _, o := range p.orders {
		if !o.Field.IsName() {
			p.required = append(p.required, o.Field)
		}
	}
	if p.start, err = compileCursor(database, q.GetStartAt(), explicit); err != nil {
		return err
	}
	p.end, err = compileCursor(database, q.GetEndAt(), explicit)
	return err
}

// sortByToo makes the query run like on an index that ends in the given fields. They
// are sorted by name, come just before the document's name and have its direction.
// Documents without one of them do not match.
func (p *Plan) sortByToo(fields []value.FieldPath) {
	name := p.orders[len(p.orders)-1]
	orders := p.orders[:len(p.orders)-1]
	fields = slices.SortedFunc(slices.Values(fields), value.FieldPath.Compare)
	for _, field := range fields {
		if !slices.ContainsFunc(orders, func(o Order) bool { return o.Field.Compare(field) == 0 }) {
			orders = append(orders, Order{Field: field, Descending: name.Descending})
			p.required = append(p.required, field)
		}
	}
	p.orders = append(orders, name)
}

func compileProjection(s *pb.StructuredQuery_Projection) ([]value.FieldPath, error) {
	if len(s.GetFields()) == 0 {
		return nil, nil // by the protocol, an empty projection means every field
	}
	paths := make([]value.FieldPath, 0, len(s.GetFields()))
	for _, f := range s.GetFields() {
		path, err := value.ParseFieldPath(f.GetFieldPath())
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// Scope is the collections that the query reads.
func (p *Plan) Scope() Scope { return p.scope }

// Orders is the full sort order, including the implicit keys.
func (p *Plan) Orders() []Order { return slices.Clone(p.orders) }

// Offset is how many matching documents to skip.
func (p *Plan) Offset() int { return p.offset }

// Limit is how many documents to return at most after the offset; limited is false
// if the query has no limit. A limit of 0 returns nothing.
func (p *Plan) Limit() (n int, limited bool) { return p.limit, p.limited }

// Disjuncts is the filter in disjunctive normal form. A query without a filter has
// one empty Disjunct.
func (p *Plan) Disjuncts() []Disjunct {
	conjunctions := p.filter.conjunctions()
	disjuncts := make([]Disjunct, len(conjunctions))
	for i, leaves := range conjunctions {
		disjuncts[i] = newDisjunct(leaves)
	}
	return disjuncts
}

// Matches reports whether the document is a result before offset and limit: it is in
// scope, has every ordered field, passes the filters and lies between the cursors.
func (p *Plan) Matches(doc *pb.Document) bool {
	return p.scope.Contains(doc.GetName()) && p.MatchesFields(doc)
}

// MatchesFields is Matches for a document that is in scope.
func (p *Plan) MatchesFields(doc *pb.Document) bool {
	for _, field := range p.required {
		if value.Get(doc.GetFields(), field) == nil {
			return false
		}
	}
	if !p.filter.matches(doc) {
		return false
	}
	if p.start != nil && !p.start.isPast(doc, p.orders) {
		return false
	}
	return p.end == nil || !p.end.isPast(doc, p.orders)
}

// Compare compares two matching documents in result order. It is 0 only for documents
// with the same name.
func (p *Plan) Compare(a, b *pb.Document) int {
	for _, o := range p.orders {
		if c := o.compare(a, b); c != 0 {
			return c
		}
	}
	return 0
}

// Sort sorts matching documents into result order, in place.
func (p *Plan) Sort(docs []*pb.Document) { slices.SortFunc(docs, p.Compare) }

// Page applies offset and limit to all matching documents in result order.
func (p *Plan) Page(docs []*pb.Document) []*pb.Document {
	docs = docs[min(p.offset, len(docs)):]
	if p.limited {
		docs = docs[:min(p.limit, len(docs))]
	}
	return docs
}

// Project returns the document, or a copy with only the fields that the query
// selects. doc is not changed.
func (p *Plan) Project(doc *pb.Document) *pb.Document {
	if p.projection == nil {
		return doc
	}
	return &pb.Document{
		Name:       doc.GetName(),
		Fields:     value.Project(doc.GetFields(), p.projection),
		CreateTime: doc.GetCreateTime(),
		UpdateTime: doc.GetUpdateTime(),
	}
}
