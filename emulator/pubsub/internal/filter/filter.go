package filter

import "strings"

// Filter decides by a message's attributes whether it is delivered. The zero value
// passes every message.
type Filter struct{ root node }

// Matches says whether a message with these attributes passes.
func (f Filter) Matches(attributes map[string]string) bool {
	return f.root == nil || f.root.matches(attributes)
}

// Everything says that the filter passes every message.
func (f Filter) Everything() bool { return f.root == nil }

type node interface {
	matches(attributes map[string]string) bool
}

type (
	has       struct{ key string }
	equals    struct{ key, value string }
	hasPrefix struct{ key, prefix string }
	not       struct{ term node }
	all       []node
	anyOf     []node
)

func (n has) matches(a map[string]string) bool { _, ok := a[n.key]; return ok }

func (n equals) matches(a map[string]string) bool { v, ok := a[n.key]; return ok && v == n.value }

func (n hasPrefix) matches(a map[string]string) bool {
	v, ok := a[n.key]
	return ok && strings.HasPrefix(v, n.prefix)
}

func (n not) matches(a map[string]string) bool { return !n.term.matches(a) }

func (n all) matches(a map[string]string) bool {
	for _, term := range n {
		if !term.matches(a) {
			return false
		}
	}
	return true
}

func (n anyOf) matches(a map[string]string) bool {
	for _, term := range n {
		if term.matches(a) {
			return true
		}
	}
	return false
}
