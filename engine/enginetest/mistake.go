package enginetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ScenarioError is one thing that is wrong with a scenario file.
type ScenarioError struct {
	File  string // as it was given; "" for text
	Line  int    // from 1; 0 = unknown
	Path  string // where, for example testCases[0].instructions[2].state; "" = the whole file
	Value string // what stands there, as JSON, cut to 60 bytes; "" = nothing
	Want  string // what should
}

// Error gives file, line, path, value and what is wanted.
func (m *ScenarioError) Error() string {
	var b strings.Builder
	if m.File != "" {
		b.WriteString(m.File + ":")
	}
	if m.Line > 0 {
		fmt.Fprintf(&b, "%d:", m.Line)
	}
	if b.Len() > 0 {
		b.WriteString(" ")
	}
	if m.Path == "" {
		b.WriteString("scenario file")
	} else {
		b.WriteString(m.Path)
	}
	switch {
	case m.Value == "" && m.Path != "":
		b.WriteString(" is missing")
	case m.Value != "":
		b.WriteString(" is " + m.Value)
	}
	return b.String() + ": want " + m.Want
}

// Mistakes takes an error of [ParseScenarios] or [ReadScenarios] apart; nil when it is of another kind.
func Mistakes(err error) []*ScenarioError {
	var one *ScenarioError
	if many, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // the shape of errors.Join
		var out []*ScenarioError
		for _, e := range many.Unwrap() {
			out = append(out, Mistakes(e)...)
		}
		return out
	}
	if errors.As(err, &one) {
		return []*ScenarioError{one}
	}
	return nil
}

const mostValue = 60

// shown is a value as a message shows it.
func shown(doc []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, doc) != nil {
		b.Reset()
		b.Write(doc)
	}
	s := b.String()
	if len(s) > mostValue {
		s = strings.ToValidUTF8(s[:mostValue], "") + "…"
	}
	return s
}

// places finds the line of every path of a JSON document, and the keys that stand twice in an object.
type places struct {
	text  []byte
	d     *json.Decoder
	line  map[string]int
	twice []string
}

// locate reads a document. A text that is no JSON is a mistake with its line.
func locate(text []byte) (*places, *ScenarioError) {
	p := &places{text: text, d: json.NewDecoder(bytes.NewReader(text)), line: map[string]int{}}
	if err := p.value(""); err != nil {
		at := p.d.InputOffset()
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			at = syntax.Offset
		}
		return nil, &ScenarioError{Line: p.at(at), Value: "no JSON", Want: "JSON; " + err.Error()}
	}
	if _, err := p.d.Token(); !errors.Is(err, io.EOF) {
		return nil, &ScenarioError{Line: p.at(p.d.InputOffset()), Value: "longer than its JSON value", Want: "nothing after the last }"}
	}
	return p, nil
}

// at is the line of an offset.
func (p *places) at(offset int64) int {
	return 1 + bytes.Count(p.text[:min(int(offset), len(p.text))], []byte("\n"))
}

func (p *places) value(path string) error {
	token, err := p.d.Token()
	if err != nil {
		return err
	}
	p.line[path] = p.at(p.d.InputOffset())
	open, _ := token.(json.Delim)
	for n := 0; (open == '{' || open == '[') && p.d.More(); n++ {
		inner := fmt.Sprintf("%s[%d]", path, n)
		if open == '{' {
			key, err := p.d.Token()
			if err != nil {
				return err
			}
			inner = under(path, fmt.Sprint(key))
			if p.line[inner] > 0 {
				p.twice = append(p.twice, inner)
			}
		}
		if err := p.value(inner); err != nil {
			return err
		}
	}
	if open == '{' || open == '[' {
		_, err = p.d.Token()
	}
	return err
}

// near is the line of a path, or of the nearest thing around it that is there.
func (p *places) near(path string) int {
	for {
		if n := p.line[path]; n > 0 || path == "" {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

func under(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}
