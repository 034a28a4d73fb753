package conformance

import (
	"context"
	"fmt"
	"strings"
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"pgregory.net/rapid"
)

// sequence runs steps on both servers until they differ.
type sequence struct {
	t                  *rapid.T
	ctx                context.Context
	official, embedded *world
	report             strings.Builder
	count              int
}

func newSequence(t testing.TB, rt *rapid.T, ws worlds) *sequence {
	s := &sequence{t: rt, ctx: stepContext(t)}
	s.official, s.embedded = ws.fresh()
	return s
}

func (s *sequence) root() string { return s.official.root() }

func (s *sequence) run(one step) {
	s.official.step, s.embedded.step = s.count, s.count
	want, got := one.run(s.ctx, s.official), one.run(s.ctx, s.embedded)
	fmt.Fprintf(&s.report, "%d. %s\n   official: %s\n", s.count, one.what, want)
	s.count++
	if !got.equal(want) {
		s.t.Logf("%s   embedded: %s", s.report.String(), got)
		s.t.Fatal("the servers differ in the last step") // a constant text, so that rapid can shrink
	}
}

// E-PR-03: both servers give the same answers to random sequences of all RPCs.
func TestRandomSequences(t *testing.T) {
	ws := connectWorlds(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := newSequence(t, rt, ws)
		drawn := 0
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			drawn++
			return drawing{rt, generator{root: s.root(), step: drawn}}.anyStep()
		}), 12, 40).Draw(rt, "steps")
		for _, one := range append(steps, everythingStep(documentPaths)) {
			s.run(one)
		}
	})
}

// E-PR-03, E-QY-01 to E-QY-07: both servers give the same answers to legal queries and
// aggregations over a filled database.
func TestRandomQueries(t *testing.T) {
	ws := connectWorlds(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := newSequence(t, rt, ws)
		documents := rapid.SliceOfNDistinct(rapid.Custom(func(rt *rapid.T) *pb.Document {
			d := drawing{rt, generator{root: s.root()}}
			return &pb.Document{Name: d.name(), Fields: d.documentFields()}
		}), 6, len(documentPaths), (*pb.Document).GetName).Draw(rt, "documents")
		var writes []plannedWrite
		for _, doc := range documents {
			writes = append(writes, plannedWrite{write: &pb.Write{Operation: &pb.Write_Update{Update: doc}}})
		}
		s.run(commitStep(writes))
		queries := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			return queryDrawing{drawing{rt, generator{root: s.root()}}, documents, 3}.step()
		}), 10, 30).Draw(rt, "queries")
		for _, one := range queries {
			s.run(one)
		}
	})
}
