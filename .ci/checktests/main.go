// Command checktests reads what "go test -json" prints and tells what the gate needs to know:
// the failures, the skipped tests with their reasons, and the time of each package.
//
//	go test -json ./... | checktests -most 25s -slow FILE -shortened FILE
//	go test -json PACKAGE | checktests -most 25s
//	LONG_TESTS=1 go test -json -run ... | checktests -long FILE
//
// With -shortened it writes to FILE the tests that left parts to the gate; see
// testkit/longtest. With -long it fails unless each of these has run, and in full. A package
// that takes longer than -most is a failure, or with -slow a line of that file: the machine
// may be busy with other packages, so the gate runs it again alone.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/testkit/longtest"
)

func main() {
	most := flag.Duration("most", 0, "fail when a package takes longer; 0 sets no limit")
	slow := flag.String("slow", "", "write the packages that took longer than -most to this `file`, instead of failing")
	shortened := flag.String("shortened", "", "write the tests that left parts to the gate to this `file`")
	long := flag.String("long", "", "fail unless the tests in this `file` have run in full")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *most, *slow, *shortened, *long); err != nil {
		fmt.Fprintln(os.Stderr, "checktests:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, most time.Duration, slow, shortened, long string) error {
	r, err := read(in)
	if err != nil {
		return err
	}
	r.print(out)
	errs := []error{r.failures()}
	switch paths := r.slow(most); {
	case slow != "":
		errs = append(errs, os.WriteFile(slow, []byte(strings.Join(append(paths, ""), "\n")), 0o644))
	case len(paths) > 0:
		errs = append(errs, fmt.Errorf("took more than %s: %s; leave what is long to the gate, see docs/testing.md", most, strings.Join(paths, ", ")))
	}
	if shortened != "" {
		if len(r.shortened) == 0 {
			errs = append(errs, errors.New("no test left anything to the gate, which is not so; is "+longtest.Variable+" set?"))
		}
		errs = append(errs, os.WriteFile(shortened, []byte(strings.Join(slices.Sorted(maps.Keys(r.shortened)), "\n")+"\n"), 0o644))
	}
	if long != "" {
		wanted, err := os.ReadFile(long)
		errs = append(errs, err, r.full(strings.Split(strings.TrimSpace(string(wanted)), "\n")))
	}
	return errors.Join(errs...)
}

// event is a line of "go test -json"; see "go doc test2json".
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

// results is what a run of "go test" has shown. Tests are named "PACKAGE TEST".
type results struct {
	packages  map[string]float64 // seconds of those that passed
	broken    []string           // packages that failed or were not built
	passed    map[string]bool    // tests without their subtests
	shortened map[string]bool    // likewise
	skipped   []string           // with the reason
	output    map[string][]string
}

// reason is a line that a test logs: FILE:LINE: TEXT.
var reason = regexp.MustCompile(`^ +[^ :]+\.go:[0-9]+: `)

// lacks are the reasons that count: something that this machine does not have, and a
// measurement that is made on request.
var lacks = regexp.MustCompile(`is not installed|no official .*emulator|has no device that is always full|has no /dev/fd|allows neither chroot nor user namespaces|run with -bars$`)

func read(in io.Reader) (results, error) {
	r := results{packages: map[string]float64{}, passed: map[string]bool{}, shortened: map[string]bool{}, output: map[string][]string{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return r, fmt.Errorf("read the output of go test: %w: %.200s", err, lines.Text())
		}
		r.add(e)
	}
	return r, lines.Err()
}

func (r *results) add(e event) {
	top, _, _ := strings.Cut(e.Test, "/")
	test, key := e.Package+" "+top, cmp.Or(e.Package, e.ImportPath)+" "+e.Test
	switch e.Action {
	case "output", "build-output":
		r.output[key] = append(r.output[key], e.Output)
		if _, text, _ := strings.Cut(e.Output, ".go:"); e.Test != "" && reason.MatchString(e.Output) && strings.Contains(text, ": "+longtest.Marker) {
			r.shortened[test] = true
		}
	case "skip":
		if e.Test != "" {
			r.skipped = append(r.skipped, key+": "+r.why(key))
		}
	case "pass":
		if e.Test == "" {
			r.packages[e.Package] = e.Elapsed
		} else if e.Test == top {
			r.passed[test] = true
		}
		delete(r.output, key)
	case "fail", "build-fail":
		if e.Test == "" {
			r.broken = append(r.broken, strings.TrimSpace(key))
		}
	}
}

// why is the last line that a skipped test logged.
func (r *results) why(key string) string {
	for _, line := range slices.Backward(r.output[key]) {
		if reason.MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return "no reason"
}

// print writes what failed, what was skipped and how long each package took.
func (r *results) print(out io.Writer) {
	for _, key := range slices.Sorted(maps.Keys(r.output)) {
		path, _, _ := strings.Cut(key, " ")
		if slices.Contains(r.broken, path) && !slices.ContainsFunc(r.skipped, func(s string) bool { return strings.HasPrefix(s, key+": ") }) {
			fmt.Fprintf(out, "--- %s\n", key)
			all := slices.DeleteFunc(r.output[key], func(line string) bool { return strings.Contains(line, "level=DEBUG") })
			fmt.Fprint(out, strings.Join(all[max(0, len(all)-200):], ""))
		}
	}
	for _, path := range slices.SortedFunc(maps.Keys(r.packages), func(a, b string) int { return cmp.Compare(r.packages[b], r.packages[a]) }) {
		fmt.Fprintf(out, "ok  %6.1f s  %s\n", r.packages[path], path)
	}
	slices.Sort(r.skipped)
	for _, s := range r.skipped {
		if !strings.Contains(s, longtest.Marker) {
			fmt.Fprintln(out, "skipped here:", s)
		}
	}
}

// failures names the packages that failed, and the tests that were skipped for a reason that
// does not count.
func (r *results) failures() error {
	var errs []error
	for _, path := range r.broken {
		errs = append(errs, errors.New("failed: "+path))
	}
	if len(r.packages) == 0 {
		errs = append(errs, errors.New("no package passed"))
	}
	for _, s := range r.skipped {
		if !strings.Contains(s, longtest.Marker) && !lacks.MatchString(s) {
			errs = append(errs, errors.New("skipped for a reason that does not count: "+s))
		}
	}
	return errors.Join(errs...)
}

// slow lists the packages that took longer than a limit; 0 is none.
func (r *results) slow(most time.Duration) (paths []string) {
	for _, path := range slices.Sorted(maps.Keys(r.packages)) {
		if most > 0 && r.packages[path] > most.Seconds() {
			paths = append(paths, path)
		}
	}
	return paths
}

// full fails unless each of the tests, one a line as shortened writes them, has run and none
// was shortened. One that was skipped because this machine lacks something is named by print.
func (r *results) full(tests []string) error {
	var errs []error
	for _, test := range slices.Sorted(maps.Keys(r.shortened)) {
		errs = append(errs, errors.New("not run in full: "+test))
	}
	if slices.Equal(tests, []string{""}) {
		errs = append(errs, errors.New("the list of tests to run in full is empty"))
	}
	for _, test := range tests {
		skipped := slices.ContainsFunc(r.skipped, func(s string) bool { return strings.HasPrefix(s, test+": ") })
		if !r.passed[test] && !skipped {
			errs = append(errs, errors.New("not run: "+test))
		}
	}
	return errors.Join(errs...)
}
