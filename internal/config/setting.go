package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// prefix begins the environment variable of every setting.
const prefix = "DRONEFLEET_"

// setting is a flag whose value may also come from the environment or a file.
type setting struct {
	name      string   // of the flag, and of the key in a file
	variables []string // of the environment, the first that is set counts
	flag      *kong.Flag
	parse     kong.Mapper // of kong's, behind the one that collects problems
	rule      rule
	secret    bool
}

// newSetting takes over what kong would do itself, and otherwise with the first
// problem only: reading the environment and checking enumerations.
func newSetting(flag *kong.Flag) (*setting, error) {
	s := &setting{name: flag.Name, flag: flag, parse: parser(flag), secret: flag.Tag.Has("secret")}
	s.variables = append([]string{variable(flag.Name)}, flag.Tag.Envs...)
	flag.Envs, flag.Tag.Envs = nil, nil
	var err error
	if flag.Enum != "" {
		s.rule = oneOf(flag.EnumSlice())
		flag.Enum, flag.Tag.Enum = "", ""
	} else if s.rule, err = parseRule(flag.Tag.Get("check")); err != nil {
		return nil, fmt.Errorf("--%s: %w", flag.Name, err)
	}
	if flag.Tag.Has("accepts") {
		s.rule.accepts = flag.Tag.Get("accepts")
	}
	return s, nil
}

var errTooShort = errors.New("shorter than a nanosecond")

// parser is kong's of a flag, but for what kong would read as something else: a
// duration too short to count as 0, and no path as the working directory.
func parser(flag *kong.Flag) kong.Mapper {
	parse := flag.Mapper
	switch {
	case flag.Target.Type() == durationType:
		return kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
			text := fmt.Sprint(ctx.Scan.Peek().Value)
			err := parse.Decode(ctx, target)
			if err == nil && target.Int() == 0 && strings.ContainsAny(text, "123456789") {
				return errTooShort
			}
			return err
		})
	case flag.Tag.Type == "path":
		return kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
			if ctx.Scan.Peek().Value == "" {
				return ctx.Scan.PopValueInto("path", target.Addr().Interface())
			}
			return parse.Decode(ctx, target)
		})
	}
	return parse
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// help is what --help says about a setting.
func (s *setting) help() string {
	text := strings.TrimSuffix(s.flag.Help, ".")
	return fmt.Sprintf("%s ($%s).", text, strings.Join(s.variables, ", $"))
}

// decode reads a value from outside the command line into the flag's target.
func (s *setting) decode(values []string) error {
	target := s.flag.Target
	target.SetZero()
	for _, v := range values {
		scan := kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: v})
		if err := s.parse.Decode(&kong.DecodeContext{Value: s.flag.Value, Scan: scan}, target); err != nil {
			return err
		}
	}
	return nil
}

// accepts says in a few words what the setting takes; empty for any text.
func (s *setting) accepts() string {
	t := s.flag.Target.Type()
	kind := ""
	switch {
	case t == durationType:
		kind = "a duration, such as 8s or 1m30s"
	case t == timeType:
		kind = "a time, such as 2026-11-21T12:00:30Z"
	case reflect.PointerTo(t).Implements(textUnmarshaler):
	case t.Kind() == reflect.Bool:
		kind = "true or false"
	case s.flag.Target.CanUint() && s.rule.accepts == "":
		kind = "a whole number, 0 or more"
	case isInteger(t.Kind()):
		kind = "a whole number"
	case t.Kind() == reflect.Float64:
		kind = "a number"
	case t.Kind() == reflect.Slice:
		kind = "a list"
	}
	if kind == "" || s.rule.accepts == "" {
		return kind + s.rule.accepts
	}
	return kind + ", " + s.rule.accepts
}

var (
	durationType    = reflect.TypeFor[time.Duration]()
	timeType        = reflect.TypeFor[time.Time]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func isInteger(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Uint64 }

// lacking says of a flag without a value what it takes. The token after it is
// none, or another flag, as a value that begins with - seems to be.
func (s *setting) lacking(after kong.Token) error {
	fix := s.accepts()
	if fix == "" || s.flag.IsSlice() {
		fix = s.flag.FormatPlaceHolder()
	}
	if after.IsEOL() {
		return fmt.Errorf("has no value; give %s", fix)
	}
	return fmt.Errorf("has no value before %[1]s; give %[2]s; write --%[3]s=%[1]s if that is the value", after, fix, s.name)
}

var digits = regexp.MustCompile("[0-9]+")

// exceeds reports whether a value is too much for the setting's type: with small
// numbers in place of its own it could be read.
func (s *setting) exceeds(value string) bool {
	target := reflect.New(s.flag.Target.Type()).Elem()
	scan := kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: digits.ReplaceAllString(value, "1")})
	return s.parse.Decode(&kong.DecodeContext{Value: s.flag.Value, Scan: scan}, target) == nil
}

// largest is the end that only the type has; empty where the rule sets one.
func (s *setting) largest() string {
	t := s.flag.Target.Type()
	switch {
	case s.rule.ends:
	case t == durationType:
		return fmt.Sprintf(", at most %dh", math.MaxInt64/time.Hour)
	case s.flag.Target.CanInt():
		return fmt.Sprintf(", at most %d", int64(math.MaxInt64)>>(64-t.Bits()))
	case s.flag.Target.CanUint():
		return fmt.Sprintf(", at most %d", uint64(math.MaxUint64)>>(64-t.Bits()))
	}
	return ""
}

// complaint says what is wrong with values that cannot be read.
func (s *setting) complaint(values []string, err error) string {
	given := s.shown(strings.Join(values, ","))
	fix := cmp.Or(s.accepts(), "another value")
	if errors.Is(err, errTooShort) {
		return fmt.Sprintf("%s is shorter than a nanosecond; give %s", given, fix)
	}
	text := s.accepts() == "" && reflect.PointerTo(s.flag.Target.Type()).Implements(textUnmarshaler)
	if text || s.flag.IsSlice() {
		if s.secret {
			return "the value cannot be read"
		}
		return fmt.Sprintf("%s cannot be read: %v", given, err)
	}
	if s.exceeds(values[0]) {
		return fmt.Sprintf("%s is out of range; give %s%s", given, fix, s.largest())
	}
	return fmt.Sprintf("%s cannot be read; give %s", given, fix)
}

// emptyEntry is what is wrong with a list that "," or a file's "" gives.
const emptyEntry = "an entry of the list is empty; delete it, or the comma that makes it"

// violation says what is wrong with the value of the flag's target; empty if
// nothing is.
func (s *setting) violation() string {
	for _, v := range s.each() {
		if s.flag.IsSlice() && v.Kind() == reflect.String && v.Len() == 0 {
			return emptyEntry
		}
		if s.rule.violated == nil {
			continue
		}
		if text := s.rule.violated(v); text != "" {
			return s.shown(fmt.Sprint(v.Interface())) + " " + text
		}
	}
	return ""
}

// each is the elements of a list, or the one value.
func (s *setting) each() []reflect.Value {
	if !s.flag.IsSlice() {
		return []reflect.Value{s.flag.Target}
	}
	var all []reflect.Value
	for i := range s.flag.Target.Len() {
		all = append(all, s.flag.Target.Index(i))
	}
	return all
}

// shown is a value as a complaint quotes it.
func (s *setting) shown(value string) string {
	if s.secret {
		return "the value"
	}
	return fmt.Sprintf("%.80q", withoutPassword(value))
}

// withoutPassword hides the password of a URL, which is a secret wherever it is
// given.
func withoutPassword(value string) string {
	if u, err := url.Parse(value); err == nil && u.User != nil {
		return u.Redacted()
	}
	return value
}
