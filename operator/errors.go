package operator

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Conditions to test for with errors.Is.
var (
	// ErrNotFound: there is no such incident, saga or audit row.
	ErrNotFound = errors.New("not found")
	// ErrNotActive: the incident was resolved, or its element has ended.
	ErrNotActive = errors.New("not active")
	// ErrRetried: somebody has retried this incident already.
	ErrRetried = errors.New("retried already")
	// ErrNotManual: the saga does not wait for a person, or not for this.
	ErrNotManual = errors.New("not left to a person")
	// ErrNotUnseen: the operation is no call that was asked about to the end and never seen, or it is dealt with already.
	ErrNotUnseen = errors.New("not a call that was never seen and waits for a person")
	// ErrNoEngine: the act or view needs the engine's REST API and the desk has none.
	ErrNoEngine = errors.New("no REST address of the engine is configured")
	// ErrUnreachable: the engine's REST API did not answer at all.
	ErrUnreachable = errors.New("engine does not answer")
)

// FieldError says which field of a request is wrong.
type FieldError struct{ Field, Value, Want string }

// Error names the field, its value (shortened) and what was wanted.
func (e *FieldError) Error() string {
	return fmt.Sprintf("%s %q: want %s", e.Field, shorten(e.Value, 60), e.Want)
}

const (
	maxReason = 500
	maxActor  = 200
)

// checkText refuses text that is blank, too long, not UTF-8 or has control characters.
func checkText(field, value string, limit int, what string) error {
	switch {
	case !utf8.ValidString(value):
		return &FieldError{Field: field, Value: strings.ToValidUTF8(value, "\uFFFD"), Want: "valid UTF-8"}
	case strings.TrimSpace(value) == "":
		return &FieldError{Field: field, Value: value, Want: fmt.Sprintf("1 to %d characters that say %s", limit, what)}
	case utf8.RuneCountInString(value) > limit:
		return &FieldError{Field: field, Value: value, Want: fmt.Sprintf("at most %d characters, got %d", limit, utf8.RuneCountInString(value))}
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f }):
		return &FieldError{Field: field, Value: value, Want: "no control characters"}
	}
	return nil
}

func shorten(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit]) + "…"
}
