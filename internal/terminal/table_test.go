package terminal

import (
	"errors"
	"strings"
	"testing"
)

// Columns are aligned as a terminal shows them, whatever their text; the last cell of a
// row does not widen its column.
func TestTable_AlignsColumns(t *testing.T) {
	var table Table
	for _, row := range [][]string{
		{"ID", "STATUS", "PLACE"}, {"O-12345", "PENDING", "x"}, {"血液-1", "", "y"}, {"ｆｕｌｌ", "한글", "z"}, {"🚁", "\u1112\u1161\u11ab", "decomposed"},
		{"e\u0301", "ｶﾅ", "half"}, {"❤\ufe0f", "\x1b[2J\tx\n", "obeyed"}, {"this is long and alone"}, {"", "", "  below"}, {},
	} {
		table.Row(row...)
	}
	var b strings.Builder
	n, err := table.WriteTo(&b)
	want := "ID        STATUS                  PLACE\n" +
		"O-12345   PENDING                 x\n" +
		"血液-1                            y\n" +
		"ｆｕｌｌ  한글                    z\n" +
		"🚁        \u1112\u1161\u11ab                      decomposed\n" +
		"e\u0301         ｶﾅ                      half\n" +
		"❤\ufe0f         \\u001b[2J\\u0009x\\u000a  obeyed\n" +
		"this is long and alone\n" +
		"                                    below\n" +
		"\n"
	if err != nil || n != int64(b.Len()) || b.String() != want {
		t.Errorf("%d bytes, %v:\n%s\nwant\n%s", n, err, &b, want)
	}
}

type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestTable_ReturnsWriteErrors(t *testing.T) {
	var table Table
	table.Row("x")
	if _, err := table.WriteTo(full{}); !errors.Is(err, errFull) {
		t.Error(err)
	}
}
