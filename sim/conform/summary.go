package conform

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/api"
)

// Verdict is what the examination says about one rule.
type Verdict string

// The verdicts.
const (
	Kept     Verdict = "kept"
	Broken   Verdict = "broken"
	Untested Verdict = "untested" // nothing put the rule to the test
)

// Result is the outcome of one rule.
type Result struct {
	api.Rule
	Verdict Verdict `json:"verdict"`
	// Findings are the first ways in which the rule was broken.
	Findings []string `json:"findings,omitempty"`
	// More is how many findings are left out.
	More int `json:"more,omitempty"`
	// Why says why the rule is untested.
	Why string `json:"why,omitempty"`
}

// Summary is the outcome of an examination.
type Summary struct {
	Subject string   `json:"subject"`
	Results []Result `json:"results"`
	// Ended says why the examination ended early; "" if it did not.
	Ended          string  `json:"ended,omitempty"`
	ElapsedSeconds float64 `json:"elapsedSeconds"` // of the fleet's time
}

// Broken lists the ids of the rules that were broken.
func (s Summary) Broken() (ids []string) {
	for _, r := range s.Results {
		if r.Verdict == Broken {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// Print prints the summary for people.
func (s Summary) Print(w io.Writer) error {
	var b strings.Builder
	counts := map[Verdict]int{}
	for _, r := range s.Results {
		counts[r.Verdict]++
		fmt.Fprintf(&b, "%-8s  %s  %s\n", r.Verdict, r.ID, r.Name)
		if r.Verdict == Broken {
			fmt.Fprintf(&b, "          rule: %s\n", r.Text)
		}
		for _, f := range r.Findings {
			fmt.Fprintf(&b, "          %s\n", f)
		}
		if r.More > 0 {
			fmt.Fprintf(&b, "          and %d more\n", r.More)
		}
		if r.Why != "" {
			fmt.Fprintf(&b, "          %s\n", r.Why)
		}
	}
	if s.Ended != "" {
		fmt.Fprintf(&b, "Ended early: %s\n", s.Ended)
	}
	fmt.Fprintf(&b, "%s: %d rules kept, %d broken, %d untested, after %s. The rules are in api/asyncapi.yaml.\n",
		s.Subject, counts[Kept], counts[Broken], counts[Untested], time.Duration(s.ElapsedSeconds*float64(time.Second)).Round(time.Second))
	_, err := io.WriteString(w, b.String())
	return err
}

// book collects what an examination finds.
type book struct {
	rules    []api.Rule
	tested   map[string]bool
	findings map[string][]string
	more     map[string]int
	skipped  map[string]string
	said     map[string]bool // findings that are noted, which are not noted again
	progress func(string)
}

func newBook(rules []api.Rule, progress func(string)) *book {
	if progress == nil {
		progress = func(string) {}
	}
	return &book{
		rules: rules, tested: map[string]bool{}, findings: map[string][]string{}, more: map[string]int{}, skipped: map[string]string{},
		said: map[string]bool{}, progress: progress,
	}
}

// test notes that rules are put to the test.
func (b *book) test(ids ...string) {
	for _, id := range ids {
		b.tested[id] = true
	}
}

// skip says why rules are not put to the test.
func (b *book) skip(why string, ids ...string) {
	for _, id := range ids {
		b.skipped[id] = why
	}
}

// maxFindings bounds the findings that are kept of each rule.
const maxFindings = 5

// broke notes that a rule was broken. What is the same as before is noted once.
func (b *book) broke(id, format string, args ...any) {
	b.test(id)
	what := fmt.Sprintf(format, args...)
	if b.said[id+what] {
		return
	}
	b.said[id+what] = true
	if len(b.findings[id]) >= maxFindings {
		b.more[id]++
		return
	}
	b.findings[id] = append(b.findings[id], what)
	b.progress("broken " + id + ": " + what)
}

func (b *book) summary(subject, ended string, elapsed time.Duration) Summary {
	s := Summary{Subject: subject, Ended: ended, ElapsedSeconds: elapsed.Seconds()}
	for _, rule := range b.rules {
		r := Result{Rule: rule, Verdict: Kept, Findings: b.findings[rule.ID], More: b.more[rule.ID]}
		switch {
		case len(r.Findings) > 0:
			r.Verdict = Broken
		case !b.tested[rule.ID]:
			r.Verdict, r.Why = Untested, b.skipped[rule.ID]
			if r.Why == "" && ended != "" {
				r.Why = "the examination ended before"
			}
		}
		s.Results = append(s.Results, r)
	}
	return s
}
