package filter

import (
	"fmt"
	"strings"
)

// MaxLength is the longest filter the service accepts, in bytes.
const MaxLength = 256

// Parse reads a filter. An empty or blank text passes every message.
func Parse(text string) (Filter, error) {
	if len(text) > MaxLength {
		return Filter{}, fmt.Errorf("filter is %d bytes long; at most %d are allowed", len(text), MaxLength)
	}
	if strings.TrimSpace(text) == "" {
		return Filter{}, nil
	}
	tokens, err := scan(text)
	if err != nil {
		return Filter{}, err
	}
	p := parser{tokens: tokens}
	root, err := p.expression()
	if err != nil {
		return Filter{}, err
	}
	if rest := p.peek(); rest.kind != tokenEnd {
		return Filter{}, rest.unexpected("AND, OR or the end")
	}
	return Filter{root: root}, nil
}

type parser struct {
	tokens []token
	at     int
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokenEnd {
		p.at++
	}
	return t
}

func (p *parser) accept(symbol string) bool {
	if p.peek().is(symbol) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(symbol string) error {
	if !p.accept(symbol) {
		return p.peek().unexpected(symbol)
	}
	return nil
}

func (p *parser) expression() (node, error) {
	first, err := p.term()
	if err != nil {
		return nil, err
	}
	operator := p.peek().text
	if p.peek().kind != tokenWord || operator != "AND" && operator != "OR" {
		return first, nil
	}
	terms := []node{first}
	for p.accept(operator) {
		term, err := p.term()
		if err != nil {
			return nil, err
		}
		terms = append(terms, term)
	}
	if t := p.peek(); t.is("AND") || t.is("OR") {
		return nil, fmt.Errorf("filter: %s after %s at byte %d; put parentheses around one of them", t.text, operator, t.at)
	}
	if operator == "AND" {
		return all(terms), nil
	}
	return anyOf(terms), nil
}

func (p *parser) term() (node, error) {
	if p.accept("NOT") || p.accept("-") {
		term, err := p.operand()
		if err != nil {
			return nil, err
		}
		return not{term}, nil
	}
	return p.operand()
}

func (p *parser) operand() (node, error) {
	switch {
	case p.accept("("):
		inner, err := p.expression()
		if err != nil {
			return nil, err
		}
		return inner, p.expect(")")
	case p.accept("hasPrefix"):
		return p.prefixCall()
	case p.accept("attributes"):
		return p.comparison()
	}
	return nil, p.peek().unexpected("attributes, hasPrefix, NOT or (")
}

func (p *parser) comparison() (node, error) {
	if p.accept(":") {
		key, err := p.key()
		return has{key}, err
	}
	key, err := p.member()
	if err != nil {
		return nil, err
	}
	operator := p.next()
	if !operator.is("=") && !operator.is("!=") {
		return nil, operator.unexpected("= or !=")
	}
	value, err := p.value()
	if err != nil {
		return nil, err
	}
	if operator.is("!=") {
		return not{equals{key, value}}, nil
	}
	return equals{key, value}, nil
}

func (p *parser) prefixCall() (node, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	if err := p.expect("attributes"); err != nil {
		return nil, err
	}
	key, err := p.member()
	if err != nil {
		return nil, err
	}
	if err := p.expect(","); err != nil {
		return nil, err
	}
	prefix, err := p.value()
	if err != nil {
		return nil, err
	}
	return hasPrefix{key, prefix}, p.expect(")")
}

func (p *parser) member() (string, error) {
	if err := p.expect("."); err != nil {
		return "", err
	}
	return p.key()
}

func (p *parser) key() (string, error) {
	t := p.next()
	if t.kind != tokenWord && t.kind != tokenString {
		return "", t.unexpected("an attribute key")
	}
	return t.text, nil
}

func (p *parser) value() (string, error) {
	t := p.next()
	if t.kind != tokenString {
		return "", t.unexpected("a quoted string")
	}
	return t.text, nil
}
