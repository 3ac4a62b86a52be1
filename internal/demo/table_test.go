package demo

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestTable_plain(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	tb := newTable(&out, false, func() string { return "foot" })
	tb.add("a")
	tb.set("a", "running", "about a", false, false)
	tb.redraw()
	tb.say("kill %d", 9)
	tb.set("a", "completed", "", true, false)
	got := out.String()
	if strings.Count(got, "\n") != 2 || !strings.Contains(got, "kill 9\n") || !strings.Contains(got, "completed  about a") || strings.Contains(got, "\x1b") {
		t.Errorf("want a line for the kill and one for the end, without escapes:\n%q", got)
	}
}

// TestTable_live: what is redrawn erases exactly what was drawn, also when there are more rows than room.
func TestTable_live(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	tb := newTable(&out, true, func() string { return "foot" })
	for i := range mostRows + 5 {
		tb.add(fmt.Sprintf("booking %d", i))
	}
	tb.set("booking 0", "completed", "fine", true, false)
	tb.set("booking 1", "failed", "not fine", true, true)
	tb.redraw()
	drawn := strings.Count(out.String(), "\n")
	if drawn > mostRows+2 {
		t.Errorf("%d lines drawn, want at most %d", drawn, mostRows+2)
	}
	if strings.Contains(out.String(), "booking 0 ") || !strings.Contains(out.String(), "booking 1 ") {
		t.Errorf("a finished row must make room, a bad one must not:\n%s", out.String())
	}
	out.Reset()
	tb.redraw()
	if want := fmt.Sprintf("\x1b[%dA\x1b[J", drawn); !strings.HasPrefix(out.String(), want) {
		t.Errorf("redraw begins with %.12q, want %q", out.String(), want)
	}
	tb.finish()
	out.Reset()
	tb.redraw()
	if strings.HasPrefix(out.String(), "\x1b[") && strings.Contains(out.String()[:8], "A") {
		t.Error("what was finished was erased")
	}
}
