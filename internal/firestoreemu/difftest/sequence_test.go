package difftest

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// E-PR-03: random sequences of requests, answered alike by both servers.
func TestRandomSequences(t *testing.T) {
	ws := connectWorlds(t)
	rapid.Check(t, func(rt *rapid.T) {
		ctx := stepContext(t)
		officialWorld, embeddedWorld := ws.fresh()
		var report strings.Builder
		run := func(n int, s step) {
			officialWorld.step, embeddedWorld.step = n, n
			want, got := s.run(ctx, officialWorld), s.run(ctx, embeddedWorld)
			fmt.Fprintf(&report, "%d. %s\n   official: %s\n", n, s.what, want)
			if !got.equal(want) {
				rt.Logf("%s   embedded: %s", report.String(), got)
				rt.Fatal("the servers differ in the last step") // one text, or rapid would not shrink
			}
		}
		count := 0
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			count++
			return drawing{rt, generator{root: officialWorld.root(), step: count}}.anyStep()
		}), 1, 25).Draw(rt, "steps")
		for i, s := range append(steps, everythingStep(documentPaths)) {
			run(i, s)
		}
	})
}
