package outbox

import "strings"

// reservedSavepoint begins the names of savepoints that belong to the runtime.
const reservedSavepoint = "journeyman"

// endsTransaction looks at the first words of each statement in sql, which may
// hold several, and reports one that would end the transaction, begin another
// or touch the runtime's savepoints. It is a guard against mistakes: a
// procedure or prepared statement that hides such a statement is stopped by
// PostgreSQL or by the runtime's check of the COMMIT's answer.
func endsTransaction(sql string) (string, bool) {
	s := scanner{rest: sql}
	for {
		words := s.statement(4)
		if words == nil {
			return "", false
		}
		if len(words) > 0 && forbidden(words) {
			return strings.Join(words, " "), true
		}
	}
}

func forbidden(words []string) bool {
	at := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	savepoint := func(i int) bool {
		if at(i) == "savepoint" {
			i++
		}
		return strings.HasPrefix(at(i), reservedSavepoint)
	}
	switch at(0) {
	case "commit", "end", "abort", "begin", "discard":
		return true
	case "start":
		return at(1) == "transaction"
	case "prepare":
		return at(1) == "transaction"
	case "savepoint":
		return savepoint(0)
	case "release":
		return savepoint(1)
	case "rollback":
		i := 1
		if at(i) == "work" || at(i) == "transaction" {
			i++
		}
		return at(i) != "to" || savepoint(i+1)
	}
	return false
}

// scanner walks over SQL text well enough to find where statements begin.
type scanner struct{ rest string }

// statement consumes one statement and gives its first n words in lower case
// (possibly none), nil at the end of the text.
func (s *scanner) statement(n int) []string {
	if s.rest == "" {
		return nil
	}
	words := []string{}
	for s.rest != "" {
		c := s.rest[0]
		switch {
		case c == ';':
			s.skip(1)
			return words
		case strings.HasPrefix(s.rest, "--"):
			s.until("\n")
		case strings.HasPrefix(s.rest, "/*"):
			s.comment()
		case c == '\'':
			s.quoted('\'', false)
		case c == '"':
			start := s.rest
			s.quoted('"', false)
			words = take(words, n, strings.Trim(start[:len(start)-len(s.rest)], `"`))
		case c == '$':
			s.dollar()
		case letter(c):
			end := 1
			for end < len(s.rest) && (letter(s.rest[end]) || s.rest[end] >= '0' && s.rest[end] <= '9' || s.rest[end] == '$') {
				end++
			}
			word := strings.ToLower(s.rest[:end])
			s.skip(end)
			if word == "e" && strings.HasPrefix(s.rest, "'") {
				s.quoted('\'', true)
				continue
			}
			words = take(words, n, word)
		default:
			s.skip(1)
		}
	}
	return words
}

func take(words []string, n int, word string) []string {
	if len(words) < n {
		return append(words, word)
	}
	return words
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func (s *scanner) skip(n int) { s.rest = s.rest[min(n, len(s.rest)):] }

// until consumes up to and with the text, or everything.
func (s *scanner) until(text string) {
	if i := strings.Index(s.rest, text); i >= 0 {
		s.skip(i + len(text))
		return
	}
	s.rest = ""
}

// comment consumes a block comment; PostgreSQL nests them.
func (s *scanner) comment() {
	depth := 0
	for s.rest != "" {
		switch {
		case strings.HasPrefix(s.rest, "/*"):
			depth++
			s.skip(2)
		case strings.HasPrefix(s.rest, "*/"):
			depth--
			s.skip(2)
			if depth == 0 {
				return
			}
		default:
			s.skip(1)
		}
	}
}

// quoted consumes a quoted text; a doubled quote, and with escapes a backslash, does not end it.
func (s *scanner) quoted(quote byte, escapes bool) {
	for i := 1; i < len(s.rest); i++ {
		switch {
		case escapes && s.rest[i] == '\\':
			i++
		case s.rest[i] == quote && i+1 < len(s.rest) && s.rest[i+1] == quote:
			i++
		case s.rest[i] == quote:
			s.skip(i + 1)
			return
		}
	}
	s.rest = ""
}

// dollar consumes $tag$ ... $tag$, or just the dollar of a parameter such as $1.
func (s *scanner) dollar() {
	end := 1
	for end < len(s.rest) && (letter(s.rest[end]) || end > 1 && s.rest[end] >= '0' && s.rest[end] <= '9') {
		end++
	}
	if end >= len(s.rest) || s.rest[end] != '$' {
		s.skip(1)
		return
	}
	tag := s.rest[:end+1]
	s.skip(len(tag))
	s.until(tag)
}
