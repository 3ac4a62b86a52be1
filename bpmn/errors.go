package bpmn

import (
	"fmt"
	"strings"
)

// Error is one thing that is wrong with a model. Parse and Check join all
// they find with errors.Join; take them apart with [Errors].
type Error struct {
	File      string // as given by the caller; may be empty
	Line      int    // 1-based line of the start tag; 0 = unknown
	ElementID string // may be empty
	Kind      Kind   // element kind or XML name; may be empty
	Reason    string // lower case, says what was expected
}

// Error renders "file:line: kind "id": reason", leaving out what is unknown.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		b.WriteByte(':')
	}
	switch {
	case e.Line > 0 && e.File != "":
		fmt.Fprintf(&b, "%d: ", e.Line)
	case e.Line > 0:
		fmt.Fprintf(&b, "line %d: ", e.Line)
	case e.File != "":
		b.WriteByte(' ')
	}
	if e.Kind != "" {
		b.WriteString(string(e.Kind))
		b.WriteByte(' ')
	}
	if e.ElementID != "" {
		fmt.Fprintf(&b, "%q", e.ElementID)
	}
	if e.Kind != "" || e.ElementID != "" {
		s := strings.TrimRight(b.String(), " ")
		return s + ": " + e.Reason
	}
	b.WriteString(e.Reason)
	return b.String()
}

// Errors returns every *Error inside err, in order, also from joined errors.
// It is empty when err is nil or holds none.
func Errors(err error) []*Error {
	switch e := err.(type) { //nolint:errorlint // walks the tree itself
	case nil:
		return nil
	case *Error:
		return []*Error{e}
	case interface{ Unwrap() []error }:
		var all []*Error
		for _, u := range e.Unwrap() {
			all = append(all, Errors(u)...)
		}
		return all
	case interface{ Unwrap() error }:
		return Errors(e.Unwrap())
	}
	return nil
}
