package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const shortenedLine = "    a_test.go:3: left to the gate: 9 worlds instead of 2; set LONG_TESTS=1 to run it\n"

func line(action, test, output string, elapsed float64) string {
	text, err := json.Marshal(map[string]any{"Action": action, "Package": "p/a", "Test": test, "Output": output, "Elapsed": elapsed})
	if err != nil {
		panic(err)
	}
	return string(text) + "\n"
}

// What must fail the gate does, and what must not does not.
func TestRun(t *testing.T) {
	good := line("pass", "TestA", "", 1) + line("pass", "", "", 20)
	short := line("output", "TestA/sub", shortenedLine, 0) + line("skip", "TestA/sub", "", 0)
	for _, row := range []struct {
		name, events string
		short        bool   // the README's run; otherwise the long one
		list         string // the tests to run in full
		want         string // in the error; empty for none
		prints       string
	}{
		{"a shortened run", short + good, true, "", "", "ok    20.0 s  p/a"},
		{"nothing is shortened", good, true, "", "no test left anything to the gate", ""},
		{"a package takes long", short + line("pass", "TestA", "", 1) + line("pass", "", "", 26), true, "", "took more than 25s: p/a;", ""},
		{"a test fails", short + line("output", "TestB", "    a_test.go:9: boom\n", 0) + line("fail", "TestB", "", 1) + line("fail", "", "", 1), true, "", "failed: p/a", "a_test.go:9: boom"},
		{"a package panics", line("output", "TestB", "panic: boom\n", 0) + line("fail", "", "", 1), true, "", "failed: p/a", "panic: boom"},
		{"nothing ran", "", true, "", "no package passed", ""},
		{"a test needs what this machine lacks", short + line("output", "TestB", "    a_test.go:9: redis-server is not installed\n", 0) + line("skip", "TestB", "", 0) + good, true, "", "", "skipped here: p/a TestB: a_test.go:9: redis-server is not installed"},
		{"a test is skipped for no good reason", short + line("output", "TestB", "    a_test.go:9: later\n", 0) + line("skip", "TestB", "", 0) + good, true, "", "does not count: p/a TestB: a_test.go:9: later", ""},
		{"a long run", good, false, "p/a TestA\n", "", ""},
		{"a long run that is short", short + good, false, "p/a TestA\n", "not run in full: p/a TestA", ""},
		{"a long run that misses a test", good, false, "p/a TestA\np/a TestB\n", "not run: p/a TestB", ""},
		{"a long run of nothing", good, false, "\n", "list of tests to run in full is empty", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "list")
			var out strings.Builder
			var err error
			if row.short {
				err = run(strings.NewReader(row.events), &out, 25*time.Second, "", file, "")
			} else {
				if err := os.WriteFile(file, []byte(row.list), 0o600); err != nil {
					t.Fatal(err)
				}
				err = run(strings.NewReader(row.events), &out, 0, "", "", file)
			}
			if row.want == "" && err != nil || !strings.Contains(fmt.Sprint(err), row.want) || !strings.Contains(out.String(), row.prints) {
				t.Errorf("%v, want %q\nprinted %s", err, row.want, out.String())
			}
			if list, _ := os.ReadFile(file); row.short && row.want == "" && string(list) != "p/a TestA\n" {
				t.Errorf("the list is %q", list)
			}
		})
	}
}

// A package that takes long is run again alone: it is listed, and no failure yet.
func TestRun_ListsSlowPackages(t *testing.T) {
	for elapsed, want := range map[float64]string{20: "", 26: "p/a\n"} {
		file := filepath.Join(t.TempDir(), "slow")
		var out strings.Builder
		if err := run(strings.NewReader(line("pass", "TestA", "", 1)+line("pass", "", "", elapsed)), &out, 25*time.Second, file, "", ""); err != nil {
			t.Errorf("%v s: %v", elapsed, err)
		}
		if list, err := os.ReadFile(file); err != nil || string(list) != want {
			t.Errorf("%v s: listed %q, %v; want %q", elapsed, list, err, want)
		}
	}
}
