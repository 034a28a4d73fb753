package operator

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/terminal"
)

// Desk implements the operators' commands of the command line. It prints what Commands or the store
// return.
type Desk struct {
	Commands
	// Now is the fleet's clock, for times like "3s ago".
	Now  func() time.Time
	Out  io.Writer
	JSON bool
	// CSV has tables printed as CSV, and everything else to Notes.
	CSV   bool
	Notes io.Writer
}

// printJSON prints v as indented JSON.
func (d *Desk) printJSON(v any) error {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	// Unprintable characters occur only inside strings, where JSON allows escapes.
	_, err := io.WriteString(d.Out, terminal.Escape(text.String(), '\n'))
	return err
}

// say writes one line.
func (d *Desk) say(format string, args ...any) {
	out := d.Out
	if d.CSV {
		out = d.Notes
	}
	fmt.Fprintln(out, terminal.Escape(fmt.Sprintf(format, args...)))
}

// table writes aligned columns, where empty cells show as "-", or CSV.
type table struct {
	terminal.Table
	out io.Writer
	csv *csv.Writer // nil for columns
}

func (d *Desk) table(header ...string) *table {
	t := &table{out: d.Out}
	if d.CSV {
		t.csv = csv.NewWriter(d.Out)
	}
	t.row(header...)
	return t
}

func (t *table) row(cells ...string) {
	if t.csv != nil {
		for i, c := range cells {
			cells[i] = terminal.Escape(c)
		}
		_ = t.csv.Write(cells) // flush returns the error
		return
	}
	for i, c := range cells {
		cells[i] = cmp.Or(c, "-")
	}
	t.Row(cells...)
}

// continued writes text below the last row, in the column after skip others.
func (t *table) continued(skip int, text string) {
	t.Row(append(make([]string, skip), "  "+text)...)
}

func (t *table) flush() error {
	if t.csv != nil {
		t.csv.Flush()
		return t.csv.Error()
	}
	_, err := t.WriteTo(t.out)
	return err
}

// printPage prints a page of a collection with notes below the table; if it is empty, it prints
// none.
func printPage[E, J any](d *Desk, collection, none string, l firestoretx.Listing[E], form func(E) J, header []string, row func(E) []string, notes ...string) error {
	if d.JSON {
		return d.printJSON(entity.Page(collection, entity.Each(l.Items, form), l.Next, l.Malformed))
	}
	if len(l.Items) == 0 {
		d.say("%s", none)
	}
	if len(l.Items) > 0 || d.CSV {
		t := d.table(header...)
		for _, x := range l.Items {
			t.row(row(x)...)
		}
		if err := t.flush(); err != nil {
			return err
		}
		for _, note := range notes {
			d.say("%s", note)
		}
	}
	d.footer(collection, l.Next, l.Malformed)
	return nil
}

// footer prints how to get the next page, if there is one, and which documents were left out. last
// is the id that this page ended with.
func (d *Desk) footer(collection, last string, malformed []error) {
	if last != "" {
		d.say("There are more; give --cursor=%s", entity.Cursor(collection, last))
	}
	for _, err := range malformed {
		d.say("Left out: %s", err)
	}
}

const clockLayout = "2006-01-02 15:04:05.000"

// stamp formats a time in UTC, to the millisecond.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(clockLayout)
}

// longAgo is the distance from now beyond which a time is shown as a date. Such a time may come
// from a wrong clock and overflow a time.Duration.
const longAgo = 30 * 24 * time.Hour

// ago formats a time relative to now: "3s ago", "in 5m0s", "1970-01-01".
func (d *Desk) ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	since := d.Now().Sub(t)
	if since.Abs() > longAgo {
		return t.UTC().Format(time.DateOnly)
	}
	round := time.Second
	if since.Abs() > time.Hour {
		round = time.Minute
	}
	if since = since.Round(round); since < 0 {
		return "in " + (-since).String()
	}
	return since.String() + " ago"
}

// checkID refuses an id that no entity can have.
func checkID(kind, id string) error {
	if err := domain.CheckID(id); err != nil {
		return fmt.Errorf("%s id %q %w", kind, id, err)
	}
	return nil
}
