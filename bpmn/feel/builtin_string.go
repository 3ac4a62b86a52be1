package feel

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

func text(v Value) string { return v.v.(string) }

var stringTable = []tableRow{
	{"substring(string: s, start position: n)", substring},
	{"substring(string: s, start position: n, length: n)", substring},
	{"string length(string: s)", func(m *machine, a []Value) Value { return IntValue(int64(utf8.RuneCountInString(m.long(a[0])))) }},
	{"upper case(string: s)", func(m *machine, a []Value) Value { return StringValue(strings.ToUpper(m.long(a[0]))) }},
	{"lower case(string: s)", func(m *machine, a []Value) Value { return StringValue(strings.ToLower(m.long(a[0]))) }},
	{"trim(string: s)", func(m *machine, a []Value) Value { return StringValue(strings.TrimSpace(m.long(a[0]))) }},
	{"is blank(string: s)", func(m *machine, a []Value) Value { return BoolValue(strings.TrimSpace(m.long(a[0])) == "") }},
	{"substring before(string: s, match: s)", func(m *machine, a []Value) Value {
		before, _, found := strings.Cut(m.long(a[0]), text(a[1]))
		if !found {
			return StringValue("")
		}
		return StringValue(before)
	}},
	{"substring after(string: s, match: s)", func(m *machine, a []Value) Value {
		_, after, _ := strings.Cut(m.long(a[0]), text(a[1]))
		return StringValue(after)
	}},
	{"contains(string: s, match: s)", func(m *machine, a []Value) Value { return BoolValue(strings.Contains(m.long(a[0]), text(a[1]))) }},
	{"starts with(string: s, match: s)", func(_ *machine, a []Value) Value { return BoolValue(strings.HasPrefix(text(a[0]), text(a[1]))) }},
	{"ends with(string: s, match: s)", func(_ *machine, a []Value) Value { return BoolValue(strings.HasSuffix(text(a[0]), text(a[1]))) }},
	{"matches(input: s, pattern: s, flags?: s)", func(m *machine, a []Value) Value {
		re, ok := m.pattern("matches", a[1], a[2:])
		if !ok {
			return Value{}
		}
		return BoolValue(re.MatchString(m.long(a[0])))
	}},
	{"replace(input: s, pattern: s, replacement: s, flags?: s)", func(m *machine, a []Value) Value {
		re, ok := m.pattern("replace", a[1], a[3:])
		if !ok {
			return Value{}
		}
		in, with := m.long(a[0]), javaReplacement(text(a[2]))
		if hits := len(re.FindAllStringIndex(in, -1)); !m.spend(hits * (1 + len(with)/64)) {
			return Value{}
		}
		return StringValue(re.ReplaceAllString(in, with))
	}},
	{"split(string: s, delimiter: s)", func(m *machine, a []Value) Value {
		re, ok := m.pattern("split", a[1], nil)
		if !ok {
			return Value{}
		}
		parts := re.Split(m.long(a[0]), -1)
		out := make([]Value, len(parts))
		m.spend(len(parts))
		for i, p := range parts {
			out[i] = StringValue(p)
		}
		return ListValue(out...)
	}},
	{"extract(string: s, pattern: s)", func(m *machine, a []Value) Value {
		re, ok := m.pattern("extract", a[1], nil)
		if !ok {
			return Value{}
		}
		out := []Value{}
		for _, hit := range re.FindAllString(m.long(a[0]), -1) {
			m.spend(1)
			out = append(out, StringValue(hit))
		}
		return ListValue(out...)
	}},
	{"to base64(value: s)", func(m *machine, a []Value) Value {
		return StringValue(base64.StdEncoding.EncodeToString([]byte(m.long(a[0]))))
	}},
	{"uuid()", func(m *machine, _ []Value) Value {
		var b [16]byte
		if err := m.bytes(b[:]); err != nil {
			return m.fail("uuid", err.Error())
		}
		b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
		return StringValue(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
	}},
}

// bytes fills b from the caller's source of random numbers, or the host's.
func (m *machine) bytes(b []byte) error {
	src := m.random
	if src == nil {
		src = rand.Reader
	}
	_, err := io.ReadFull(src, b)
	return err
}

// long returns a string and pays for its length.
func (m *machine) long(v Value) string {
	s := text(v)
	if !m.spend(len(s) / 64) {
		return ""
	}
	return s
}

// substring counts characters; 1 is the first, -1 the last. The specification
// names no position 0; feel-scala counts it from the end, like the negative ones, and finds nothing there.
func substring(m *machine, a []Value) Value {
	runes := []rune(m.long(a[0]))
	from, ok := index(a[1], len(runes))
	if !ok {
		if _, whole := a[1].Int(); whole {
			return StringValue("")
		}
		return m.fail("substring", fmt.Sprintf("start position '%s' is not a whole number", a[1]))
	}
	to := len(runes)
	if len(a) > 2 {
		n, ok := a[2].Int()
		if !ok || n < 0 {
			return m.fail("substring", fmt.Sprintf("length '%s' is not a whole number from 0", a[2]))
		}
		to = min(to, from+int(min(n, int64(to))))
	}
	return StringValue(string(runes[from:to]))
}

const maxPattern = 1_000 // bytes of a regular expression

// pattern compiles a regular expression of Go's syntax (RE2: no back-references,
// no look-around, linear time). Flags: i, s, m, x is refused.
func (m *machine) pattern(name string, v Value, flags []Value) (*regexp.Regexp, bool) {
	p := text(v)
	if len(p) > maxPattern {
		m.fail(name, fmt.Sprintf("the pattern is longer than %d bytes", maxPattern))
		return nil, false
	}
	if len(flags) > 0 && text(flags[0]) != "" {
		f := text(flags[0])
		if strings.Trim(f, "ismx") != "" || strings.Contains(f, "x") {
			m.fail(name, fmt.Sprintf("flags '%s': expected i, s or m", clip(f)))
			return nil, false
		}
		p = "(?" + f + ")" + p
	}
	m.spend(50)
	re, err := regexp.Compile(p)
	if err != nil {
		m.fail(name, fmt.Sprintf("pattern '%s' is invalid: %v", clip(p), err))
		return nil, false
	}
	return re, true
}

// javaReplacement turns $1 into ${1}, as Go needs it where a letter follows.
func javaReplacement(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			if s[i] == '$' {
				b.WriteString("$$")
			} else {
				b.WriteByte(s[i])
			}
		case s[i] == '$' && i+1 < len(s) && isDigit(s[i+1]):
			b.WriteString("${" + s[i+1:i+2] + "}")
			i++
		case s[i] == '$' && i+1 < len(s) && s[i+1] == '{':
			b.WriteByte('$')
		case s[i] == '$':
			b.WriteString("$$")
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
