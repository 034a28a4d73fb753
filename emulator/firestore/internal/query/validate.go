package query

import (
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

const (
	maxInequalityFields = 10
	maxConditions       = 100 // filters, sort orders and the parent together
)

// validate checks the rules that concern filters and orders together.
func validate(scope Scope, parent value.Name, filter *node, explicit []Order) error {
	if err := validateConditionCount(parent, filter, explicit); err != nil {
		return err
	}
	if scope.AllDescendants && parent.IsDocument() && usesFields(filter, explicit) {
		return invalidf("collection group queries are only allowed at the root parent")
	}
	if scope.CollectionID == "" {
		if err := validateEveryCollection(filter, explicit); err != nil {
			return err
		}
	}
	if scope.AllDescendants && parent.IsDocument() && slices.ContainsFunc(explicit, Order.isDescendingName) {
		return status.Error(codes.FailedPrecondition,
			"collection group queries are only allowed if they're at the root or they're an ascending primary key scan")
	}
	if err := validateOperators(filter); err != nil {
		return err
	}
	if err := validateInequalities(filter, explicit); err != nil {
		return err
	}
	if n := filter.countDisjunctions(); n > maxDisjunctions {
		return invalidf("Too many disjunctions after normalization. Result had %d disjunctions which is more than the maximum of %d", n, maxDisjunctions)
	}
	return validateArrayContains(filter)
}

func validateConditionCount(parent value.Name, filter *node, explicit []Order) error {
	filters := 0
	filter.leaves(func(*leaf) { filters++ })
	ancestors, ancestorText := 0, "no ancestor filter"
	if parent.IsDocument() {
		ancestors, ancestorText = 1, "an ancestor filter"
	}
	if filters+len(explicit)+ancestors > maxConditions {
		return invalidf("The query may not have more than %d filters + sort orders + ancestor total. Currently there are %d filters, %d sort orders, and %s.",
			maxConditions, filters, len(explicit), ancestorText)
	}
	return nil
}

// usesFields reports whether the query filters or orders by anything but the
// document's name.
func usesFields(filter *node, explicit []Order) bool {
	uses := slices.ContainsFunc(explicit, func(o Order) bool { return !o.Field.IsName() })
	filter.leaves(func(l *leaf) { uses = uses || !l.field.IsName() })
	return uses
}

// validateEveryCollection checks a query without a collection id ("kind"). It can
// use names only, and only in ascending order. Clients implement limitToLast by
// reversing the order, so this refuses that as well.
func validateEveryCollection(filter *node, explicit []Order) error {
	var err error
	filter.leaves(func(l *leaf) {
		if err == nil && !l.field.IsName() {
			err = invalidf("kind is required for filter: %s", l.field)
		}
	})
	for _, o := range explicit {
		if err == nil && (!o.Field.IsName() || o.Descending) {
			err = invalidf("kind is required for all orders except ascending %s", value.NameField)
		}
	}
	return err
}

func validateOperators(filter *node) error {
	negations, hasNotIn, hasIn := 0, false, filter.hasOr()
	filter.leaves(func(l *leaf) {
		if l.op.isNegation() {
			negations++
		}
		hasNotIn = hasNotIn || l.op == opNotIn
		hasIn = hasIn || l.op == opIn || l.op == opArrayContainsAny
	})
	switch {
	case negations > 1:
		return invalidf("Only a single 'NOT_EQUAL', 'NOT_IN', 'IS_NOT_NAN', or 'IS_NOT_NULL' filter allowed per query.")
	case hasNotIn && hasIn:
		return invalidf("'NOT_IN' cannot be used in the same query with 'IN', 'ARRAY_CONTAINS_ANY' or 'OR'.")
	}
	return nil
}

func (n *node) hasOr() bool {
	return n != nil && (n.isOr || slices.ContainsFunc(n.children, (*node).hasOr))
}

func validateInequalities(filter *node, explicit []Order) error {
	fields := inequalityFields(filter)
	if len(fields) > maxInequalityFields {
		names := make([]string, len(fields))
		for i, field := range fields {
			names[i] = field.String()
		}
		return invalidf("The query contains %d distinct inequality fields: [%s]. A query may not have more than %d distinct inequality fields.",
			len(fields), strings.Join(names, ", "), maxInequalityFields)
	}
	nameEquality := false
	filter.leaves(func(l *leaf) {
		nameEquality = nameEquality || l.field.IsName() && (l.op == opEqual || l.op == opIn)
	})
	if nameEquality && len(fields) > 0 && !slices.ContainsFunc(fields, value.FieldPath.IsName) {
		return invalidf("Equality on key is not allowed if there are other inequality fields and key does not appear in inequalities.")
	}
	if len(explicit) > 0 && explicit[len(explicit)-1].Field.IsName() {
		for _, field := range fields {
			if !slices.ContainsFunc(explicit, func(o Order) bool { return o.Field.Compare(field) == 0 }) {
				return errOrderAfterName()
			}
		}
	}
	return nil
}

// inequalityFields lists the fields of inequality filters, sorted, each once.
func inequalityFields(filter *node) []value.FieldPath {
	var fields []value.FieldPath
	filter.leaves(func(l *leaf) {
		if l.isInequality() {
			fields = append(fields, l.field)
		}
	})
	slices.SortFunc(fields, value.FieldPath.Compare)
	return slices.CompactFunc(fields, func(a, b value.FieldPath) bool { return a.Compare(b) == 0 })
}

func validateArrayContains(filter *node) error {
	for _, conjunction := range filter.conjunctions() {
		n := 0
		for _, l := range conjunction {
			if l.op.isArrayContains() {
				n++
			}
		}
		if n > 1 {
			return invalidf("A maximum of 1 'ARRAY_CONTAINS' filter is allowed per disjunction.")
		}
	}
	return nil
}
