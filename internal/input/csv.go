package input

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Row is a row of a table that is not empty.
type Row struct {
	Line  int
	Cells []string // as many as the header has
}

// CSV reads a table whose header gives each name once. It drops spaces around cells, and
// the empty rows that spreadsheets write. With problems it still returns the good rows.
func CSV(data []byte) (header []string, rows []Row, err error) {
	text, err := Text(data)
	if err != nil {
		return nil, nil, err
	}
	table := csv.NewReader(bytes.NewReader(text))
	table.TrimLeadingSpace, table.FieldsPerRecord = true, -1
	var problems Problems
	refuse := func(line int, format string, args ...any) {
		problems = append(problems, Problem{Line: line, Text: fmt.Sprintf(format, args...)})
	}
	for {
		cells, err := table.Read()
		if errors.Is(err, io.EOF) {
			return header, rows, problems.err()
		}
		if parsing, is := errors.AsType[*csv.ParseError](err); is {
			refuse(parsing.Line, "column %d: %s", parsing.Column, parsing.Err)
			return header, rows, problems.err()
		}
		if err != nil {
			return nil, nil, err
		}
		line, _ := table.FieldPos(0)
		empty := true
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
			empty = empty && cells[i] == ""
		}
		switch {
		case empty, header == nil && len(cells) == 2 && cells[0] == "sep=": // Excel's own first line
		case header == nil:
			if mark := otherSeparator(cells); mark != "" {
				refuse(line, "the columns are separated by %s; save the table with commas between columns and points in decimals", mark)
				return nil, nil, problems
			}
			header = cells
			var names []name
			for i, cell := range cells {
				if cell != "" {
					names = append(names, newName(cell, i))
				}
			}
			repeated(names, func(_ name, text string) { refuse(line, "%s", text) })
		case len(cells) != len(header):
			refuse(line, "has %d cells, the header has %d; write decimals with a point, and put a cell that contains a comma in quotes", len(cells), len(header))
		default:
			rows = append(rows, Row{line, cells})
		}
	}
}

// otherSeparator names what separates the columns of a header that has no comma; empty if
// it has a single column.
func otherSeparator(header []string) string {
	first := strings.ToLower(header[0])
	switch {
	case strings.HasPrefix(first, "sep="):
		return fmt.Sprintf("%q, as its first line says", strings.TrimPrefix(first, "sep="))
	case len(header) > 1:
	case strings.Contains(first, ";"):
		return `";"`
	case strings.Contains(first, "\t"):
		return "tabs"
	}
	return ""
}
