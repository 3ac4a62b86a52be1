package dedup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of documents that are made canonical.
const maxDepth = 200

// Canonical gives one spelling of a JSON document: no spaces, object members sorted by name, members that are null left
// out (absent equals null), numbers by their exact value (1, 1.0 and 1e0 are equal; 19 digits stay 19 digits), strings with
// the shortest escapes. It follows RFC 8785 but for numbers, which that one would round to doubles.
// Of two members with one name the last counts. Errors name the byte, never the content.
func Canonical(doc []byte) ([]byte, error) {
	v, err := parse(doc)
	if err != nil {
		return nil, err
	}
	return appendValue(nil, v, 0)
}

func parse(doc []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("invalid JSON at byte %d", position(err, d))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("invalid JSON at byte %d: more than one value", d.InputOffset())
	}
	return v, nil
}

func position(err error, d *json.Decoder) int64 {
	var s *json.SyntaxError
	if errors.As(err, &s) {
		return s.Offset
	}
	return d.InputOffset()
}

// appendValue writes a value and brings its numbers to their canonical spelling in place.
func appendValue(b []byte, v any, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("JSON nested deeper than %d", maxDepth)
	}
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case json.Number:
		s, err := number(v.String())
		return append(b, s...), err
	case string:
		return appendString(b, v), nil
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, v[i], err = appendMember(b, e, depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case map[string]any:
		var few [16]string
		keys := few[:0]
		for k, e := range v {
			if e != nil {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		b = append(b, '{')
		for i, k := range keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, k), ':')
			e := v[k]
			var same any
			var err error
			if b, same, err = appendMember(b, e, depth+1); err != nil {
				return nil, err
			}
			if _, is := e.(json.Number); is {
				v[k] = same
			}
		}
		return append(b, '}'), nil
	default:
		return nil, fmt.Errorf("no JSON value: %T", v)
	}
}

// appendMember writes a part of a value and gives what it is from now on.
func appendMember(b []byte, v any, depth int) ([]byte, any, error) {
	n, ok := v.(json.Number)
	if !ok {
		b, err := appendValue(b, v, depth)
		return b, v, err
	}
	s, err := number(n.String())
	if err != nil {
		return nil, nil, err
	}
	if s != n.String() {
		v = json.Number(s)
	}
	return append(b, s...), v, nil
}

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\b':
			b = append(b, `\b`...)
		case r == '\f':
			b = append(b, `\f`...)
		case r < 0x20:
			b = fmt.Appendf(b, `\u%04x`, r)
		case r < utf8.RuneSelf:
			b = append(b, byte(r))
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// number gives one spelling for each exact value: an integer in digits when it has at most 40 of them, else d.ddde±x.
func number(s string) (string, error) {
	if len(s) <= 18 && plainInteger(s) {
		return s, nil
	}
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	mant, expText, _ := strings.Cut(strings.ToLower(s), "e")
	exp := new(big.Int)
	if expText != "" {
		if _, ok := exp.SetString(expText, 10); !ok {
			return "", fmt.Errorf("number with exponent of %d bytes: not understood", len(expText))
		}
	}
	whole, frac, _ := strings.Cut(mant, ".")
	digits := whole + frac
	exp.Sub(exp, big.NewInt(int64(len(frac))))
	if trimmed := strings.TrimRight(digits, "0"); trimmed != digits {
		exp.Add(exp, big.NewInt(int64(len(digits)-len(trimmed))))
		digits = trimmed
	}
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		return "0", nil // also -0
	}
	sign := ""
	if neg {
		sign = "-"
	}
	const plain = 40
	if exp.IsInt64() {
		switch e := exp.Int64(); {
		case e >= 0 && int64(len(digits))+e <= plain:
			return sign + digits + strings.Repeat("0", int(e)), nil
		case e < 0 && e >= -plain && len(digits) <= plain:
			point := len(digits) + int(e)
			if point <= 0 {
				return sign + "0." + strings.Repeat("0", -point) + digits, nil
			}
			return sign + digits[:point] + "." + digits[point:], nil
		}
	}
	exp.Add(exp, big.NewInt(int64(len(digits)-1)))
	out := sign + digits[:1]
	if len(digits) > 1 {
		out += "." + digits[1:]
	}
	return out + "e" + exp.String(), nil
}

// plainInteger reports digits that are their own canonical spelling.
func plainInteger(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) > 0 && (s[0] != '0' || len(s) == 1)
}
