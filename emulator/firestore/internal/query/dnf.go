package query

import "github.com/dronefleet/dronefleet/emulator/firestore/internal/value"

const maxDisjunctions = 30

// Disjunct is one conjunction of the filter's disjunctive normal form, given by the
// fields it compares. A list (in, array-contains-any) counts as one comparison. The
// fields of inequalities are among the plan's Orders instead.
type Disjunct struct {
	// Equalities are compared with ==, in, IS_NULL or IS_NAN.
	Equalities []value.FieldPath
	// ArrayContains are compared with array-contains or array-contains-any.
	ArrayContains []value.FieldPath
}

// countDisjunctions returns how many conjunctions the filter expands to if lists are
// expanded too.
func (n *node) countDisjunctions() int {
	const enough = 1 << 20 // far above the limit, and products do not overflow
	switch {
	case n == nil:
		return 1
	case n.leaf != nil:
		return max(1, n.leaf.alternatives)
	case n.isOr:
		sum := 0
		for _, child := range n.children {
			sum = min(enough, sum+child.countDisjunctions())
		}
		return sum
	default:
		product := 1
		for _, child := range n.children {
			product = min(enough, product*child.countDisjunctions())
		}
		return product
	}
}

// conjunctions expands the ORs but not the lists. Each element is the leaves of one
// conjunction. Call it only if countDisjunctions is small.
func (n *node) conjunctions() [][]*leaf {
	switch {
	case n == nil:
		return [][]*leaf{nil}
	case n.leaf != nil:
		return [][]*leaf{{n.leaf}}
	case n.isOr:
		var all [][]*leaf
		for _, child := range n.children {
			all = append(all, child.conjunctions()...)
		}
		return all
	default:
		all := [][]*leaf{nil}
		for _, child := range n.children {
			all = crossProduct(all, child.conjunctions())
		}
		return all
	}
}

func crossProduct(left, right [][]*leaf) [][]*leaf {
	product := make([][]*leaf, 0, len(left)*len(right))
	for _, l := range left {
		for _, r := range right {
			conjunction := make([]*leaf, 0, len(l)+len(r))
			product = append(product, append(append(conjunction, l...), r...))
		}
	}
	return product
}

func newDisjunct(leaves []*leaf) Disjunct {
	var d Disjunct
	for _, l := range leaves {
		switch {
		case l.op.isArrayContains():
			d.ArrayContains = append(d.ArrayContains, l.field)
		case !l.isInequality():
			d.Equalities = append(d.Equalities, l.field)
		}
	}
	return d
}
