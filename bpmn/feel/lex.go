package feel

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEOF tokenKind = iota
	tokName
	tokQuoted // `name` in backticks
	tokNumber
	tokString
	tokTemporal // @"..."
	tokOp
)

type token struct {
	kind tokenKind
	text string // unescaped
	at   int    // offset in bytes
}

func (t token) is(op string) bool  { return t.kind == tokOp && t.text == op }
func (t token) word(w string) bool { return t.kind == tokName && t.text == w }
func (t token) describe() string {
	switch t.kind {
	case tokEOF:
		return "the end"
	case tokString:
		return "a string"
	}
	return strconv.Quote(clip(t.text))
}

// operators, longest first.
var operators = []string{"**", "<=", ">=", "!=", "..", "->", "(", ")", "[", "]", "{", "}", ",", ":", ".", "+", "-", "*", "/", "=", "<", ">", "?", "|"}

func isNameStart(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) }
func isNamePart(r rune) bool {
	return isNameStart(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r)
}

func lex(src string) ([]token, error) {
	if len(src) > MaxSource {
		return nil, &SyntaxError{Source: src, Line: 1, Column: 1, Reason: fmt.Sprintf("is longer than %d bytes", MaxSource)}
	}
	if !utf8.ValidString(src) {
		return nil, &SyntaxError{Source: src, Line: 1, Column: 1, Reason: "is not valid UTF-8"}
	}
	var out []token
	i := 0
	for {
		for i < len(src) {
			r, size := utf8.DecodeRuneInString(src[i:])
			switch {
			case unicode.IsSpace(r) || r == '\ufeff':
				i += size
				continue
			case strings.HasPrefix(src[i:], "//"):
				if end := strings.IndexByte(src[i:], '\n'); end >= 0 {
					i += end + 1
				} else {
					i = len(src)
				}
				continue
			case strings.HasPrefix(src[i:], "/*"):
				end := strings.Index(src[i+2:], "*/")
				if end < 0 {
					return nil, syntaxError(src, i, "comment does not end")
				}
				i += end + 4
				continue
			}
			break
		}
		if i >= len(src) {
			return append(out, token{kind: tokEOF, at: len(src)}), nil
		}
		start := i
		r, _ := utf8.DecodeRuneInString(src[i:])
		switch {
		case r == '"':
			s, next, err := lexString(src, i)
			if err != nil {
				return nil, err
			}
			out, i = append(out, token{tokString, s, start}), next
		case r == '@' && i+1 < len(src) && src[i+1] == '"':
			s, next, err := lexString(src, i+1)
			if err != nil {
				return nil, err
			}
			out, i = append(out, token{tokTemporal, s, start}), next
		case r == '`':
			end := strings.IndexByte(src[i+1:], '`')
			if end < 1 {
				return nil, syntaxError(src, i, "name in backticks does not end or is empty")
			}
			out = append(out, token{tokQuoted, src[i+1 : i+1+end], start})
			i += end + 2
		case r >= '0' && r <= '9' || r == '.' && i+1 < len(src) && isDigit(src[i+1]):
			i = lexNumber(src, i)
			out = append(out, token{tokNumber, src[start:i], start})
		case isNameStart(r):
			for i < len(src) {
				r, size := utf8.DecodeRuneInString(src[i:])
				if !isNamePart(r) {
					break
				}
				i += size
			}
			out = append(out, token{tokName, src[start:i], start})
		default:
			op := ""
			for _, o := range operators {
				if strings.HasPrefix(src[i:], o) {
					op = o
					break
				}
			}
			if op == "" {
				return nil, syntaxError(src, i, fmt.Sprintf("unexpected character %q", r))
			}
			i += len(op)
			out = append(out, token{tokOp, op, start})
		}
	}
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// lexNumber reads digits[.digits]; "1..5" holds the number 1. An exponent is not
// part of it: feel-scala, which Zeebe evaluates with, reads none, though DMN 1.5 (rule 35) allows one.
func lexNumber(src string, i int) int {
	digits := func() {
		for i < len(src) && isDigit(src[i]) {
			i++
		}
	}
	digits()
	if i+1 < len(src) && src[i] == '.' && isDigit(src[i+1]) {
		i++
		digits()
	}
	return i
}

// lexString reads a string in double quotes. An unknown escape keeps its
// backslash, so that patterns such as "\d+" can be written plainly.
func lexString(src string, at int) (string, int, error) {
	var b strings.Builder
	for i := at + 1; i < len(src); {
		c := src[i]
		switch {
		case c == '"':
			return b.String(), i + 1, nil
		case c != '\\' || i+1 >= len(src):
			b.WriteByte(c)
			i++
		default:
			next := src[i+1]
			i += 2
			switch next {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'r':
				b.WriteByte('\r')
			case '"', '\'', '\\':
				b.WriteByte(next)
			case 'u', 'U':
				width := 4
				if next == 'U' {
					width = 6
				}
				if i+width > len(src) {
					return "", 0, syntaxError(src, i-2, "unicode escape is too short")
				}
				n, err := strconv.ParseUint(src[i:i+width], 16, 32)
				if err != nil {
					return "", 0, syntaxError(src, i-2, "unicode escape is not hexadecimal")
				}
				i += width
				if n >= 0xd800 && n < 0xdc00 && i+6 <= len(src) && src[i] == '\\' && src[i+1] == 'u' {
					if low, err := strconv.ParseUint(src[i+2:i+6], 16, 32); err == nil && low >= 0xdc00 && low < 0xe000 {
						n = 0x10000 + (n-0xd800)<<10 + (low - 0xdc00)
						i += 6
					}
				}
				b.WriteRune(rune(n))
			default:
				b.WriteByte('\\')
				b.WriteByte(next)
			}
		}
	}
	return "", 0, syntaxError(src, at, "string does not end")
}

func syntaxError(src string, at int, reason string) *SyntaxError {
	at = min(at, len(src))
	before := src[:at]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return &SyntaxError{Source: src, Offset: at, Line: line, Column: column, Reason: reason}
}
