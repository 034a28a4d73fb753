package history

import (
	"strings"
	"testing"
)

func TestCheck_FindsAnomalies(t *testing.T) {
	type reads = map[string]int64
	cases := []struct {
		name string
		txs  []Transaction
		want string // part of the error; empty if serializable
	}{
		{"nothing", nil, ""},
		{"one after the other", []Transaction{
			{ID: "a", Reads: reads{"x": 0}, Writes: []string{"x"}, Commit: 10},
			{ID: "b", Reads: reads{"x": 10}, Writes: []string{"x"}, Commit: 20},
		}, ""},
		{"lost update", []Transaction{
			{ID: "a", Reads: reads{"x": 0}, Writes: []string{"x"}, Commit: 10},
			{ID: "b", Reads: reads{"x": 0}, Writes: []string{"x"}, Commit: 20},
		}, "no serial order explains 2"},
		{"write skew", []Transaction{
			{ID: "a", Reads: reads{"x": 0, "y": 0}, Writes: []string{"x"}, Commit: 10},
			{ID: "b", Reads: reads{"x": 0, "y": 0}, Writes: []string{"y"}, Commit: 20},
		}, "no serial order explains 2"},
		{"half a commit seen", []Transaction{
			{ID: "a", Writes: []string{"x", "y"}, Commit: 10},
			{ID: "b", Reads: reads{"x": 10, "y": 0}, Commit: 11},
		}, "no serial order explains 2"},
		{"version without a writer", []Transaction{
			{ID: "a", Reads: reads{"x": 7}},
		}, "which no transaction wrote"},
		{"two writes at one time", []Transaction{
			{ID: "a", Writes: []string{"x"}, Commit: 10},
			{ID: "b", Writes: []string{"x"}, Commit: 10},
		}, "both wrote"},
		{"stale read after the write was answered", []Transaction{
			{ID: "a", Writes: []string{"x"}, Commit: 10, Began: 1, Ended: 2},
			{ID: "b", Reads: reads{"x": 0}, Commit: 11, Began: 3, Ended: 4},
		}, "ended before"},
		{"the same while both ran", []Transaction{
			{ID: "a", Writes: []string{"x"}, Commit: 10, Began: 1, Ended: 4},
			{ID: "b", Reads: reads{"x": 0}, Commit: 11, Began: 3, Ended: 5},
		}, ""},
		{"stale read two transactions later", []Transaction{
			{ID: "a", Writes: []string{"x"}, Commit: 10, Began: 1, Ended: 2},
			{ID: "b", Writes: []string{"y"}, Commit: 20, Began: 3, Ended: 4},
			{ID: "c", Reads: reads{"x": 0}, Commit: 30, Began: 5, Ended: 6},
		}, "no serial order"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := Check(c.txs)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v, want none", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
