package feel

import (
	"fmt"
	"strings"
)

// Expression is the text of a BPMN attribute by Zeebe's rule: with a leading "="
// it is FEEL, else a static value: a number when it reads as one, otherwise a
// string. It is immutable and safe for concurrent use.
type Expression struct {
	text   string
	expr   *Expr // nil = static
	static Value
}

// ParseExpression reads the text of an attribute. Only FEEL can fail, with a
// [*SyntaxError].
func ParseExpression(text string) (*Expression, error) {
	trimmed := strings.TrimSpace(text)
	if src, ok := strings.CutPrefix(trimmed, "="); ok && strings.TrimSpace(src) != "" {
		expr, err := Compile(strings.TrimSpace(src))
		if err != nil {
			return nil, err
		}
		return &Expression{text: trimmed, expr: expr}, nil
	}
	if d, err := parseNumber(text); err == nil {
		return &Expression{text: text, static: NumberValue(d)}, nil
	}
	return &Expression{text: text, static: StringValue(text)}, nil
}

// IsStatic says whether the text is not FEEL.
func (e *Expression) IsStatic() bool { return e.expr == nil }

// Text returns what was parsed, with the leading "=" of FEEL.
func (e *Expression) Text() string { return e.text }

// Source returns the text without the leading "=".
func (e *Expression) Source() string {
	if e.expr != nil {
		return e.expr.src
	}
	return e.text
}

// Expr returns the compiled FEEL, nil for a static value.
func (e *Expression) Expr() *Expr { return e.expr }

// Static returns the static value, null for FEEL.
func (e *Expression) Static() Value { return e.static }

// Eval is [Expr.Eval]; a static value needs no scope.
func (e *Expression) Eval(scope Scope) (Value, []Warning, error) {
	return e.EvalWith(scope, Options{})
}

// EvalWith is [Expr.EvalWith]; a static value needs no scope.
func (e *Expression) EvalWith(scope Scope, o Options) (Value, []Warning, error) {
	if e.expr == nil {
		return e.static, nil, nil
	}
	return e.expr.EvalWith(scope, o)
}

// Mismatch is Zeebe's incident text for a result of the wrong kind, with the
// warnings of the evaluation.
func Mismatch(source string, got Value, warnings []Warning, want ...Kind) string {
	var b strings.Builder
	if len(want) == 1 {
		fmt.Fprintf(&b, "Expected result of the expression '%s' to be '%s', but was '%s'.", source, want[0], got.Kind())
	} else {
		names := make([]string, len(want))
		for i, k := range want {
			names[i] = k.String()
		}
		fmt.Fprintf(&b, "Expected result of the expression '%s' to be one of '[%s]', but was '%s'.", source, strings.Join(names, ", "), got.Kind())
	}
	if len(warnings) > 0 {
		b.WriteString(" The evaluation reported the following warnings:")
		for _, w := range warnings {
			b.WriteString("\n" + w.String())
		}
	}
	return b.String()
}
