package bpmn

import (
	"strings"
	"unicode"
)

const (
	fontSize   = 12.0
	lineHeight = 14.0
)

type align int

const (
	alignMiddle align = iota // centred in the box
	alignTop                 // centred lines from the top of the box, which may grow
	alignLeft                // lines from the top left
)

// runeWidth estimates the width of a character in the drawing's sans-serif font.
func runeWidth(r rune) float64 {
	switch {
	case unicode.Is(unicode.Mn, r):
		return 0
	case strings.ContainsRune("iljtf.,:;'|!()[] ", r):
		return 0.34 * fontSize
	case strings.ContainsRune("mwMW@%", r):
		return 0.9 * fontSize
	case r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff || r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0x1f300):
		return 1.05 * fontSize
	case unicode.IsUpper(r):
		return 0.7 * fontSize
	}
	return 0.56 * fontSize
}

func textWidth(s string) float64 {
	w := 0.0
	for _, r := range s {
		w += runeWidth(r)
	}
	return w
}

// wrap breaks a label into lines of at most width; a longer word is cut.
// Beyond maxLines the last line ends with an ellipsis.
func wrap(s string, width float64, maxLines int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(s, "\n") {
		line := ""
		for _, word := range strings.Fields(paragraph) {
			if line != "" && textWidth(line+" "+word) > width {
				lines, line = append(lines, line), ""
			}
			if line != "" {
				line += " "
			}
			for _, r := range word {
				if textWidth(line+string(r)) > width && strings.TrimSpace(line) != "" {
					lines, line = append(lines, strings.TrimRight(line, " ")), ""
				}
				line += string(r)
			}
			if len(lines) > maxLines {
				break
			}
		}
		if line != "" {
			lines = append(lines, line)
		}
		if len(lines) > maxLines {
			break
		}
	}
	if len(lines) > maxLines {
		lines = lines[:maxLines]
		last := []rune(lines[maxLines-1])
		for len(last) > 0 && textWidth(string(last))+fontSize > width {
			last = last[:len(last)-1]
		}
		lines[maxLines-1] = strings.TrimRight(string(last), " ") + "…"
	}
	return lines
}

func (c *canvas) text(s string, box Rect, how align) {
	if strings.TrimSpace(s) == "" {
		return
	}
	maxLines := 6
	if how == alignMiddle {
		maxLines = max(1, int(box.H/lineHeight))
	}
	lines := wrap(s, box.W, maxLines)
	x, y, class := box.X+box.W/2, box.Y+fontSize-1, "bpmn-text"
	switch how {
	case alignMiddle:
		y = box.Y + box.H/2 - float64(len(lines)-1)*lineHeight/2 + fontSize*0.36
	case alignLeft:
		x, class = box.X, "bpmn-text bpmn-left"
	}
	c.f(`<text class="%v">`, class)
	for i, line := range lines {
		c.f(`<tspan x="%v" y="%v">%v</tspan>`, x, y+float64(i)*lineHeight, esc(line))
	}
	c.raw("</text>")
}

// label writes a free-standing label. A box narrower than its longest word
// grows to both sides rather than cutting the word.
func (c *canvas) label(s string, box Rect) {
	need := 0.0
	for _, word := range strings.Fields(s) {
		need = max(need, min(textWidth(word)+2, 110))
	}
	if need > box.W {
		box.X, box.W = box.X-(need-box.W)/2, need
	}
	c.text(s, box, alignTop)
	c.raw("\n")
}

// labelBox is where the label of an event or gateway stands; nil when it has none.
func (c *canvas) labelBox(id string, s Shape) *Rect {
	e := c.defs.elements[id]
	if e == nil || e.Name == "" || !e.Kind.isEvent() && !strings.HasSuffix(string(e.Kind), "Gateway") {
		return nil
	}
	if s.Label != nil && s.Label.W > 0 {
		r := widen(*s.Label)
		return &r
	}
	return c.below(s)
}

func (c *canvas) below(s Shape) *Rect {
	return &Rect{s.X + s.W/2 - 45, s.Y + s.H + 4, 90, 2 * lineHeight}
}

// widen gives a label the room that our font estimate may need more than the
// one the file was drawn with.
func widen(r Rect) Rect {
	extra := max(16, r.W*0.1)
	return Rect{r.X - extra/2, r.Y, r.W + extra, r.H}
}
