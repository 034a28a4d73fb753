package terminal

import (
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Table aligns columns two spaces apart. Unlike text/tabwriter it measures width on the
// terminal: Chinese characters are two columns wide, combining accents none.
type Table struct {
	rows   [][]string
	widths []int // of the columns except the last of each row
}

// Row adds a row. Cells are escaped to one line, with their spaces kept: ids may differ
// only in spaces.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = Escape(c)
		if i == len(cells)-1 {
			break
		}
		if i == len(t.widths) {
			t.widths = append(t.widths, 0)
		}
		t.widths[i] = max(t.widths[i], widthOf(row[i]))
	}
	t.rows = append(t.rows, row)
}

// WriteTo writes the rows.
func (t *Table) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	for _, row := range t.rows {
		for i, c := range row {
			b.WriteString(c)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", t.widths[i]-widthOf(c)+2))
			}
		}
		b.WriteByte('\n')
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// widthOf returns the width of text on a terminal, in columns.
func widthOf(text string) (n int) {
	for _, r := range text {
		switch kind := width.LookupRune(r).Kind(); {
		case unicode.In(r, unicode.Mn, unicode.Me), r >= 0x1160 && r <= 0x11ff: // and the vowels and finals of Korean syllables
		case kind == width.EastAsianWide, kind == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}
