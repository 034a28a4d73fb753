package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/api"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
	"github.com/dronefleet/dronefleet/testkit/docgen"
)

var update = flag.Bool("update", false, "write the generated sections of asyncapi.yaml anew")

// messages are the messages of topics, with what decodes them.
var messages = map[string]struct {
	descriptor protoreflect.MessageDescriptor
	decode     func([]byte, map[string]string) error
}{
	"DroneTelemetry":    {(*pb.DroneTelemetry)(nil).ProtoReflect().Descriptor(), ignoring(wire.DecodeTelemetry)},
	"Order":             {(*pb.Order)(nil).ProtoReflect().Descriptor(), ignoring(wire.DecodeOrder)},
	"MissionAssignment": {(*pb.MissionAssignment)(nil).ProtoReflect().Descriptor(), ignoring(wire.DecodeDecision)},
	"MissionCommand":    {(*pb.MissionCommand)(nil).ProtoReflect().Descriptor(), ignoring(wire.DecodeCommand)},
	"LinkState":         {(*pb.LinkState)(nil).ProtoReflect().Descriptor(), ignoring(wire.DecodeLinkState)},

	"DroneHello": {(*pb.DroneHello)(nil).ProtoReflect().Descriptor(), func(data []byte, _ map[string]string) error {
		_, err := wire.DecodeHello(data, "application/json")
		return err
	}},
	"DroneMessage": {(*pb.DroneMessage)(nil).ProtoReflect().Descriptor(), func(data []byte, _ map[string]string) error {
		return wire.DecodeLinkJSON(data, new(pb.DroneMessage))
	}},
	"GatewayMessage": {(*pb.GatewayMessage)(nil).ProtoReflect().Descriptor(), func(data []byte, _ map[string]string) error {
		return protojson.Unmarshal(data, new(pb.GatewayMessage))
	}},
}

func ignoring[T any](decode func([]byte, map[string]string) (T, error)) func([]byte, map[string]string) error {
	return func(data []byte, attrs map[string]string) error {
		_, err := decode(data, attrs)
		return err
	}
}

// asyncAPI is what the tests read of the document.
type asyncAPI struct {
	Channels map[string]struct {
		Address  string
		Messages map[string]any
	}
	Refusals map[string][]refusal `yaml:"x-refusals"`
	Rules    api.Rules            `yaml:"x-rules"`

	Components struct {
		Messages map[string]struct {
			Examples []struct{ Payload any }
		}
	}
}

type refusal struct{ Reason, Outcome, Means string }

func read(t *testing.T) (d asyncAPI) {
	t.Helper()
	if err := yaml.Unmarshal(api.AsyncAPI, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// inJSON is a value of YAML as JSON has it.
func inJSON(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	read, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func compile(t *testing.T, document any, location string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource("file:///document.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("file:///document.json" + location)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// F-DOC-12: the document is one of AsyncAPI 3.0, with the bindings of Google Pub/Sub and MQTT.
func TestAsyncAPI_IsValid(t *testing.T) {
	text, err := os.ReadFile("testdata/asyncapi-3.0.0.json")
	if err != nil {
		t.Fatal(err)
	}
	definition, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	schema := compile(t, definition, "")
	var document map[string]any
	if err := yaml.Unmarshal(api.AsyncAPI, &document); err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(inJSON(t, document)); err != nil {
		t.Errorf("%#v", err)
	}
	for _, broken := range []string{"asyncapi", "info"} {
		without := maps.Clone(document)
		delete(without, broken)
		if schema.Validate(inJSON(t, without)) == nil {
			t.Errorf("a document without %s is valid", broken)
		}
	}
	for _, ref := range regexp.MustCompile(`\$ref: '#/([^']*)'`).FindAllStringSubmatch(string(api.AsyncAPI), -1) {
		var at any = document
		for part := range strings.SplitSeq(ref[1], "/") {
			object, _ := at.(map[string]any)
			at = object[part]
		}
		if at == nil {
			t.Errorf("nothing is at #/%s", ref[1])
		}
	}
}

// F-DOC-12: every topic of the fleet, of Pub/Sub and MQTT, has its channel, and every channel its topic.
func TestAsyncAPI_HasEveryTopic(t *testing.T) {
	var want, got []string
	want = append(want, pubsubio.InboundTopics...)
	want = append(want, pubsubio.TopicMissions, pubsubio.DeadLetterTopic("{topic}"))
	want = append(want, dronelink.WebSocketPath)
	mqtt, err := os.ReadFile("../adapters/mqttlink/topics.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range regexp.MustCompile(`Topic += "(\w+)"`).FindAllStringSubmatch(string(mqtt), -1) {
		want = append(want, "fleet/{droneId}/"+topic[1])
	}
	document := read(t)
	for name, c := range document.Channels {
		got = append(got, c.Address)
		for message := range c.Messages {
			if _, known := messages[message]; !known && message != "DeadLetter" {
				t.Errorf("channel %s has the message %s, which this test does not know", name, message)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("channels %q, want %q", got, want)
	}
}

// F-DOC-12: the generated sections are those of the wire format and of the decision checks.
func TestAsyncAPI_IsCurrent(t *testing.T) {
	err := docgen.Hold("asyncapi.yaml", map[string]string{"schemas": schemas(t), "decisions": decisions(t)}, *update, "go test ./api -update")
	if err != nil {
		t.Error(err)
	}
}

// schemas are the schemas of all messages that topics carry.
func schemas(t *testing.T) string {
	var b strings.Builder
	done := map[protoreflect.FullName]bool{}
	var write func(protoreflect.MessageDescriptor)
	enum := func(e protoreflect.EnumDescriptor) {
		if done[e.FullName()] {
			return
		}
		done[e.FullName()] = true
		var long, short []string
		prefix := ""
		for i := range e.Values().Len() {
			name := string(e.Values().Get(i).Name())
			if i == 0 {
				prefix = strings.TrimSuffix(name, "UNSPECIFIED")
			}
			long, short = append(long, name), append(short, strings.TrimPrefix(name, prefix))
		}
		fmt.Fprintf(&b, "    %s:\n      x-protobuf: %s\n      type: string\n      enum:\n", e.Name(), e.FullName())
		for _, names := range [][]string{short, long} {
			for _, name := range names {
				fmt.Fprintf(&b, "        - %s\n", name)
			}
		}
	}
	write = func(m protoreflect.MessageDescriptor) {
		if done[m.FullName()] || m.ParentFile().Package() == "google.protobuf" {
			return
		}
		done[m.FullName()] = true
		fmt.Fprintf(&b, "    %s:\n      x-protobuf: %s\n      type: object\n", m.Name(), m.FullName())
		if needed := required(t, string(m.Name())); len(needed) > 0 {
			fmt.Fprintf(&b, "      required: [%s]\n", strings.Join(needed, ", "))
		}
		if m.Fields().Len() > 0 {
			b.WriteString("      properties:\n")
		}
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			is := valueType(f)
			if f.IsList() {
				is = "type: array, items: {" + is + "}"
			}
			fmt.Fprintf(&b, "        %s: {%s}\n", f.JSONName(), is)
		}
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			if f.Message() != nil {
				write(f.Message())
			}
			if f.Enum() != nil {
				enum(f.Enum())
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(messages)) {
		write(messages[name].descriptor)
	}
	return b.String()
}

func valueType(f protoreflect.FieldDescriptor) string {
	switch f.Kind() {
	case protoreflect.StringKind:
		return "type: string"
	case protoreflect.BoolKind:
		return "type: boolean"
	case protoreflect.Int32Kind, protoreflect.Uint32Kind:
		return "type: integer"
	case protoreflect.Int64Kind:
		return "type: [integer, string]"
	case protoreflect.DoubleKind:
		return "type: number"
	case protoreflect.EnumKind:
		return "$ref: '#/components/schemas/" + string(f.Enum().Name()) + "'"
	case protoreflect.MessageKind:
		if f.Message().FullName() == "google.protobuf.Timestamp" {
			return "type: string, format: date-time"
		}
		if f.Message().FullName() == "google.protobuf.Duration" {
			return "type: string"
		}
		return "$ref: '#/components/schemas/" + string(f.Message().Name()) + "'"
	}
	panic("no schema for " + f.FullName())
}

// required are the fields without which every example of a message is refused. Other messages
// are parts of these.
func required(t *testing.T, message string) []string {
	if message == "Position" {
		return []string{"lat", "lon"}
	}
	var needed []string
	for i, e := range read(t).Components.Messages[message].Examples {
		example, _ := e.Payload.(map[string]any)
		var here []string
		for _, name := range slices.Sorted(maps.Keys(example)) {
			without := maps.Clone(example)
			delete(without, name)
			if text, err := json.Marshal(without); err == nil && messages[message].decode(text, nil) != nil && (i == 0 || slices.Contains(needed, name)) {
				here = append(here, name)
			}
		}
		needed = here
	}
	return needed
}

// decisions are the refusals of decisions, from the list in lifecycles.md that package policy
// generates.
func decisions(t *testing.T) string {
	lifecycles, err := os.ReadFile("../docs/lifecycles.md")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, line := range regexp.MustCompile("(?m)^[0-9]+\\. `([A-Z_]+)`: (.*)\\.$").FindAllStringSubmatch(string(lifecycles), -1) {
		outcome := "ledger"
		if line[1] == "DECISION_CONFLICT" {
			outcome = "dead letter"
		}
		fmt.Fprintf(&b, "    - {reason: %s, outcome: %s, means: '%s'}\n", line[1], outcome, strings.ReplaceAll(line[2], "'", "''"))
	}
	return b.String()
}

// F-DOC-12: every example is taken by the decoder and fits its schema; what the schema does not
// have is refused.
func TestAsyncAPI_ExamplesAreTaken(t *testing.T) {
	var document map[string]any
	if err := yaml.Unmarshal(api.AsyncAPI, &document); err != nil {
		t.Fatal(err)
	}
	for name, m := range messages {
		schema := compile(t, inJSON(t, document), "#/components/schemas/"+name)
		examples := read(t).Components.Messages[name].Examples
		if len(examples) == 0 {
			t.Errorf("%s has no example", name)
		}
		for _, e := range examples {
			text, err := json.Marshal(e.Payload)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.decode(text, nil); err != nil {
				t.Errorf("example of %s: %v", name, err)
			}
			if err := schema.Validate(inJSON(t, e.Payload)); err != nil {
				t.Errorf("example of %s: %v", name, err)
			}
		}
		// Which of its fields a message of the link needs, no schema says.
		ofLink := m.descriptor.ParentFile() == messages["DroneMessage"].descriptor.ParentFile()
		if !ofLink && schema.Validate(inJSON(t, map[string]any{})) == nil {
			t.Errorf("an empty %s fits the schema", name)
		}
	}
}

// notForMakers are reasons that no message of a maker meets.
var notForMakers = map[string]string{
	"operators' commands": "NOT_FOUND NOT_PENDING ALREADY_HELD NOT_HELD NOT_EMERGENCY ALREADY_GROUNDED NOT_GROUNDED ALREADY_ACKNOWLEDGED " +
		"UNCHANGED DEADLINE_PASSED ALREADY_RECALLED IN_USE DRONE_FORBIDDEN DRONE_PINNED ORDER_IN_MISSION TOO_MANY_DRONES",
	"the registry":           "DRONE_TYPE_UNKNOWN REGISTRATION_INCOMPLETE SERIAL_NUMBER_TAKEN ITEM_UNKNOWN",
	"hand-overs":             "PLANNED_ELSEWHERE DEPOT_UNKNOWN HANDED_OVER_BEFORE TOO_MANY_HAND_OVERS",
	"endings of amendments":  "AMENDMENT_VOID RELEASED",
	"an event of late stops": "PICKED_UP_AGAIN",
}

// F-DOC-12: each reason in the code that a maker can meet is in the document, and no other; each
// refusal that a rule names exists, and every reason of a decision belongs to one rule.
func TestAsyncAPI_HasEveryRefusal(t *testing.T) {
	document := read(t)
	told := map[string]bool{}
	for _, group := range document.Refusals {
		for _, r := range group {
			if r.Means == "" || !slices.Contains([]string{"dead letter", "dropped", "event", "ledger", "told"}, r.Outcome) {
				t.Errorf("%s: outcome %q, means %q", r.Reason, r.Outcome, r.Means)
			}
			told[r.Reason] = true
		}
	}
	inCode, link := reasons(t), map[string]bool{}
	for _, r := range document.Refusals["link"] {
		link[r.Reason] = true
	}
	for _, reason := range dronelink.Reasons {
		inCode[string(reason)] = true
		if !link[string(reason)] {
			t.Errorf("the document does not say what %s of the link means", reason)
		}
	}
	if len(link) != len(dronelink.Reasons) {
		t.Errorf("the document has %d reasons of the link, the code %d", len(link), len(dronelink.Reasons))
	}
	for why, list := range notForMakers {
		for reason := range strings.FieldsSeq(list) {
			if !inCode[reason] || told[reason] {
				t.Errorf("%s (%s): in the code %t, in the document %t", reason, why, inCode[reason], told[reason])
			}
			delete(inCode, reason)
		}
	}
	for reason := range inCode {
		if !told[reason] {
			t.Errorf("the document does not say what %s means", reason)
		}
	}
	for reason := range told {
		if !inCode[reason] {
			t.Errorf("no code gives the reason %s", reason)
		}
	}
	cited := map[string]int{}
	for _, rules := range [][]api.Rule{document.Rules.Drones, document.Rules.Optimizers, document.Rules.Hospitals} {
		for _, r := range rules {
			for _, reason := range r.Refusals {
				cited[reason]++
				if !told[reason] {
					t.Errorf("%s names the refusal %s, which the document lacks", r.ID, reason)
				}
			}
		}
	}
	for _, r := range document.Refusals["decisions"] {
		if cited[r.Reason] != 1 {
			t.Errorf("%d rules name the refusal %s, want one", cited[r.Reason], r.Reason)
		}
	}
}

// reasons are all reasons of refusals in the code: constants of policy.Reason and of the
// packages that read messages.
func reasons(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	named, shape := regexp.MustCompile(`^[rR]eason[A-Z]`), regexp.MustCompile(`^[A-Z_]+$`)
	for _, folder := range []string{"../policy", "../adapters/wire", "../adapters/pubsubio"} {
		err := filepath.WalkDir(folder, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, declaration := range file.Decls {
				group, is := declaration.(*ast.GenDecl)
				if !is || group.Tok != token.CONST {
					continue
				}
				for _, spec := range group.Specs {
					value := spec.(*ast.ValueSpec)
					if len(value.Values) != 1 || !named.MatchString(value.Names[0].Name) {
						continue
					}
					literal, is := value.Values[0].(*ast.BasicLit)
					if !is {
						return fmt.Errorf("%s: %s is not a literal", name, value.Names[0].Name)
					}
					reason, err := strconv.Unquote(literal.Value)
					if err != nil {
						return err
					}
					if shape.MatchString(reason) {
						found[reason] = true
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// F-DOC-12: every rule has an id of its own, in order, and is about fields of the wire format.
func TestAsyncAPI_RulesAreAboutTheWireFormat(t *testing.T) {
	messages := (*pb.DroneTelemetry)(nil).ProtoReflect().Descriptor().ParentFile().Messages()
	rules := read(t).Rules
	for prefix, list := range map[string][]api.Rule{"D": rules.Drones, "O": rules.Optimizers, "H": rules.Hospitals} {
		for i, r := range list {
			if want := fmt.Sprintf("%s-%02d", prefix, i+1); r.ID != want {
				t.Errorf("rule %s stands where %s belongs", r.ID, want)
			}
			if r.Name == "" || !strings.HasSuffix(r.Text, ".") || len(r.Fields) == 0 {
				t.Errorf("rule %+v lacks a name, a sentence or fields", r)
			}
			for _, f := range r.Fields {
				message, field, _ := strings.Cut(f, ".")
				m := messages.ByName(protoreflect.Name(message))
				if m == nil || m.Fields().ByName(protoreflect.Name(field)) == nil {
					t.Errorf("rule %s is about %s, which the wire format lacks", r.ID, f)
				}
			}
		}
	}
	if loaded := api.TheRules(); len(loaded.Drones) != len(rules.Drones) || len(loaded.Hospitals) == 0 {
		t.Errorf("TheRules are %+v", loaded)
	}
}
