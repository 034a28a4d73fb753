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

	"github.com/dronefleet/dronefleet/internal/input"
)

// prefix begins the environment variable of every setting.
const prefix = "DRONEFLEET_"

// setting is a flag and how its value is read and checked. With variables, the
// value may also come from the environment or a file.
type setting struct {
	name      string   // of the flag, and of the key in a file
	variables []string // of the environment; the first that is not empty counts
	flag      *kong.Flag
	parse     kong.Mapper // kong's own
	rule      rule
	secret    bool
}

// newSetting reads the environment and checks enumerations in kong's place, because kong
// would stop at the first problem.
func newSetting(flag *kong.Flag, variables bool) (*setting, error) {
	s := &setting{name: flag.Name, flag: flag, parse: parser(flag), secret: flag.Tag.Has("secret")}
	if variables {
		s.variables = append([]string{variable(flag.Name)}, flag.Tag.Envs...)
	}
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

// parser returns kong's mapper of a flag, except where kong misreads a value: it takes a
// duration below 1 ns for 0 and an empty path for the working directory, and refuses a
// time with t or z.
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
	case flag.Target.Type() == timeType:
		return kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
			var text string
			if err := ctx.Scan.PopValueInto("time", &text); err != nil {
				return err
			}
			at, err := input.Time(text)
			if err == nil {
				target.Set(reflect.ValueOf(at))
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

// variable returns the environment variable of a flag.
func variable(flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// help returns the setting's line of --help.
func (s *setting) help() string {
	text := strings.TrimSuffix(s.flag.Help, ".")
	return fmt.Sprintf("%s ($%s).", text, strings.Join(s.variables, ", $"))
}

// accepts describes the accepted values; empty if any text is accepted.
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

// lacking is the error of a flag without a value. Either the line ends there or a flag
// follows; a value that begins with - looks like a flag too.
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

// exceeds reports whether a value is too large for the setting's type: it could be read
// if its numbers were small.
func (s *setting) exceeds(value string) bool {
	target := reflect.New(s.flag.Target.Type()).Elem()
	scan := kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: digits.ReplaceAllString(value, "1")})
	return s.parse.Decode(&kong.DecodeContext{Value: s.flag.Value, Scan: scan}, target) == nil
}

// largest names the type's upper bound; empty if the rule has one.
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

// complaint says what is wrong with a value that cannot be read: a string, or the
// entries of a list.
func (s *setting) complaint(value any, err error) string {
	text := fmt.Sprint(value)
	if list, ok := value.([]any); ok {
		text = ""
		for _, entry := range list {
			text = strings.TrimPrefix(fmt.Sprint(text, ",", entry), ",")
		}
	}
	given := s.shown(text)
	fix := cmp.Or(s.accepts(), "another value")
	if s.flag.IsMap() {
		fix = s.flag.FormatPlaceHolder()
	}
	if errors.Is(err, errTooShort) {
		return fmt.Sprintf("%s is shorter than a nanosecond; give %s", given, fix)
	}
	if s.flag.IsSlice() || s.accepts() == "" && reflect.PointerTo(s.flag.Target.Type()).Implements(textUnmarshaler) {
		if s.secret {
			return "the value cannot be read"
		}
		return fmt.Sprintf("%s cannot be read: %v", given, err)
	}
	if s.exceeds(text) {
		return fmt.Sprintf("%s is out of range; give %s%s", given, fix, s.largest())
	}
	return fmt.Sprintf("%s cannot be read; give %s", given, fix)
}

// emptyEntry is the problem of a list such as "," or, in a file, [""].
const emptyEntry = "the list has an empty entry; delete it or its comma"

// violation says what is wrong with the flag's value; empty if nothing is.
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

// each returns the entries of a list, or the single value.
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

// shown quotes a value for a problem, unless it is secret.
func (s *setting) shown(value string) string {
	if s.secret {
		return "the value"
	}
	return fmt.Sprintf("%.80q", withoutPassword(value))
}

// withoutPassword hides the password of a URL, which is a secret in any setting.
func withoutPassword(value string) string {
	if u, err := url.Parse(value); err == nil && u.User != nil {
		return u.Redacted()
	}
	return value
}
