package devrun

import (
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// console is where all parts of a run print. On a terminal it keeps a status of
// a few rows below everything else and redraws it in place.
type console struct {
	out      io.Writer
	terminal bool
	failed   func(error) // called once, with the first write that fails

	mu     sync.Mutex
	status []string // rows that the terminal shows
	broken bool
	below  int // rows that the cursor has moved down since the status was drawn
}

// printColumns is where text for a terminal is wrapped: any terminal has as many.
const printColumns = 79

// print writes text above the status. On a terminal it is wrapped at printColumns,
// and further rows of a paragraph are indented; a file keeps each line whole, for
// grep.
func (c *console) print(indent int, paragraphs ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var text strings.Builder
	text.WriteString(c.erase())
	columns := 0
	if c.terminal {
		columns = printColumns
	}
	for _, p := range paragraphs {
		text.WriteString(wrap(p, columns, indent))
		text.WriteByte('\n')
	}
	text.WriteString(c.draw())
	c.write(text.String())
}

// show replaces the status; no rows remove it. Only a terminal has one.
func (c *console) show(rows ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.terminal {
		return
	}
	text := c.erase()
	c.status = rows
	c.write(text + c.draw())
}

// entered says that a person has typed a line, which moves the cursor of a terminal down.
func (c *console) entered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.below++
}

// erase returns the codes that remove the status from the terminal. The cursor must be at
// the end of its last row, or below it.
func (c *console) erase() string {
	below := c.below
	c.below = 0
	if len(c.status) == 0 {
		return ""
	}
	return "\r" + strings.Repeat("\x1b[A", len(c.status)-1+below) + "\x1b[J"
}

// draw returns the codes that show the status. A narrow terminal cuts rows off instead of
// wrapping them, because erase could not remove a wrapped row.
func (c *console) draw() string {
	if len(c.status) == 0 {
		return ""
	}
	return "\x1b[?7l" + strings.Join(c.status, "\r\n") + "\x1b[?7h"
}

func (c *console) write(text string) {
	if text == "" || c.broken {
		return
	}
	if _, err := io.WriteString(c.out, text); err != nil {
		c.broken = true
		if c.failed != nil {
			c.failed(err)
		}
	}
}

// wrap breaks a line between words so that no row is longer than columns, where
// words allow it; rows after the first are indented. Blanks within a row stay. With
// 0 columns it returns the line as it is.
func wrap(line string, columns, indent int) string {
	var rows []string
	prefix := ""
	for columns > 0 && utf8.RuneCountInString(prefix+line) > columns {
		room := columns - len(prefix)
		cut := strings.LastIndexByte(line[:min(len(line), room+1)], ' ')
		if strings.TrimSpace(line[:max(cut, 0)]) == "" { // one word is longer than a row
			next := strings.IndexByte(strings.TrimLeft(line, " "), ' ')
			if next < 0 {
				break
			}
			cut = len(line) - len(strings.TrimLeft(line, " ")) + next
		}
		rows = append(rows, prefix+strings.TrimRight(line[:cut], " "))
		line, prefix = strings.TrimLeft(line[cut:], " "), strings.Repeat(" ", indent)
	}
	return strings.Join(append(rows, prefix+line), "\n")
}
