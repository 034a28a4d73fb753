package query

import (
	"slices"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// operator is the comparison of a field filter or unary filter.
type operator int

const (
	opLess operator = iota
	opLessOrEqual
	opGreater
	opGreaterOrEqual
	opEqual
	opNotEqual
	opArrayContains
	opArrayContainsAny
	opIn
	opNotIn
	opIsNaN
	opIsNull
	opIsNotNaN
	opIsNotNull
)

// isRange reports whether op is <, <=, > or >=.
func (op operator) isRange() bool {
	switch op {
	case opLess, opLessOrEqual, opGreater, opGreaterOrEqual:
		return true
	default:
		return false
	}
}

// isNegation reports whether op is a negation, of which a query can have one.
func (op operator) isNegation() bool {
	switch op {
	case opNotEqual, opNotIn, opIsNotNaN, opIsNotNull:
		return true
	default:
		return false
	}
}

func (op operator) isArrayContains() bool {
	return op == opArrayContains || op == opArrayContainsAny
}

// node is a compiled filter: a leaf, or a conjunction or disjunction of children. A
// nil node matches everything.
type node struct {
	leaf     *leaf
	isOr     bool
	children []*node
}

// leaf is one comparison, with an operand or a list of operands.
type leaf struct {
	field   value.FieldPath
	op      operator
	operand *pb.Value
	list    []*pb.Value
	never   bool // matches nothing, because of a null or NaN operand

	alternatives int // disjunctions that a list expands to; 0 without a list
}

func (n *node) matches(doc *pb.Document) bool {
	switch {
	case n == nil:
		return true
	case n.leaf != nil:
		return n.leaf.matches(doc)
	case n.isOr:
		for _, child := range n.children {
			if child.matches(doc) {
				return true
			}
		}
		return false
	default:
		for _, child := range n.children {
			if !child.matches(doc) {
				return false
			}
		}
		return true
	}
}

// leaves calls visit for every comparison in the tree.
func (n *node) leaves(visit func(*leaf)) {
	if n == nil {
		return
	}
	if n.leaf != nil {
		visit(n.leaf)
	}
	for _, child := range n.children {
		child.leaves(visit)
	}
}

// isInequality reports whether the field becomes part of the implicit order. A
// comparison with null or NaN that matches nothing does not, but a not-in with null
// among other values, NaN included, does.
func (l *leaf) isInequality() bool {
	return (l.op.isNegation() || l.op.isRange()) && (!l.never || len(l.list) > 0)
}

func (l *leaf) matches(doc *pb.Document) bool {
	if l.never {
		return false
	}
	if l.field.IsName() {
		return l.matchesName(doc.GetName())
	}
	v := value.Get(doc.GetFields(), l.field)
	if v == nil {
		return false
	}
	kind := value.KindOf(v)
	switch l.op {
	case opIsNull:
		return kind == value.KindNull
	case opIsNaN:
		return kind == value.KindNaN
	case opIsNotNull:
		return kind != value.KindNull
	case opIsNotNaN:
		return kind != value.KindNaN && kind != value.KindNull
	case opNotEqual:
		return kind != value.KindNull && value.Compare(v, l.operand) != 0
	case opNotIn:
		return kind != value.KindNull && !contains(l.list, v)
	case opEqual:
		return value.Compare(v, l.operand) == 0
	case opIn:
		return contains(l.list, v)
	case opArrayContains:
		return kind == value.KindArray && contains(v.GetArrayValue().GetValues(), l.operand)
	case opArrayContainsAny:
		return kind == value.KindArray && slices.ContainsFunc(v.GetArrayValue().GetValues(), func(element *pb.Value) bool {
			return contains(l.list, element)
		})
	default: // a range: only values of the operand's type class
		return kind == value.KindOf(l.operand) && l.op.admits(value.Compare(v, l.operand))
	}
}

func (l *leaf) matchesName(name string) bool {
	switch l.op {
	case opIn:
		return l.listsName(name)
	case opNotIn:
		return !l.listsName(name)
	default:
		return l.op.admits(value.CompareNameStrings(name, l.operand.GetReferenceValue()))
	}
}

func (l *leaf) listsName(name string) bool {
	return slices.ContainsFunc(l.list, func(v *pb.Value) bool { return v.GetReferenceValue() == name })
}

// admits reports whether op accepts the result of comparing a field with the
// operand.
func (op operator) admits(c int) bool {
	switch op {
	case opLess:
		return c < 0
	case opLessOrEqual:
		return c <= 0
	case opGreater:
		return c > 0
	case opGreaterOrEqual:
		return c >= 0
	case opEqual:
		return c == 0
	case opNotEqual:
		return c != 0
	default:
		return false
	}
}

func contains(list []*pb.Value, v *pb.Value) bool {
	return slices.ContainsFunc(list, func(candidate *pb.Value) bool {
		return value.Compare(candidate, v) == 0
	})
}
