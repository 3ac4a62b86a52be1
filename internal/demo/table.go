package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// row is one booking of the table.
type row struct {
	name, state, note string
	done, bad         bool
}

// table shows the run: redrawn in place on a terminal, one line per change elsewhere.
type table struct {
	out    io.Writer
	live   bool // out is a terminal
	footer func() string

	mu    sync.Mutex
	rows  []*row
	index map[string]*row
	drawn int // lines on the screen
	start time.Time
}

func newTable(out io.Writer, live bool, footer func() string) *table {
	return &table{out: out, live: live, footer: footer, index: map[string]*row{}, start: time.Now()}
}

// add puts a booking at the end of the table.
func (t *table) add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &row{name: name, state: "waiting"}
	t.rows, t.index[name] = append(t.rows, r), r
}

// set changes a booking's state; a note of "" keeps the old one.
func (t *table) set(name, state, note string, done, bad bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.index[name]
	if r == nil {
		r = &row{name: name}
		t.rows, t.index[name] = append(t.rows, r), r
	}
	r.state, r.done, r.bad = state, done, bad
	if note != "" {
		r.note = note
	}
	if !t.live && done {
		t.line(fmt.Sprintf("%-34s %-10s %s", r.name, r.state, r.note))
	}
}

// say prints one line above the table.
func (t *table) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if t.live {
		t.erase()
		_, _ = fmt.Fprintln(t.out, text)
		t.draw()
		return
	}
	t.line(text)
}

func (t *table) line(text string) {
	_, _ = fmt.Fprintf(t.out, "%6.1fs  %s\n", time.Since(t.start).Seconds(), text)
}

// redraw refreshes a live table; it does nothing elsewhere.
func (t *table) redraw() {
	if !t.live {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.erase()
	t.draw()
}

// finish draws the last state and leaves it on the screen.
func (t *table) finish() {
	t.redraw()
	t.mu.Lock()
	t.drawn = 0
	t.mu.Unlock()
}

func (t *table) erase() {
	if t.drawn > 0 {
		_, _ = fmt.Fprintf(t.out, "\x1b[%dA\x1b[J", t.drawn)
		t.drawn = 0
	}
}

// mostRows is how many bookings a live table shows; finished ones make room first.
const mostRows = 24

func (t *table) draw() {
	var b strings.Builder
	lines, hidden := 0, 0
	skip := len(t.rows) - mostRows
	for _, r := range t.rows {
		if skip > 0 && r.done && !r.bad {
			skip--
			hidden++
			continue
		}
		if lines == mostRows {
			hidden++
			continue
		}
		mark := "\x1b[2m·\x1b[0m"
		switch {
		case r.bad:
			mark = "\x1b[31m✗\x1b[0m"
		case r.done:
			mark = "\x1b[32m✓\x1b[0m"
		case r.state != "waiting":
			mark = "\x1b[33m▸\x1b[0m"
		}
		fmt.Fprintf(&b, " %s %-34.34s %-12.12s %.60s\n", mark, r.name, r.state, r.note)
		lines++
	}
	if hidden > 0 {
		fmt.Fprintf(&b, "   and %d more\n", hidden)
		lines++
	}
	fmt.Fprintf(&b, " %5.1fs  %s\n", time.Since(t.start).Seconds(), t.footer())
	_, _ = io.WriteString(t.out, b.String())
	t.drawn = lines + 1
}
