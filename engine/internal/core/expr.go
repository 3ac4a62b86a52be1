package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/vitrip/journeyman/bpmn/feel"
)

// expr is one property of a model: FEEL when its text starts with "=", else a
// static value, which is a number if it reads as one and a string otherwise.
type expr struct {
	src    string // without the "="
	static bool
	value  value // of a static expression
	prog   *feel.Expr
}

// value is a result as the engine stores it.
type value struct {
	kind string // FEEL type in Zeebe's spelling
	raw  json.RawMessage
}

var numeric = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$`)

func compileExpr(text string) (*expr, error) {
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "=") {
		src := strings.TrimSpace(trimmed[1:])
		prog, err := feel.Compile(src)
		if err != nil {
			return nil, err
		}
		return &expr{src: src, prog: prog}, nil
	}
	return staticExpr(text), nil
}

func staticExpr(text string) *expr {
	if numeric.MatchString(text) {
		if v, err := feelNumber(text); err == nil {
			return &expr{src: text, static: true, value: v}
		}
	}
	return staticString(text)
}

func staticString(text string) *expr {
	return &expr{src: text, static: true, value: value{"STRING", jsonString(text)}}
}

// scopeFunc lets a plain lookup serve as a FEEL scope.
type scopeFunc func(name string) (json.RawMessage, bool)

// Lookup implements feel.Scope.
func (f scopeFunc) Lookup(name string) (feel.Value, bool) {
	raw, ok := f(name)
	if !ok {
		return feel.Value{}, false
	}
	v, err := feelFromJSON(raw)
	if err != nil {
		return feel.Value{}, false
	}
	return v, true
}

// eval evaluates x; a lookup of nil has no variables.
func (x *expr) eval(c *Core, look func(string) (json.RawMessage, bool)) (value, error) {
	v, _, err := x.evalWarned(c, look)
	return v, err
}

func (x *expr) evalWarned(c *Core, look func(string) (json.RawMessage, bool)) (value, []feel.Warning, error) {
	if x.static {
		return x.value, nil, nil
	}
	v, warnings, err := x.prog.EvalWith(scopeFunc(look), feel.Options{Now: c.now, Random: c.random})
	if err != nil {
		return value{}, warnings, fmt.Errorf("Failed to evaluate expression '%s': %w", x.src, err) //nolint:staticcheck,revive // Zeebe's wording
	}
	return value{v.Kind().String(), v.JSON()}, warnings, nil
}

func noScope(string) (json.RawMessage, bool) { return nil, false }

// wrongType is Zeebe's message for a result of an unexpected type.
func (x *expr) wrongType(want string, v value, warnings ...feel.Warning) error {
	text := fmt.Sprintf("Expected result of the expression '%s' to be '%s', but was '%s'.", x.src, want, v.kind)
	if len(warnings) > 0 {
		text += " The evaluation reported the following warnings:"
		for _, w := range warnings {
			text += "\n" + w.String()
		}
	}
	return errors.New(text)
}

func (x *expr) boolean(c *Core, look func(string) (json.RawMessage, bool)) (bool, error) {
	v, w, err := x.evalWarned(c, look)
	if err != nil {
		return false, err
	}
	if v.kind != "BOOLEAN" {
		return false, x.wrongType("BOOLEAN", v, w...)
	}
	return string(v.raw) == "true", nil
}

// text evaluates to a string.
func (x *expr) text(c *Core, look func(string) (json.RawMessage, bool)) (string, error) {
	v, w, err := x.evalWarned(c, look)
	if err != nil {
		return "", err
	}
	if v.kind != "STRING" {
		return "", x.wrongType("STRING", v, w...)
	}
	return v.plain(), nil
}

func (x *expr) integer(c *Core, look func(string) (json.RawMessage, bool)) (int32, error) {
	v, w, err := x.evalWarned(c, look)
	if err != nil {
		return 0, err
	}
	if v.kind != "NUMBER" {
		return 0, x.wrongType("NUMBER", v, w...)
	}
	f, err := strconv.ParseFloat(string(v.raw), 64)
	if err != nil || f > 1<<31-1 || f < -1<<31 {
		return 0, fmt.Errorf("expected result of the expression '%s' to be a 32-bit number, but was %s", x.src, v.raw)
	}
	return int32(f), nil
}

// correlationKey evaluates to a string or a whole number.
func (x *expr) correlationKey(c *Core, look func(string) (json.RawMessage, bool)) (string, error) {
	v, w, err := x.evalWarned(c, look)
	if err != nil {
		return "", fmt.Errorf("Failed to extract the correlation key for '%s': %w", x.src, err) //nolint:staticcheck,revive // Zeebe's wording
	}
	switch v.kind {
	case "STRING":
		return v.plain(), nil
	case "NUMBER":
		s, _, _ := strings.Cut(string(v.raw), ".")
		return s, nil
	}
	text := fmt.Sprintf("Failed to extract the correlation key for '%s': The value must be either a string or a number, but was '%s'.", x.src, v.kind)
	if len(w) > 0 {
		text += " The evaluation reported the following warnings:"
		for _, one := range w {
			text += "\n" + one.String()
		}
	}
	return "", errors.New(text)
}

// evalTimerText evaluates a timer expression to ISO 8601 text.
func (c *Core) evalTimerText(x *expr, el *Element, want string) (string, error) {
	look := noScope
	if el != nil {
		look = el.lookup
	}
	v, w, err := x.evalWarned(c, look)
	if err != nil {
		return "", err
	}
	switch v.kind {
	case "STRING", "DURATION", "PERIOD", "DATE_TIME", "DATE":
		return strings.TrimSpace(v.plain()), nil
	}
	return "", x.wrongType(want, v, w...)
}

// plain is the text of a string, and the JSON text of anything else.
func (v value) plain() string {
	if len(v.raw) > 0 && v.raw[0] == '"' {
		var s string
		if err := json.Unmarshal(v.raw, &s); err == nil {
			return s
		}
	}
	return string(v.raw)
}

// strings is a list of strings; a string counts as a list split at commas.
func (v value) strings() []string {
	var out []string
	switch v.kind {
	case "ARRAY":
		var items []json.RawMessage
		if err := json.Unmarshal(v.raw, &items); err != nil {
			return nil
		}
		for _, i := range items {
			out = append(out, value{kindOf(i), i}.plain())
		}
	case "STRING":
		for p := range strings.SplitSeq(v.plain(), ",") {
			if p = strings.TrimSpace(p); p != "" {
				out = append(out, p)
			}
		}
	}
	return out
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
