package conformance

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// world is a server with a database of its own during a sequence. It has labels for
// the times that the server chose, so that answers of two servers can be compared.
type world struct {
	server   string // for messages: "official" or "embedded"
	rpc      pb.FirestoreClient
	database string

	step    int
	commits []*timestamppb.Timestamp // commit times, oldest first
	bases   []*timestamppb.Timestamp // the commit times that preconditions can refer to
	labels  map[string]string        // the step in which the server chose a time
}

// root is the full name of the database's documents.
func (w *world) root() string { return w.database + "/documents" }

// worlds are the two servers.
type worlds struct {
	official, embedded pb.FirestoreClient
}

var sequenceCount atomic.Int64

func connectWorlds(t testing.TB) worlds {
	t.Helper()
	officialAddr := official.address(t)
	return worlds{
		official: pb.NewFirestoreClient(mustDial(t, officialAddr)),
		embedded: pb.NewFirestoreClient(mustDial(t, startEmbedded(t))),
	}
}

// fresh returns both servers with a new database of the same name.
func (ws worlds) fresh() (official, embedded *world) {
	database := fmt.Sprintf("projects/diff-%d-%d/databases/(default)", time.Now().UnixNano(), sequenceCount.Add(1))
	side := func(name string, rpc pb.FirestoreClient) *world {
		return &world{server: name, rpc: rpc, database: database, labels: map[string]string{}}
	}
	return side("official", ws.official), side("embedded", ws.embedded)
}

// outcome is the result of a step in comparable form.
type outcome struct {
	code    codes.Code
	message string // not compared
	lines   []string
}

func failed(err error) outcome {
	return outcome{code: status.Code(err), message: status.Convert(err).Message()}
}

// failedWrite is failed for writes; timed means that one has an update time as
// precondition.
func failedWrite(err error, timed bool) outcome {
	s := status.Convert(err)
	return outcome{code: comparableCode(s, timed), message: s.Message()}
}

// comparableCode is the code that the embedded server has for a failed write: see
// Deliberate, base version of the future and base version of a missing document.
func comparableCode(s *status.Status, timed bool) codes.Code {
	future := strings.HasPrefix(s.Message(), "Invalid base version, it is greater than the stored version")
	missing := s.Code() == codes.NotFound && timed
	if future || missing {
		return codes.FailedPrecondition
	}
	return s.Code()
}

func (o outcome) equal(other outcome) bool {
	return o.code == other.code && slices.Equal(o.lines, other.lines)
}

func (o outcome) String() string {
	if o.code != codes.OK {
		return o.code.String() + ": " + o.message
	}
	return "OK\n      " + strings.Join(o.lines, "\n      ")
}

// chose records a time that the server chose in the current step.
func (w *world) chose(t *timestamppb.Timestamp) {
	if t == nil {
		return
	}
	key := t.AsTime().String()
	if _, known := w.labels[key]; !known {
		w.labels[key] = "step " + strconv.Itoa(w.step)
	}
}

// committed records the time of a commit, to which reads and preconditions of later
// steps refer by number. Preconditions do so only if it deleted nothing: see
// Deliberate, base version of a deletion.
func (w *world) committed(t *timestamppb.Timestamp, deletes bool) {
	w.chose(t)
	w.commits = append(w.commits, t)
	if !deletes {
		w.bases = append(w.bases, t)
	}
}

// cycle returns one of the times, nil if there is none.
func cycle(times []*timestamppb.Timestamp, n int) *timestamppb.Timestamp {
	if len(times) == 0 {
		return nil
	}
	return times[n%len(times)]
}

// label names a server's time by the step in which it was chosen.
func (w *world) label(t *timestamppb.Timestamp) string {
	if t == nil {
		return "no time"
	}
	if label, known := w.labels[t.AsTime().String()]; known {
		return label
	}
	return "a time of no step"
}

func (w *world) showDocument(doc *pb.Document) string {
	return fmt.Sprintf("%s %s created %s updated %s", doc.GetName(), w.showFields(doc.GetFields()),
		w.label(doc.GetCreateTime()), w.label(doc.GetUpdateTime()))
}

func (w *world) showFields(fields map[string]*pb.Value) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		parts = append(parts, strconv.Quote(name)+":"+w.showValue(fields[name]))
	}
	return "{" + strings.Join(parts, " ") + "}"
}

// serverTimesBegin separates request times, which servers choose, from the timestamps
// that sequences write, which are all earlier.
var serverTimesBegin = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

func (w *world) showValue(v *pb.Value) string {
	switch t := v.GetValueType().(type) {
	case *pb.Value_NullValue:
		return "null"
	case *pb.Value_BooleanValue:
		return strconv.FormatBool(t.BooleanValue)
	case *pb.Value_IntegerValue:
		return strconv.FormatInt(t.IntegerValue, 10)
	case *pb.Value_DoubleValue:
		return "double(" + strconv.FormatFloat(t.DoubleValue, 'g', -1, 64) + signOfZero(t.DoubleValue) + ")"
	case *pb.Value_TimestampValue:
		at := t.TimestampValue.AsTime()
		if at.After(serverTimesBegin) {
			return fmt.Sprintf("request time of %d ns", at.Nanosecond()%int(time.Millisecond))
		}
		return at.Format(time.RFC3339Nano)
	case *pb.Value_StringValue:
		return strconv.Quote(t.StringValue)
	case *pb.Value_BytesValue:
		return fmt.Sprintf("bytes(%x)", t.BytesValue)
	case *pb.Value_ReferenceValue:
		return "ref(" + t.ReferenceValue + ")"
	case *pb.Value_GeoPointValue:
		return fmt.Sprintf("geo(%g,%g)", t.GeoPointValue.GetLatitude(), t.GeoPointValue.GetLongitude())
	case *pb.Value_ArrayValue:
		var parts []string
		for _, element := range t.ArrayValue.GetValues() {
			parts = append(parts, w.showValue(element))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case *pb.Value_MapValue:
		return w.showFields(t.MapValue.GetFields())
	default:
		return "untyped"
	}
}

func signOfZero(f float64) string {
	if f == 0 && math.Signbit(f) {
		return " negative"
	}
	return ""
}

func (w *world) showWriteResult(r *pb.WriteResult) string {
	line := "updated " + w.label(r.GetUpdateTime())
	for _, v := range r.GetTransformResults() {
		line += " " + w.showValue(v)
	}
	return line
}

// stepPatience bounds one RPC of a sequence.
const stepPatience = 30 * time.Second

func stepContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepPatience)
	t.Cleanup(cancel)
	return ctx
}
