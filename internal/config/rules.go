package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// rule restricts a setting's value beyond its type.
type rule struct {
	accepts string // in words: "more than 0"
	ends    bool   // accepts has an upper bound
	// violated says what is wrong with a value and what to give instead; empty if
	// nothing is wrong. Nil accepts every value.
	violated func(reflect.Value) string
	choices  []string // all of them, if they are listed
}

// parseRule parses the tag check of a flag. It is one of:
//
//	min A, over A, max B     bounds of a number or a duration, without the commas
//	address                  host:port to connect to
//	listen                   host:port to listen on, port 0 for a free one
//	listen on loopback       the same, reachable from this machine only
//	listen or off            as listen, or "" or off to not listen
//	id                       an entity id
func parseRule(text string) (rule, error) {
	switch text {
	case "":
		return rule{}, nil
	case "address":
		return textual("host:port", func(v string) error { return checkAddress(v, 1) }), nil
	case "listen":
		return textual("host:port, port 0 for a free one", func(v string) error { return checkAddress(v, 0) }), nil
	case "listen on loopback":
		return textual("host:port of this machine, port 0 for a free one", CheckLoopback), nil
	case "listen or off":
		return textual("host:port, port 0 for a free one, or off", func(v string) error {
			if v == "off" {
				return nil
			}
			return checkAddress(v, 0)
		}), nil
	case "id":
		return textual("an id of 1 to 128 bytes", domain.CheckID), nil
	}
	return parseBounds(text)
}

// textual is a rule for strings. It accepts the empty string, which stands for no value.
func textual(accepts string, check func(string) error) rule {
	return rule{accepts: accepts, violated: func(v reflect.Value) string {
		if v.String() == "" {
			return ""
		}
		if err := check(v.String()); err != nil {
			return err.Error()
		}
		return ""
	}}
}

func checkAddress(v string, lowest int) error {
	fix := fmt.Errorf("is not an address; give host:port with a port from %d to 65535, for example 127.0.0.1:8080", lowest)
	_, port, err := net.SplitHostPort(v)
	if err != nil {
		return fix
	}
	if n, err := strconv.Atoi(port); err != nil || n < lowest || n > 65535 {
		return fix
	}
	return nil
}

// CheckLoopback refuses an address that other machines reach.
func CheckLoopback(v string) error {
	if err := checkAddress(v, 0); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(v) // which checkAddress has split
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("is not a loopback address, and the server asks for no credentials; give host:port such as 127.0.0.1:8080")
	}
	return nil
}

// oneOf accepts the values of an enumeration.
func oneOf(values []string) rule {
	accepts := OneOf(values)
	return rule{accepts: accepts, choices: values, violated: func(v reflect.Value) string {
		if slices.Contains(values, fmt.Sprint(v.Interface())) {
			return ""
		}
		return "is not a valid choice; give " + accepts
	}}
}

// OneOf lists values to choose from: "A, B or C". An empty one is left out: nobody has to
// type it.
func OneOf[T any](values []T) string {
	var texts []string
	for _, v := range values {
		if text := fmt.Sprint(v); text != "" {
			texts = append(texts, text)
		}
	}
	list := strings.Join(texts, ", ")
	if i := strings.LastIndex(list, ", "); i >= 0 {
		list = list[:i] + " or " + list[i+2:]
	}
	return list
}

// bound is one end of a range.
type bound struct {
	text    string // in words: "1 or more"
	allowed func(order int) bool
	limit   string
}

// parseBounds parses pairs of a word and a limit: "over 0 max 100".
func parseBounds(text string) (rule, error) {
	fields := strings.Fields(text)
	if len(fields)%2 != 0 {
		return rule{}, fmt.Errorf("check %q is not a rule", text)
	}
	var bounds []bound
	var parts []string
	ends := false
	for pair := range slices.Chunk(fields, 2) {
		b := bound{limit: pair[1]}
		switch pair[0] {
		case "min":
			b.text, b.allowed = pair[1]+" or more", func(order int) bool { return order >= 0 }
		case "over":
			b.text, b.allowed = "more than "+pair[1], func(order int) bool { return order > 0 }
		case "max":
			b.text, b.allowed, ends = "at most "+pair[1], func(order int) bool { return order <= 0 }, true
		default:
			return rule{}, fmt.Errorf("check %q is not a rule", text)
		}
		if _, err := time.ParseDuration(b.limit); err != nil {
			if _, err := strconv.ParseFloat(b.limit, 64); err != nil {
				return rule{}, fmt.Errorf("check %q: %q is neither a number nor a duration", text, b.limit)
			}
		}
		bounds = append(bounds, b)
		parts = append(parts, b.text)
	}
	accepts := strings.Join(parts, ", ")
	return rule{accepts: accepts, ends: ends, violated: func(v reflect.Value) string {
		for _, b := range bounds {
			order, err := compare(v, b.limit)
			// Not "if order is disallowed": NaN compares as neither.
			if err != nil || !b.allowed(order) {
				return "is out of range; give " + accepts
			}
		}
		return ""
	}}, nil
}

// compare orders a value and a limit of the same kind.
func compare(v reflect.Value, limit string) (int, error) {
	if v.Type() == durationType {
		d, err := time.ParseDuration(limit)
		return cmp.Compare(v.Int(), int64(d)), err
	}
	f, err := strconv.ParseFloat(limit, 64)
	switch {
	case err != nil:
		return 0, err
	case v.CanInt():
		return cmp.Compare(float64(v.Int()), f), nil
	case v.CanUint():
		return cmp.Compare(float64(v.Uint()), f), nil
	case v.CanFloat():
		if v.Float() != v.Float() {
			return 0, errors.New("not a number")
		}
		return cmp.Compare(v.Float(), f), nil
	}
	return 0, fmt.Errorf("values of type %s have no order", v.Type())
}
